"""The models that the service's tests share, trained once."""

import pytest

pytest.importorskip("fastapi", reason="sightline-attention[serve]")

from live_server import running

from sightline.serve.models import load_models
from toy_language import train_toy


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve-toy")
    train_toy(folder, steps=120)
    return folder / "run"


@pytest.fixture(scope="session")
def models(shapes, toy):
    folder, _, _ = shapes
    return load_models([f"shapes={folder / 'run'}", f"toy={toy}"])


@pytest.fixture(scope="module")
def server(models):
    with running(models) as server:
        yield server

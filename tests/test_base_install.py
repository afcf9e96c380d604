"""The base install in a fresh environment: no PyTorch, small, and it describes a picture."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from small_models import pictures, save_captioner

ROOT = Path(__file__).parents[1]
MOST_MEGABYTES = 220  # without the models
UNWANTED = {"torch", "torchvision", "onnx", "tokenizers", "matplotlib", "tensorboard", "scipy"}


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The scripts' folder of an environment with nothing but `pip install .`."""
    folder = tmp_path_factory.mktemp("fresh")
    source = folder / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "venv", folder / "venv")
    scripts = folder / "venv" / "bin"
    pip = [scripts / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    run(*pip, "-c", ROOT / "constraints.txt", source)
    return scripts


def clean_environment():
    """Nothing of the developer's own reaches the fresh one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_base_install_is_small_and_has_no_torch(fresh):
    listed = json.loads(run(fresh / "python", "-m", "pip", "list", "--format", "json"))
    installed = {package["name"].lower() for package in listed}
    assert "sightline" in installed
    assert "onnxruntime" in installed
    assert not installed & UNWANTED
    (packages,) = (fresh.parent / "lib").glob("python*/site-packages")
    unasked = {"pip", "setuptools", "pkg_resources", "_distutils_hack"}  # the environment's own
    size = sum(
        path.stat().st_size
        for path in packages.rglob("*")
        if path.is_file() and path.relative_to(packages).parts[0] not in unasked
    )
    models = sum(
        path.stat().st_size
        for path in (packages / "sightline" / "zoo").glob("*/*")
        if path.is_file()
    )
    print(f"{(size - models) / 1e6:.0f} MB, and {models / 1e6:.0f} MB of models")
    assert (size - models) / 1e6 <= MOST_MEGABYTES


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_base_install_describes_a_picture_from_an_export(fresh, tmp_path):
    from sightline.export.write import export

    export(save_captioner(tmp_path / "model"), tmp_path / "export")
    (picture,) = pictures(1)
    Image.fromarray(picture).save(tmp_path / "picture.png")
    command = [fresh / "sightline", "describe", "picture.png", "--model", "export", "--json"]
    told = json.loads(run(*command, cwd=tmp_path, env=clean_environment()))
    import sightline

    assert told["text"] == sightline.load(tmp_path / "model").describe(picture).text
    assert told["attention"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_model_that_ships_runs_on_the_base_install(fresh, tmp_path):
    from sightline import zoo

    (picture,) = pictures(1)
    Image.fromarray(picture).save(tmp_path / "picture.png")
    script = (
        "import sys, sightline\n"
        "model = sightline.load(sys.argv[1])\n"
        "task = model.recipe.task\n"
        "if task == 'caption': print(model.describe('picture.png').text)\n"
        "elif task == 'translate': print(model.translate('a dog').text)\n"
        "else: print(model.sample('a', length=20)[0].text)\n"
    )
    for name in zoo.names():
        command = [fresh / "python", "-c", script, name]
        assert run(*command, cwd=tmp_path, env=clean_environment()).strip(), name

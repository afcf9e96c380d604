"""The base install has no PyTorch, is small, and runs every shipped model.

The slow tests build the wheel and install it with its base dependencies into a fresh environment;
CI runs them (`make test-install`).
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from sightline import __version__, zoo
from sightline.config import top_level
from sightline.samples import samples
from small_models import pictures, save_captioner

ROOT = Path(__file__).parents[1]
MOST_MEGABYTES = 220  # without the models
CLIP = ROOT / "src/sightline/tasks/clip/panel/sample.mp4"
TRAIN_ONLY = ("torch", "onnx", "tokenizers", "matplotlib", "tensorboard")

install = [pytest.mark.slow, pytest.mark.timeout(1800)]


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_networks_training_and_export_need_the_train_extra_to_be_imported(cli_environment):
    source = ROOT / "src"
    paths = [path.relative_to(source) for path in sorted((source / "sightline").rglob("*.py"))]
    modules = [
        ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        for path in paths
        if path.parts[1] not in ("nn", "training", "export") and not path.match("tasks/*/model.py")
    ]
    assert len(modules) > 50
    script = (
        "import importlib, sys\n"
        f"for name in {TRAIN_ONLY!r}: sys.modules[name] = None\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
    )
    run(sys.executable, "-c", script, env=cli_environment)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The scripts' folder of an environment with nothing but the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("fresh")
    source = folder / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "venv", folder / "venv")
    scripts = folder / "venv" / "bin"
    pip = [scripts / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run(*pip, "wheel", "--no-deps", "--wheel-dir", folder, source)
    (wheel,) = folder.glob(f"sightline_attention-{__version__}-*.whl")
    run(*pip, "install", "--constraint", ROOT / "constraints.txt", wheel)
    return scripts


@pytest.fixture
def sightline(fresh, tmp_path):
    """`sightline(ARGS …)`: the command of the fresh environment, in an empty folder."""
    # Nothing of the developer's environment reaches the fresh one
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def command(*arguments):
        return run(fresh / "sightline", *arguments, cwd=tmp_path, env=clean)

    return command


class TestInstalled:
    pytestmark = install

    def test_it_is_small_and_has_no_torch(self, fresh):
        listed = json.loads(run(fresh / "python", "-m", "pip", "list", "--format", "json"))
        installed = {package["name"].lower() for package in listed}
        assert {"sightline-attention", "onnxruntime"} <= installed
        assert not installed & {*TRAIN_ONLY, "torchvision", "scipy"}
        (packages,) = (fresh.parent / "lib").glob("python*/site-packages")
        own = {"pip", "setuptools", "pkg_resources", "_distutils_hack"}  # of any environment
        size = sum(
            path.stat().st_size
            for path in packages.rglob("*")
            if path.is_file() and path.relative_to(packages).parts[0] not in own
        )
        models = (packages / "sightline" / "zoo").glob("*/*")
        models_size = sum(path.stat().st_size for path in models if path.is_file())
        print(f"{(size - models_size) / 1e6:.0f} MB, and {models_size / 1e6:.0f} MB of models")
        assert (size - models_size) / 1e6 <= MOST_MEGABYTES

    def test_it_describes_a_picture_from_an_export(self, sightline, tmp_path):
        from sightline import load
        from sightline.export.write import export

        export(save_captioner(tmp_path / "model"), tmp_path / "export")
        (picture,) = pictures(1)
        Image.fromarray(picture).save(tmp_path / "picture.png")
        printed = json.loads(sightline("describe", "picture.png", "--model", "export", "--json"))
        assert printed["text"] == load(tmp_path / "model").describe(picture).text
        assert printed["attention"]

    @pytest.mark.parametrize("name", [name for name in zoo.names() if name != "clips"])
    def test_it_runs_every_shipped_model(self, sightline, tmp_path, name):
        task = top_level(Path(zoo.__file__).parent / name / "config.yaml", "task")
        if task == "transcribe":
            pytest.skip("the base install reads no sounds")
        photo = samples()[0].path
        arguments = {
            "caption": ["describe", photo, "--model", name, "--figure", "figures"],
            "translate": ["translate", "A dog runs.", "--model", name],
            "language_model": ["sample", name, "--length", "20"],
            "parse": ["parse", "A dog runs.", "--model", name, "--figure", "trees"],
            "point": ["point", "0,0 4,0 2,1 2,3", "--model", name],
        }.get(task, ["describe", "A dog runs.", "--model", name])
        assert sightline(*arguments).strip()

    def test_the_demo_shows_every_model(self, sightline, tmp_path):
        printed = sightline("demo")
        assert all(f"── {name}: " in printed for name in zoo.names())
        assert len(list((tmp_path / "demo").glob("*/*.png"))) > 10

    def test_what_needs_another_extra_says_which(self, fresh, tmp_path):
        for command, extra in (
            (["train", "sort"], "train"), (["features", "."], "train"), (["serve"], "serve"),
            (["describe", CLIP, "--model", "clips"], "video"),
        ):  # fmt: skip
            done = subprocess.run(
                [fresh / "sightline", *command], cwd=tmp_path, capture_output=True, text=True
            )
            assert done.returncode == 2, done.stderr
            assert f"'sightline-attention[{extra}]'" in done.stderr
            assert done.stderr.count("\n") == 1

    def test_it_scores(self, sightline, tmp_path):
        (tmp_path / "written.txt").write_text("a dog runs\ntwo men sit\n")
        (tmp_path / "references.txt").write_text("a dog runs\ntwo men sit down\n")
        printed = json.loads(sightline("score", "written.txt", "references.txt", "--json"))
        assert printed["corpus"]["cider"] > 6
        assert printed["corpus"]["bleu_1"] > 0.8

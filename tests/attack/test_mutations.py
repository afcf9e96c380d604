"""Mutated files of every medium: read, or refused in one line; never a bug, a crash or a hang."""

import gzip
import hashlib
import io
import json
import lzma
import shutil
import time

import numpy as np
import pytest
from PIL import Image

import sightline
from mutation import mutated
from sightline.config.files import parse_text
from sightline.data.manifest import read_manifest
from sightline.data.vocabulary import Vocabulary
from sightline.errors import UserError
from sightline.media.preprocess import ImageSpec, read_picture
from sightline.media.text import read_lines, read_text
from sightline.runtime.model_folder import EXPORT
from sightline.tasks.caption.recipe import CaptionRecipe
from small_models import save_captioner, save_language_model, save_translator

pytest.importorskip("onnx")

from sightline.export.write import export

SECONDS = 10  # of computing for one input
KINDS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "AVIF", "PPM")
TEXT = "Ein Hund läuft über die Straße.\nUn chien 犬 🐕 court.\r\n\n" * 5
RECIPE = """task: caption
manifest: flickr8k.jsonl
encoder: {name: efficientnet_lite0, size: 224}
model: {embedding: 16, hidden: 32, attention: {size: 16}}
search: {beam: 3, max_length: 20}
training: {steps: 10, optimiser: {learning_rate: 1e-3}}
"""


def attempt(work, data):
    """Whether the input was taken; a refusal is short and printable."""
    began = time.process_time()
    try:
        work(data)
        return True
    except UserError as error:
        text = str(error)
        assert text, "no reason is given"
        assert all(line.isprintable() for line in text.splitlines()), repr(text)
        assert len(text.splitlines()) <= 20  # a manifest's first faults
        return False
    finally:
        assert time.process_time() - began < SECONDS


def through_file(path, read):
    def work(data):
        path.write_bytes(data)
        read(path)

    return work


# ---------------------------------------------------------------- media: sound inputs, and a reader


def pictures(folder):
    noise = np.random.default_rng(5).integers(0, 256, (24, 32, 3), dtype=np.uint8)
    image = Image.fromarray(noise).resize((96, 72))
    spec = ImageSpec(64, "squeeze")
    for kind in KINDS:
        file = io.BytesIO()
        image.save(file, kind, **({"exif": Image.Exif()} if kind in ("JPEG", "WEBP") else {}))
        yield file.getvalue(), lambda data: read_picture(data, spec, (2, 2))


def texts(folder):
    raw = TEXT.encode()
    for name, content in {"a": raw, "b.gz": gzip.compress(raw), "c.xz": lzma.compress(raw)}.items():
        for read in (read_text, read_lines):
            yield content, through_file(folder / name, read)


def manifests(folder):
    lines = [
        {"id": f"a{n}", "image": "a.jpg", "targets": ["a dog", "ein Hund"], "split": "train"}
        for n in range(5)
    ]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (folder / "a.jpg").write_bytes(b"")
    yield content, through_file(folder / "m.jsonl", read_manifest)


def recipes(folder):
    def read(data):
        parse_text(data.decode("utf-8", errors="replace"), CaptionRecipe)

    yield RECIPE.encode(), read


def vocabularies(folder):
    for name, save in {"lm": save_language_model, "translator": save_translator}.items():
        for path in save(folder / name).glob("*vocab.json"):
            content = path.read_bytes()
            yield content, through_file(folder / f"{name}-{path.name}", Vocabulary.load)


def runs(folder):
    """Every file of a trained model; where there is a checksum, it is right again."""
    sound = save_language_model(folder / "run")
    for path in sorted(sound.iterdir()):
        yield path.read_bytes(), in_folder(sound, folder / "bad-run", path.name, lambda _: None)


def exports(folder):
    """Every file of an export, with the hash that its new content has."""
    for name, save in {"lm": save_language_model, "captioner": save_captioner}.items():
        sound = folder / f"{name}-export"
        export(save(folder / name), sound)
        for path in sorted(sound.iterdir()):
            if path.name not in (EXPORT, "card.md"):
                yield path.read_bytes(), in_folder(sound, folder / "bad", path.name, rehash)
        yield (
            (sound / EXPORT).read_bytes(),
            in_folder(sound, folder / "bad", EXPORT, lambda _: None),
        )


def rehash(path):
    about = path.with_name(EXPORT)
    content = json.loads(about.read_text())
    content["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    about.write_text(json.dumps(content))


def in_folder(sound, bad, name, complete):
    """Replaces one file of a copy of the folder, loads it and uses it."""

    def work(data):
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(sound, bad)
        (bad / name).write_bytes(data)
        complete(bad / name)
        model = sightline.load(bad)
        if model.reader.takes == "text":
            model.describe("ab", length=4, temperature=None, beam=2)
        else:
            model.describe(np.zeros((40, 50, 3), np.uint8), beam=2)

    return work


MEDIA = {
    pictures: 2000, texts: 600, manifests: 400, recipes: 400, vocabularies: 400, runs: 400,
    exports: 800,
}  # fmt: skip


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", [0.02, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("medium", MEDIA)
def test_mutated_inputs_are_read_or_refused(tmp_path, medium, share):
    rng = np.random.default_rng([7, list(MEDIA).index(medium)])
    inputs = list(medium(tmp_path))
    count = max(len(inputs), int(MEDIA[medium] * share))
    taken = []
    for number in range(count):
        content, work = inputs[number % len(inputs)]
        if number < len(inputs):
            assert attempt(work, content), "the sound one is refused"
        taken.append(attempt(work, mutated(rng, content)))
    print(f"{medium.__name__}: {sum(taken)} of {count} taken, the others refused")
    assert not all(taken)


def test_there_are_5000():
    assert sum(MEDIA.values()) >= 5000

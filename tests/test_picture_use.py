"""The benchmark of how much captioners take from the picture, on ones of which we know."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import sightline
from sightline.config import AttentionConfig
from sightline.data.manifest import normalise_caption, read_split
from sightline.data.vocabulary import BEGIN, END
from sightline.tasks.caption.data import CaptionData
from sightline.training.loop import train


@pytest.fixture(scope="module")
def benchmark():
    return importlib.import_module("benchmarks.picture_use")


@pytest.fixture(scope="module")
def dev(shapes):
    return read_split(shapes[1].manifest, "dev", "image")


def test_nats_are_those_of_teacher_forcing(shapes, benchmark, dev):
    torch = pytest.importorskip("torch")
    folder, _, _ = shapes
    model = sightline.load(folder / "run")
    use, network = benchmark.picture_use(model, dev), model.encoder.model
    for row, example in enumerate(dev[:3]):
        tokens = [*model.codec.vocab.encode(normalise_caption(example.targets[0])), END]
        (inputs,) = model.reader.read(example.media)
        with torch.inference_mode():
            state = network.decoder.start(network.encode(inputs.map(torch.from_numpy)))
            decoded = network.decoder(torch.tensor([[BEGIN, *tokens[:-1]]]), state)
            log_probs = network.decoder.log_probs(decoded)[0]
        expected = [-float(log_probs[t, token]) for t, token in enumerate(tokens)]
        # the stepper never writes <unknown>, and shares its probability among the others
        np.testing.assert_allclose(use.own[row, : len(tokens)], expected, atol=0.02)
        assert np.isnan(use.own[row, len(tokens) :]).all()


def test_a_picture_that_is_seen_helps_and_one_that_is_not_does_not(
    shapes, benchmark, dev, tmp_path
):
    folder, recipe, _ = shapes
    own, other = benchmark.picture_use(sightline.load(folder / "run"), dev).mean()
    assert other > own + 0.2
    blind = replace(
        recipe,
        model=replace(recipe.model, attention=AttentionConfig(kind="none"), context=()),
        training=replace(recipe.training, steps=2, evaluate_every=2),
    )
    train(CaptionData(blind), tmp_path / "run", console=Console(quiet=True))
    use = benchmark.picture_use(sightline.load(tmp_path / "run"), dev)
    np.testing.assert_allclose(use.own, use.other, atol=1e-6)


def test_the_report_names_places_and_what_the_picture_gave(benchmark, capsys):
    own = np.array([[1.0, 2.0, np.nan, 3.0], [1.0, np.nan, np.nan, np.nan]])
    benchmark.report("mine", benchmark.PictureUse(own, own + 0.5))
    printed = capsys.readouterr().out
    assert "mine: 1.750 nats a word, 2.250 with another picture" in printed
    assert printed.count("+0.500") == 3  # places of which there are words
    assert "word 3" not in printed

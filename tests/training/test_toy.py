"""Attention earns its place: it reverses strings that one fixed vector cannot hold."""

from dataclasses import replace

import numpy as np
from rich.console import Console

from given import encoded
from sightline import search
from sightline.config import AttentionConfig
from sightline.nn.stepper import TorchStepper
from sightline.training.checkpoint import Run
from sightline.training.loop import Trainer
from toy_task import ToyRecipe, ToyTask


def trained(recipe, folder):
    run = Run(folder)
    run.create()
    trainer = Trainer(ToyTask(recipe), run, Console(quiet=True))
    trainer.run_all(resume=False)
    return trainer


def simple(recipe):
    """The simple encoder-decoder: one vector, wider, so that both have as many weights."""
    return replace(
        recipe,
        encoder=replace(recipe.encoder, summary=True),
        model=replace(recipe.model, hidden=72, attention=AttentionConfig(kind="none")),
    )


def weights(trainer):
    return sum(p.numel() for p in trainer.model.parameters())


def test_attention_reverses_what_the_simple_encoder_decoder_cannot(tmp_path):
    recipe = ToyRecipe()
    # long enough that what machines round differently does not matter
    recipe = replace(recipe, training=replace(recipe.training, steps=600, evaluate_every=600))
    with_attention = trained(recipe, tmp_path / "attention")
    without = trained(simple(recipe), tmp_path / "simple")
    assert weights(without) >= 0.9 * weights(with_attention)
    assert with_attention.progress.metrics["exact"] > 0.9
    assert without.progress.metrics["exact"] < 0.3

    # where it looks: output i comes from input n - 1 - i
    task, stepper = with_attention.task, TorchStepper(with_attention.model)
    text = "abcdefgh"
    options = search.BeamOptions(size=3, max_length=20)
    context = encoded(task.inputs([text]), with_attention.model)
    best = search.finish(search.beam(stepper, context, options))[0][0]
    assert task.vocab.decode(best.tokens) == text[::-1]
    looked = best.attention.argmax(1)[: len(text)]
    assert np.abs(looked - np.arange(len(text))[::-1]).mean() <= 1.0

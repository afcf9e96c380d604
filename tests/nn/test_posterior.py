"""Where known words came from: Bayes' rule, against a computation place by place."""

import numpy as np
import pytest
import torch

from given import encoded, sentences
from sightline.config import AttentionConfig, DecoderConfig, RecurrentConfig
from sightline.data.vocabulary import BEGIN, PAD
from sightline.nn import posterior as module
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.text import TextEncoder
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.nn.stepper import TorchStepper
from sightline.search.steppers import Ensemble

V = 11
SOURCES = np.array([[5, 6, 7, 8, 2], [9, 4, 2, PAD, PAD]])
INPUTS = sentences(SOURCES)
TARGETS = [[4, 9, 2], [7, 2]]


def model_of(seed=0, **changes):
    torch.manual_seed(seed)
    encoder = TextEncoder(RecurrentConfig(embedding=6, hidden=5), V)
    settings = {"embedding": 6, "hidden": 7, "gate": False, "attention": AttentionConfig(size=4)}
    config = DecoderConfig(**{**settings, **changes})
    model = EncoderDecoder(encoder, Decoder(config, V, encoder.dimension), Likelihood()).eval()
    for parameter in model.parameters():  # far from even attention and even outputs
        parameter.data *= 3
    return model


def posterior(*models, weights=None):
    """One model's, or an ensemble's."""
    steppers = [TorchStepper(model) for model in models]
    stepper = steppers[0] if len(models) == 1 else Ensemble(steppers, weights)
    return stepper.posterior(encoded(INPUTS, *models), TARGETS)


def one_by_one(model, source, target):
    """α_ti p(y_t | c_i) with the readout written out, one step and one place at a time."""
    decoder = model.decoder
    with torch.no_grad():
        state = decoder.start(model.encode(sentences(torch.from_numpy(source[None]))))
        rows, before = [], BEGIN
        for token in target:
            embedded = decoder.embed(torch.tensor([before]))
            _, weights, after = decoder.step(torch.tensor([before]), state)
            hidden = after.recurrent[0][-1]
            values = []
            for place, vector in enumerate(state.context.values[0]):
                readout = embedded + decoder.from_hidden(hidden) + decoder.from_context(vector)
                probability = torch.softmax(decoder.output(readout), 1)[0, token]
                values.append(float(weights[0, place] * probability))
            rows.append(np.array(values) / sum(values))
            state, before = after, token
    return np.array(rows)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("cells", [8_000_000, 5 * V])
def test_the_posterior_is_attention_times_likelihood(cell, cells, monkeypatch):
    monkeypatch.setattr(module, "LEAST", 0.0)
    monkeypatch.setattr(module, "CELLS", cells)
    ours = model_of(cell=cell)
    found = posterior(ours)
    for source, target, weights in zip(SOURCES, TARGETS, found, strict=True):
        real = source != PAD
        expected = one_by_one(ours, source[real], target)
        assert weights.shape == (len(target), len(source))
        np.testing.assert_allclose(weights[:, real], expected, atol=1e-5)
        assert not weights[:, ~real].any()


def test_places_with_hardly_any_attention_are_left_out(monkeypatch):
    ours = model_of()
    monkeypatch.setattr(module, "LEAST", 1.0)  # only the largest stays
    (first, _) = posterior(ours)
    assert (first == 1).sum() == len(TARGETS[0])


@pytest.mark.parametrize("changes", [{"gate": True}, {"output": "plain"}])
def test_models_in_which_a_place_cannot_be_told_apart_give_none(changes):
    assert posterior(model_of(**changes)) is None
    assert posterior(model_of(), model_of(**changes)) is None


def test_an_ensemble_gives_the_mean():
    members = [model_of(0), model_of(1)]
    found = posterior(*members, weights=[3, 1])
    one, two = (posterior(member) for member in members)
    for mine, first, second in zip(found, one, two, strict=True):
        np.testing.assert_allclose(mine, 0.75 * first + 0.25 * second, atol=1e-6)

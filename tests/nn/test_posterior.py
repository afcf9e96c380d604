"""Where known words came from: Bayes' rule, against a computation place by place."""

import numpy as np
import pytest
import torch

from given import sentences
from sightline.config import AttentionConfig, DecoderConfig, RecurrentConfig
from sightline.data.vocabulary import BEGIN, PAD
from sightline.nn import posterior as module
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.text import TextEncoder
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.nn.stepper import TorchEncoder, TorchStepper
from sightline.search.steppers import Ensemble

V = 11
SOURCES = np.array([[5, 6, 7, 8, 2], [9, 4, 2, PAD, PAD]])
TARGETS = [[4, 9, 2], [7, 2]]


class Reader(TorchStepper):
    """A stepper that is given sentences."""

    def __init__(self, model):
        super().__init__(model)
        self.model = model

    def posterior(self, source, tokens):
        return super().posterior(TorchEncoder(self.model).encode(sentences(source)), tokens)


def stepper(seed=0, **changes):
    torch.manual_seed(seed)
    encoder = TextEncoder(RecurrentConfig(embedding=6, hidden=5), V)
    settings = {"embedding": 6, "hidden": 7, "gate": False, "attention": AttentionConfig(size=4)}
    config = DecoderConfig(**{**settings, **changes})
    model = EncoderDecoder(encoder, Decoder(config, V, encoder.dimension), Likelihood()).eval()
    for parameter in model.parameters():  # far from even attention and even outputs
        parameter.data *= 3
    return Reader(model)


def one_by_one(stepper, source, target):
    """α_ti p(y_t | c_i) with the readout written out, one step and one place at a time."""
    model, decoder = stepper.model, stepper.model.decoder
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
    ours = stepper(cell=cell)
    found = ours.posterior(SOURCES, TARGETS)
    for source, target, weights in zip(SOURCES, TARGETS, found, strict=True):
        real = source != PAD
        expected = one_by_one(ours, source[real], target)
        assert weights.shape == (len(target), len(source))
        np.testing.assert_allclose(weights[:, real], expected, atol=1e-5)
        assert not weights[:, ~real].any()


def test_places_with_hardly_any_attention_are_left_out(monkeypatch):
    ours = stepper()
    monkeypatch.setattr(module, "LEAST", 1.0)  # only the largest stays
    (first, _) = ours.posterior(SOURCES, TARGETS)
    assert (first == 1).sum() == len(TARGETS[0])


@pytest.mark.parametrize("changes", [{"gate": True}, {"output": "plain"}])
def test_models_in_which_a_place_cannot_be_told_apart_give_none(changes):
    assert stepper(**changes).posterior(SOURCES, TARGETS) is None
    together = Ensemble([stepper(), stepper(**changes)])
    assert together.posterior(SOURCES, TARGETS) is None


def test_an_ensemble_gives_the_mean():
    members = [stepper(0), stepper(1)]
    found = Ensemble(members, [3, 1]).posterior(SOURCES, TARGETS)
    one, two = (member.posterior(SOURCES, TARGETS) for member in members)
    for mine, first, second in zip(found, one, two, strict=True):
        np.testing.assert_allclose(mine, 0.75 * first + 0.25 * second, atol=1e-6)

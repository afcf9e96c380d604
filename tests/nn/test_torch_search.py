"""The search over a real model: batches equal singles, and attention belongs to its hypothesis."""

import numpy as np
import pytest
import torch

from given import encoded
from sightline import search
from sightline.config import AttentionConfig, DecoderConfig
from sightline.data.vocabulary import BEGIN
from sightline.errors import DataError
from sightline.nn.decoder import Decoder
from sightline.nn.model import Batch, EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.nn.stepper import TorchStepper
from sightline.search.constraints import Prefix, constrain
from sightline.search.steppers import Ensemble, Fusion
from sightline.types import ContextSet
from toy_task import ToyRecipe, ToyTask

TEXTS = ["abcd", "hgfedcba", "ajajaj", "cccccccccc", "bd"]
OPTIONS = search.BeamOptions(size=4, max_length=9, n_best=3, length_penalty=0.7)


@pytest.fixture(scope="module")
def task():
    return ToyTask(ToyRecipe(examples=1))


def model_of(task, seed=0):
    torch.manual_seed(seed)
    model = task.build_model().eval()
    with torch.no_grad():  # far from uniform, so that beams differ
        model.decoder.output.weight.mul_(4)
    return model


def beams(model, task, texts, options=OPTIONS):
    context = encoded(task.inputs(texts), model)
    return search.finish(search.beam(TorchStepper(model), context, options))


def assert_same(ours, theirs):
    assert ours.tokens == theirs.tokens
    np.testing.assert_allclose(ours.log_probs, theirs.log_probs, atol=1e-4)
    width = min(ours.attention.shape[1], theirs.attention.shape[1])
    np.testing.assert_allclose(ours.attention[:, :width], theirs.attention[:, :width], atol=1e-4)
    assert not ours.attention[:, width:].any()  # the padding is never looked at


@pytest.mark.parametrize("groups", [1, 2])
def test_a_batch_equals_its_singles(task, groups):
    model = model_of(task)
    options = search.BeamOptions(size=4, max_length=9, n_best=2, groups=groups)
    together = beams(model, task, TEXTS, options)
    for text, found in zip(TEXTS, together, strict=True):
        alone = beams(model, task, [text], options)[0]
        assert len(alone) == len(found)
        for mine, its in zip(found, alone, strict=True):
            assert_same(mine, its)


def test_attention_and_log_probs_are_those_of_teacher_forcing(task):
    model = model_of(task)
    for text, found in zip(TEXTS, beams(model, task, TEXTS), strict=True):
        for hypothesis in found:
            before = torch.tensor([[BEGIN, *hypothesis.tokens[:-1]]])
            with torch.no_grad():
                state = model.decoder.start(model.encode(task.inputs([text])))
                decoded = model.decoder(before, state)
                log_probs = model.decoder.log_probs(decoded)[0]
            steps = range(len(hypothesis.tokens))
            np.testing.assert_allclose(
                hypothesis.log_probs, log_probs[steps, hypothesis.tokens].numpy(), atol=1e-4
            )
            width = len(text)
            np.testing.assert_allclose(
                hypothesis.attention[:, :width], decoded.weights[0].numpy(), atol=1e-4
            )
            expected = hypothesis.log_prob / len(hypothesis.tokens) ** OPTIONS.length_penalty
            assert hypothesis.score == pytest.approx(expected, rel=1e-5)


def test_beam_of_one_equals_greedy(task):
    model = model_of(task)
    one = beams(model, task, TEXTS, search.BeamOptions(size=1, max_length=9))
    context = encoded(task.inputs(TEXTS), model)
    greedy = search.finish(search.greedy(TorchStepper(model), context, max_length=9))
    assert [h[0].tokens for h in one] == [h[0].tokens for h in greedy]


def test_an_ensemble_and_a_prefix_work_over_real_models(task):
    def together(*models, prefixes=()):
        both = Ensemble([TorchStepper(model) for model in models])
        both = constrain(both, Prefix(prefixes)) if prefixes else both
        context = encoded(task.inputs(TEXTS), *models)
        return search.finish(search.beam(both, context, OPTIONS))

    first, second = model_of(task, 0), model_of(task, 1)
    prefixes = [task.vocab.encode(text[:2]) for text in TEXTS]
    found = together(first, second, prefixes=prefixes)
    for prefix, hypotheses in zip(prefixes, found, strict=True):
        assert all(h.tokens[: len(prefix)] == tuple(prefix) for h in hypotheses)
    again = together(first, first)
    for ours, alone in zip(again, beams(first, task, TEXTS), strict=True):
        assert_same(ours[0], alone[0])


def test_fusion_with_a_language_model(task):
    torch.manual_seed(5)
    config = DecoderConfig(embedding=8, hidden=8, attention=AttentionConfig(kind="none"))
    decoder = Decoder(config, len(task.vocab))
    language_model = TorchStepper(EncoderDecoder(None, decoder, Likelihood()))
    model = model_of(task)
    base = TorchStepper(model)
    context = encoded(task.inputs(TEXTS), model)
    fused = search.finish(search.beam(Fusion(base, language_model, 0.5), context, OPTIONS))
    best = fused[1][0]
    own = search.rescore(base, encoded(task.inputs([TEXTS[1]]), model), [best.tokens])[0]
    prior = search.rescore(language_model, ContextSet.empty(1), [best.tokens])[0]
    np.testing.assert_allclose(best.log_probs, own.log_probs + 0.5 * prior.log_probs, atol=1e-4)


def test_an_empty_input_is_an_error_that_names_it(task):
    model = model_of(task)
    with pytest.raises(DataError, match="example 2 is empty"):
        beams(model, task, ["abc", "", "d"])
    batch = Batch(torch.tensor([[1, 4, 2]] * 2), task.inputs(["a", ""]), name="lines 7, 9")
    with pytest.raises(DataError, match="example 2 of lines 7, 9 is empty"):
        model.loss(batch)

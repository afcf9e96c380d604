"""OnnxStepper: an exported model behind the Stepper contract."""

from pathlib import Path

import numpy as np
import pytest
import torch

from given import every
from sightline.config import AttentionConfig, DecoderConfig
from sightline.data.vocabulary import BEGIN, END, UNKNOWN
from sightline.nn.decoder import Decoder
from sightline.runtime.model_folder import START, STEP, Export
from sightline.runtime.onnx import OnnxStepper
from sightline.search.steppers import SearchError
from sightline.types import ContextSet

pytest.importorskip("onnx")
from sightline.export.graphs import start_graph, step_graph

V, D, B, M = 23, 9, 4, 7
SIZES = {"embedding": 6, "hidden": 10}


def stepper(*, kind="content", context_size=D):
    torch.manual_seed(1)
    attention = AttentionConfig(kind=kind, size=8)
    decoder = Decoder(DecoderConfig(**SIZES, attention=attention), V, context_size).eval()
    graphs = {STEP: step_graph(decoder, "int16")}
    if context_size:
        graphs[START] = start_graph(decoder, context_size, "int16")
    content = {name: graph.SerializeToString() for name, graph in graphs.items()}
    return OnnxStepper(Export(Path(), {}, content), BEGIN, END)


def vectors(bias=None):
    values = np.random.default_rng(0).normal(size=(B, M, D)).astype(np.float32)
    return every(values, bias=bias)


def test_the_likeliest_tokens_are_given_best_first():
    ours = stepper().without([UNKNOWN])
    state, tokens = ours.start(vectors()), np.full(B, ours.begin)
    whole, some = ours.step(state, tokens), ours.leading(state, tokens, 6)
    assert np.isneginf(whole.log_probs[:, UNKNOWN]).all()
    order = np.argsort(-whole.log_probs, axis=1, kind="stable")[:, :6]
    np.testing.assert_array_equal(some.tokens, order)
    np.testing.assert_array_equal(
        some.log_probs, np.take_along_axis(whole.log_probs, order, axis=1)
    )
    np.testing.assert_array_equal(some.attention, whole.attention)
    for name, values in whole.state.rows.items():
        np.testing.assert_array_equal(some.state.rows[name], values)


def test_a_bias_steers_attention():
    ours = stepper()
    bias = np.zeros((B, M), np.float32)
    bias[:, 2] = 3.0
    steered = ours.step(ours.start(vectors(bias)), np.full(B, ours.begin)).attention
    free = ours.step(ours.start(vectors()), np.full(B, ours.begin)).attention
    assert (steered[:, 2] > free[:, 2]).all()
    with pytest.raises(SearchError, match="one number for each position"):
        ours.start(vectors(bias[:, 1:]))
    with pytest.raises(SearchError, match="no attention"):
        stepper(kind="none").start(vectors(bias))


def test_a_beam_never_copies_the_context():
    ours = stepper()
    state = ours.start(vectors())
    wide = ours.select(state, np.repeat(np.arange(B), 5))
    result = ours.step(wide, np.full(5 * B, ours.begin))
    for name, values in state.examples.items():
        assert result.state.examples[name] is values
    fewer = ours.select(result.state, np.repeat([0, 3], 5) * 5)
    assert all(len(values) == 2 for values in fewer.examples.values())


def test_a_language_model_reads_only_how_many_examples_there_are():
    ours = stepper(context_size=0)
    state = ours.start(ContextSet.empty(2))
    assert len(state) == 2
    log_probs = ours.without([6, 7]).step(state, np.array([5, 5])).log_probs
    assert np.isneginf(log_probs[:, 6:8]).all()
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1, rtol=1e-5)
    assert np.isfinite(ours.step(state, np.array([5, 5])).log_probs).all()

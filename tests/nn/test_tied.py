"""Tied embeddings: one matrix reads and writes, is trained by both, and is kept once."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from given import GraphStepper, every, given
from sightline.config import AttentionConfig, DecoderConfig, LossConfig
from sightline.errors import ConfigError
from sightline.nn.decoder import Decoder
from sightline.nn.heads import sampled_log_probs
from sightline.nn.losses import sequence_loss
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.nn.stepper import TorchStepper
from sightline.training.averaging import Average
from sightline.training.checkpoint import Checkpoint, Run, load_weights
from sightline.types import ContextSet

V, D, M, B, T = 40, 5, 4, 3, 6
SIZES = {"embedding": 12, "hidden": 7, "attention": AttentionConfig(size=5)}


def pair():
    """A tied decoder and one whose two matrices only happen to be equal."""
    torch.manual_seed(0)
    tied = Decoder(DecoderConfig(**SIZES, tied=True), V, D).double()
    apart = Decoder(DecoderConfig(**SIZES), V, D).double()
    weights = dict(tied.state_dict())
    apart.load_state_dict({**weights, "output.weight": weights["embed.weight"].clone()})
    return tied, apart


def data():
    torch.manual_seed(1)
    mask = torch.ones(B, M, dtype=torch.bool)
    context = ContextSet(torch.randn(B, M, D, dtype=torch.float64), mask)
    return context, torch.randint(4, V, (B, T))


def loss_of(decoder, context, tokens):
    decoded = decoder(tokens[:, :-1], decoder.start(context))
    config = LossConfig(label_smoothing=0.1)
    return sequence_loss(decoder, decoded, tokens[:, 1:], config)[1].total


def test_the_matrix_learns_from_what_it_reads_and_from_what_it_writes():
    tied, apart = pair()
    context, tokens = data()
    ours, theirs = loss_of(tied, context, tokens), loss_of(apart, context, tokens)
    torch.testing.assert_close(ours, theirs)
    ours.backward()
    theirs.backward()
    both = apart.embed.weight.grad + apart.output.weight.grad
    torch.testing.assert_close(tied.embed.weight.grad, both)
    torch.testing.assert_close(tied.output.bias.grad, apart.output.bias.grad)


def test_the_sampled_softmax_uses_it_too():
    tied, apart = pair()
    readouts, targets = torch.randn(B * T, 12, dtype=torch.float64), torch.randint(4, V, (B * T,))
    found = []
    for decoder in (tied, apart):
        torch.manual_seed(2)
        log_probs = sampled_log_probs(
            decoder.output.weight, decoder.output.bias, readouts, targets, negatives=9
        )
        log_probs.sum().backward()
        found.append(log_probs)
    torch.testing.assert_close(*found)
    torch.testing.assert_close(tied.embed.weight.grad, apart.output.weight.grad)


def test_it_is_kept_once_and_comes_back(tmp_path):
    tied, _ = pair()
    tied = tied.float()
    model = EncoderDecoder(given(D), tied, Likelihood())
    average = Average(model, 0.5)
    with torch.no_grad():
        tied.embed.weight.add_(1.0)
    average.update(100)
    run = Run(tmp_path)
    run.create()
    with average.in_place():
        averaged = tied.output.weight.detach().clone()
        files = Checkpoint(1, {}, model.state_dict(), {}, average.tensors())
        folder = run.save(files, is_best=True, keep=1)
    torch.testing.assert_close(tied.output.weight, averaged + 0.5)  # the trained one is back
    saved = load_file(folder / "weights.safetensors")
    assert "decoder.embed.weight" in saved
    assert "decoder.output.weight" not in saved
    twin = EncoderDecoder(given(D), Decoder(DecoderConfig(**SIZES, tied=True), V, D), Likelihood())
    load_weights(twin, folder)
    torch.testing.assert_close(twin.decoder.output.weight, averaged)
    assert sum(p.numel() for p in twin.parameters()) == sum(p.numel() for p in saved.values())


def test_a_shortlist_of_a_tied_model_has_its_probabilities():
    tied, _ = pair()
    context, _ = data()
    model = EncoderDecoder(given(D), tied.eval(), Likelihood())
    tokens = [0, 1, 2, 3, 5, 8, 30]
    small = TorchStepper(model.decoder.shortlisted(torch.tensor(tokens)))
    whole = TorchStepper(model)
    begun = tied.start(context)  # the shortlist is of the output layer alone
    mine = small.step(begun, np.array([4, 5, 6])).log_probs
    full = whole.step(begun, np.array([5, 8, 30])).log_probs[:, tokens]
    kept = full - np.log(np.exp(full).sum(1, keepdims=True))
    np.testing.assert_allclose(mine[:, 2:], kept[:, 2:], atol=1e-10)


def test_an_export_keeps_it_once_and_steps_the_same():
    pytest.importorskip("onnx")
    from sightline.export.graphs import start_graph, step_graph

    tied, apart = (decoder.float().eval() for decoder in pair())
    step = step_graph(tied, "int16")
    saved = len(step_graph(apart, "int16").SerializeToString()) - len(step.SerializeToString())
    assert saved > 2 * V * 12  # the matrix in 16 bits
    ours = GraphStepper(step, start_graph(tied, D, "int16"))
    theirs = TorchStepper(tied)
    context = every(np.random.default_rng(0).normal(size=(B, M, D)).astype(np.float32))
    tokens = np.array([4, 9, 33])
    found, wanted = (s.step(s.start(context), tokens).log_probs for s in (ours, theirs))
    np.testing.assert_allclose(found[:, 2:], wanted[:, 2:], atol=1e-3)


def test_sizes_that_do_not_agree_are_refused():
    plain = {"output": "plain", "tied": True, "attention": AttentionConfig(kind="none")}
    with pytest.raises(ConfigError, match=r"takes 7 numbers and an embedding has 12"):
        Decoder(DecoderConfig(embedding=12, hidden=7, **plain), V)
    assert Decoder(DecoderConfig(embedding=7, hidden=7, **plain), V).output.weight.shape == (V, 7)

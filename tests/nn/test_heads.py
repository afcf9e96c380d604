"""Heads: pointers against the paper's equations, toy models that learn, and their exports."""

import numpy as np
import pytest
import torch

from given import GraphStepper, every, given, tensors, vectors
from sightline import search
from sightline.config import AttentionConfig, DecoderConfig, LossConfig
from sightline.data.vocabulary import BEGIN, END, PAD, SPECIALS, UNKNOWN
from sightline.errors import ConfigError
from sightline.nn.decoder import Decoder
from sightline.nn.deep_fusion import FusedDecoder
from sightline.nn.model import Batch, EncoderDecoder, pad
from sightline.nn.objectives import Likelihood
from sightline.nn.posterior import has_posterior
from sightline.nn.stepper import TorchEncoder, TorchStepper
from sightline.search.steppers import SearchError
from sightline.training.self_critical import SelfCritical
from sightline.types import ContextSet

S, D, B, M = len(SPECIALS), 3, 3, 5
NONE = AttentionConfig(kind="none", size=6)
POINTERS = {
    "as in the paper": DecoderConfig(
        embedding=4, hidden=7, attention=NONE, output="plain", head="pointer"
    ),
    "deep, gru, cold": DecoderConfig(
        cell="gru",
        embedding=4,
        hidden=7,
        attention=AttentionConfig(kind="none", size=6, temperature=0.5),
        head="pointer",
    ),
    "with a glimpse": DecoderConfig(
        embedding=4, hidden=7, attention=AttentionConfig(size=6), head="pointer"
    ),
    "every entry": DecoderConfig(
        cell="rnn",
        layers=2,
        embedding=4,
        hidden=7,
        attention=AttentionConfig(kind="location", size=6, filters=2, width=3),
        context=("state", "first", "every"),
        output="plain",
        head="pointer",
    ),
}
LENGTHS = (5, 3, 1)


def ragged(seed=0):
    values = np.random.default_rng(seed).normal(size=(B, M, D)).astype(np.float32)
    mask = np.arange(M) < np.array(LENGTHS)[:, None]
    return ContextSet(values * mask[..., None], mask)


def decoder_of(name, seed=0):
    torch.manual_seed(seed)
    decoder = Decoder(POINTERS[name], 0, D).eval()
    with torch.no_grad():
        for parameter in decoder.parameters():  # far from even
            parameter.mul_(2)
    return decoder


def by_hand(decoder, values, tokens):
    """log p of one example's tokens, Vinyals et al. 2015 eq. 3, in NumPy; LSTM and plain output."""
    w = {name: p.detach().double().numpy() for name, p in decoder.named_parameters()}

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    def enter(part):
        inner = w[f"enter_state.{part}.0.weight"] @ values.mean(0) + w[f"enter_state.{part}.0.bias"]
        outer = w[f"enter_state.{part}.2.weight"] @ np.maximum(inner, 0)
        return np.tanh(outer + w[f"enter_state.{part}.2.bias"])

    h, c = enter(0), enter(1)
    before = w["output.specials"][BEGIN]
    ends = w["output.specials"][END]
    places = {END: ends} | {S + i: vector for i, vector in enumerate(values)}
    log_probs = []
    for token in tokens:
        x = w["output.embed.weight"] @ before + w["output.embed.bias"]
        gates = w["recurrent.weight_ih_l0"] @ x + w["recurrent.weight_hh_l0"] @ h
        gates = gates + w["recurrent.bias_ih_l0"] + w["recurrent.bias_hh_l0"]
        i, f, g, o = np.split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        u = {
            place: w["output.attention.score.weight"][0]
            @ np.tanh(
                w["output.attention.key.weight"] @ vector
                + w["output.attention.key.bias"]
                + w["output.attention.query.weight"] @ h
            )
            for place, vector in places.items()
        }
        total = np.log(sum(np.exp(score) for score in u.values()))
        log_probs.append({place: score - total for place, score in u.items()})
        before = places[token]
    return log_probs


def test_pointers_are_the_equations_of_the_paper():
    decoder, context = decoder_of("as in the paper"), ragged()
    targets = [[S + 4, S, S + 2, END], [S + 1, S + 1, END], [S, END]]
    found = search.rescore(TorchStepper(decoder), context, targets)
    inputs = pad([[BEGIN, *row[:-1]] for row in targets])
    with torch.no_grad():
        forced = decoder.log_probs(decoder(inputs, decoder.start(tensors(context))))
    for row, (tokens, length) in enumerate(zip(targets, LENGTHS, strict=True)):
        expected = by_hand(decoder, context.values[row, :length].astype(float), tokens)
        for t, token in enumerate(tokens):
            assert found[row].log_probs[t] == pytest.approx(expected[t][token], abs=1e-5)
            wanted = np.full(S + M, -np.inf)
            wanted[list(expected[t])] = list(expected[t].values())
            np.testing.assert_allclose(forced[row, t].numpy(), wanted, atol=1e-5)
            pointed = np.exp(wanted[S:])  # the weights are the output
            np.testing.assert_allclose(found[row].attention[t], pointed, atol=1e-5)


@pytest.mark.parametrize("name", POINTERS)
def test_stepping_equals_teacher_forcing_and_a_batch_its_singles(name):
    decoder, context = decoder_of(name), ragged()
    targets = [[S + 4, S, S + 2, END], [S + 1, S + 1, END], [S, END]]
    stepper = TorchStepper(decoder)
    together = search.rescore(stepper, context, targets)
    batch = pad([[BEGIN, *row] for row in targets])
    with torch.no_grad():
        decoded = decoder(batch[:, :-1], decoder.start(tensors(context)))
        forced = decoder.log_probs(decoded)
    for row, length in enumerate(LENGTHS):
        steps, tokens = range(len(targets[row])), targets[row]
        log_probs = forced[row, steps, tokens].numpy()
        np.testing.assert_allclose(together[row].log_probs, log_probs, atol=1e-5)
        one = every(context.values[row : row + 1, :length])
        (alone,) = search.rescore(stepper, one, [tokens])
        np.testing.assert_allclose(alone.log_probs, log_probs, atol=1e-5)


@pytest.mark.parametrize("weights", ["int16", "int8"])
@pytest.mark.parametrize("name", POINTERS)
def test_exported_pointers_step_as_in_torch(name, weights):
    pytest.importorskip("onnx")
    from sightline.export.graphs import start_graph, step_graph

    decoder, context = decoder_of(name), ragged()
    theirs = TorchStepper(decoder)
    ours = GraphStepper(step_graph(decoder, weights), start_graph(decoder, D, weights))
    bias = np.zeros((B, M), np.float32)
    bias[0, 2] = 2.0
    steered = ContextSet(context.values, context.mask, bias=bias)
    close = 2e-3 if weights == "int16" else 0.1
    for inputs in (context, steered):
        mine, its = ours.start(inputs), theirs.start(inputs)
        rows = np.repeat(np.arange(B), 2)
        mine, its = ours.select(mine, rows), theirs.select(its, rows)
        for step in range(4):
            tokens = np.full(2 * B, BEGIN) if step == 0 else S + np.arange(2 * B) % 2 * (step < 2)
            tokens = tokens[: len(its)]
            found, wanted = ours.step(mine, tokens), theirs.step(its, tokens)
            assert found.log_probs.shape == (len(its), S + M)
            assert (np.isneginf(found.log_probs) == np.isneginf(wanted.log_probs)).all()
            known = np.isfinite(wanted.log_probs)
            np.testing.assert_allclose(found.log_probs[known], wanted.log_probs[known], atol=close)
            np.testing.assert_allclose(found.attention, wanted.attention, atol=close)
            mine, its = found.state, wanted.state
            if step == 1:  # the second example is finished
                rows = np.array([1, 0, 4, 5])
                mine, its = ours.select(mine, rows), theirs.select(its, rows)
    first, second = (theirs.step(theirs.start(x), np.full(B, BEGIN)) for x in (context, steered))
    assert second.attention[0, 2] > first.attention[0, 2]


def learn(model, draw, steps, rate=0.01):
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    model.train()
    for step in range(steps):
        inputs, targets = draw(step)
        loss, _ = model.loss(Batch(pad(targets), inputs))
        optimiser.zero_grad()
        loss.total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimiser.step()
    return model.eval()


def both(model, **options):
    from sightline.export.graphs import start_graph, step_graph

    graphs = step_graph(model.decoder, "int16"), start_graph(model.decoder, 1, "int16")
    return TorchStepper(model, **options), GraphStepper(*graphs, **options)


def same_search(model, inputs, max_length, **options):
    """The best hypotheses of a beam, which PyTorch and the exported graphs agree on."""
    pytest.importorskip("onnx")
    context = TorchEncoder(model).encode(inputs)
    beam = search.BeamOptions(size=3, max_length=max_length)
    theirs, ours = (
        [found[0] for found in search.finish(search.beam(stepper, context, beam))]
        for stepper in both(model, **options)
    )
    for mine, its in zip(ours, theirs, strict=True):
        assert mine.tokens == its.tokens
        np.testing.assert_allclose(mine.log_probs, its.log_probs, atol=0.02)
    return theirs


def test_a_pointer_network_learns_to_sort():
    """Four or five different digits, each by its position, ascending; it ends by itself."""

    def draw(seed, examples=64):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(4, 6, examples)
        digits = rng.random((examples, 10)).argsort(1)[:, :5, None]
        values = digits.astype(np.float32) / 3 - 1.5
        mask = np.arange(5) < lengths[:, None]
        targets = [
            [BEGIN, *(S + np.argsort(row[:length, 0])).tolist(), END]
            for row, length in zip(values, lengths, strict=True)
        ]
        return vectors(torch.from_numpy(values), torch.from_numpy(mask)), targets

    torch.manual_seed(0)
    config = DecoderConfig(
        embedding=16,
        hidden=48,
        attention=AttentionConfig(kind="none", size=32),
        output="plain",
        head="pointer",
    )
    model = EncoderDecoder(given(1), Decoder(config, 0, 1), Likelihood())
    learn(model, draw, steps=400)
    inputs, targets = draw(10_000, examples=50)
    found = same_search(model, inputs, max_length=7)
    right = [list(h.tokens) == row[1:] for h, row in zip(found, targets, strict=True)]
    assert np.mean(right) > 0.8
    assert all(hypothesis.finished for hypothesis in found)


def test_a_class_is_one_token_and_has_no_end():
    """Whether a set of numbers is positive in the mean: two classes."""
    classes = 2

    def draw(seed, examples=64):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(examples, 4, 1)).astype(np.float32)
        positive = (values.mean((1, 2)) > 0).astype(int)
        return vectors(torch.from_numpy(values)), [[BEGIN, S + int(c)] for c in positive]

    torch.manual_seed(0)
    config = DecoderConfig(embedding=8, hidden=16, attention=AttentionConfig(size=8), head="class")
    model = EncoderDecoder(given(1), Decoder(config, S + classes, 1), Likelihood())
    learn(model, draw, steps=120)
    inputs, targets = draw(10_000, examples=50)
    found = same_search(model, inputs, max_length=1, end=None)
    assert all(len(hypothesis.tokens) == 1 for hypothesis in found)
    right = [h.tokens[0] == row[1] for h, row in zip(found, targets, strict=True)]
    assert np.mean(right) > 0.9
    context = TorchEncoder(model).encode(inputs)
    stepper = TorchStepper(model, end=None)
    log_probs = stepper.step(stepper.start(context), np.full(50, BEGIN)).log_probs
    np.testing.assert_allclose(np.exp(log_probs[:, S:]).sum(1), 1, rtol=1e-5)  # only classes


def test_label_smoothing_of_classes_is_over_the_classes():
    torch.manual_seed(0)
    config = DecoderConfig(embedding=4, hidden=5, attention=NONE, head="class")
    loss = Likelihood(LossConfig(label_smoothing=0.2))
    model = EncoderDecoder(given(D), Decoder(config, S + 3, D), loss)
    values = torch.randn(4, 2, D)
    targets = torch.tensor([[BEGIN, S], [BEGIN, S + 2], [BEGIN, S + 1], [BEGIN, S]])
    total = model.loss(Batch(targets, vectors(values)))[0].total
    mask = torch.ones(4, 2, dtype=torch.bool)
    decoded = model.decoder(targets[:, :1], model.decoder.start(ContextSet(values, mask)))
    logits = model.decoder.output(decoded.readouts)[:, 0, S:]
    expected = torch.nn.functional.cross_entropy(logits, targets[:, 1] - S, label_smoothing=0.2)
    torch.testing.assert_close(total, expected)


def test_pointers_learn_with_scheduled_sampling_and_self_critically():
    torch.manual_seed(0)
    decoder = Decoder(POINTERS["as in the paper"], 0, D)
    context, targets = ragged(), pad([[BEGIN, S + 4, S, END], [BEGIN, S + 1, END], [BEGIN, S, END]])
    inputs = vectors(torch.from_numpy(context.values), torch.from_numpy(context.mask))

    def reward(items, written):
        return np.array([float(S in tokens) - 0.1 * len(tokens) for tokens in written])

    for objective in (Likelihood(scheduled_sampling=0.9), SelfCritical(reward, 20, 4)):
        model = EncoderDecoder(given(D), decoder, objective).train()
        optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
        history = []
        for _ in range(30):
            loss, _ = model.loss(Batch(targets, inputs, progress=0.5))
            optimiser.zero_grad()
            loss.total.backward()
            assert all(
                bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None
            )
            optimiser.step()
            history.append(loss.parts.get("reward", -loss.nats))
        assert np.mean(history[-5:]) > np.mean(history[:5]) + 0.1


def test_what_has_no_meaning_is_refused():
    def pointer(**options):
        settings = {"embedding": 4, "hidden": 7, "attention": NONE, "head": "pointer"}
        return DecoderConfig(**settings | options)

    with pytest.raises(ConfigError, match="nothing to point at"):
        Decoder(pointer(), 0)
    with pytest.raises(ConfigError, match=r"model.tied .* model.head=pointer"):
        Decoder(pointer(tied=True), 0, D)
    with pytest.raises(ConfigError, match=r"model.sampled_softmax .* model.head=pointer"):
        Decoder(pointer(sampled_softmax=3), 0, D)
    with pytest.raises(ConfigError, match=r"model.attention.hard"):
        Decoder(pointer(attention=AttentionConfig(hard=True)), 0, D)
    smooth = Likelihood(LossConfig(label_smoothing=0.1))
    with pytest.raises(ConfigError, match=r"loss.label_smoothing .* model.head=pointer"):
        EncoderDecoder(given(D), Decoder(pointer(), 0, D), smooth)
    with pytest.raises(ConfigError, match=r"deep fusion needs model.head=vocabulary"):
        FusedDecoder(pointer(), 9, D, DecoderConfig(attention=NONE))
    assert not has_posterior(Decoder(pointer(gate=False), 0, D))


def test_steering_needs_attention_or_pointers():
    bias = np.zeros((B, M), np.float32)
    context = ragged()
    decoder = Decoder(DecoderConfig(embedding=4, hidden=7, attention=NONE), 9, D)
    with pytest.raises(SearchError, match="no attention that could be steered"):
        TorchStepper(decoder).start(ContextSet(context.values, context.mask, bias=bias))
    pointers = TorchStepper(decoder_of("as in the paper"))
    with pytest.raises(SearchError, match="one number for each position"):
        pointers.start(ContextSet(context.values, context.mask, bias=bias[:, 1:]))


def test_tokens_left_out_of_a_pointers_softmax():
    stepper = TorchStepper(decoder_of("as in the paper")).without([END]).without([S])
    result = stepper.step(stepper.start(ragged()), np.full(B, BEGIN))
    left_out = [PAD, BEGIN, END, UNKNOWN, S]
    assert np.isneginf(result.log_probs[:, left_out]).all()
    np.testing.assert_allclose(np.exp(result.log_probs[:2]).sum(1), 1, rtol=1e-5)

"""Exported graphs step as the PyTorch model does, for every attention, cell and entry."""

import numpy as np
import onnxruntime
import pytest
import torch

from given import GraphStepper, encoded, every, sentences
from sightline import search
from sightline.config import AttentionConfig, DecoderConfig, RecurrentConfig
from sightline.data.vocabulary import END, PAD, UNKNOWN
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.text import TextEncoder
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.nn.stepper import TorchStepper
from sightline.types import ContextSet, Inputs, Stream

pytest.importorskip("onnx")
from sightline.export.encoder_graphs import encoder_graph
from sightline.export.graph_writer import Graph, rounded_for_pairs
from sightline.export.graphs import start_graph, step_graph

V, D, B, M = 23, 9, 4, 7
CLOSE = 5e-4  # weights are kept in 16 bits
NONE = AttentionConfig(kind="none")
DECODERS = {
    "soft": DecoderConfig(),
    "hard": DecoderConfig(attention=AttentionConfig(hard=True)),
    "hard, one choice": DecoderConfig(attention=AttentionConfig(hard=True, describe="argmax")),
    "hard, one choice, looking back": DecoderConfig(
        attention=AttentionConfig("location", hard=True, describe="argmax", cumulative=True)
    ),
    "cold": DecoderConfig(attention=AttentionConfig(temperature=0.3)),
    "top_k": DecoderConfig(attention=AttentionConfig(top_k=2)),
    "top_k of more than there is": DecoderConfig(attention=AttentionConfig(top_k=50)),
    "smoothing": DecoderConfig(attention=AttentionConfig(smoothing=True)),
    "window": DecoderConfig(attention=AttentionConfig(window=1)),
    "location": DecoderConfig(attention=AttentionConfig(kind="location", filters=3, width=5)),
    "coverage": DecoderConfig(
        attention=AttentionConfig(kind="location", filters=3, width=3, cumulative=True)
    ),
    "cumulative window": DecoderConfig(attention=AttentionConfig(window=2, cumulative=True)),
    "all of it": DecoderConfig(
        attention=AttentionConfig(
            kind="location", filters=2, width=3, temperature=0.6, top_k=3, window=2, smoothing=True
        )
    ),
    "gru": DecoderConfig(cell="gru", gate=False),
    "vanilla": DecoderConfig(cell="rnn", output="plain"),
    "three layers": DecoderConfig(layers=3),
    "two gru layers": DecoderConfig(cell="gru", layers=2, context=("state", "every")),
    "no entry": DecoderConfig(context=()),
    "every entry": DecoderConfig(context=("state", "first", "every"), layers=2),
    "Show and Tell": DecoderConfig(attention=NONE, context=("first",), output="plain"),
    "at every step": DecoderConfig(attention=NONE, context=("every",), cell="rnn"),
    "simple": DecoderConfig(attention=NONE, context=("state", "every"), cell="gru", layers=2),
}
ENCODERS = {
    "gru": RecurrentConfig(),
    "lstm": RecurrentConfig(cell="lstm"),
    "vanilla": RecurrentConfig(cell="rnn"),
    "two layers": RecurrentConfig(cell="lstm", layers=2),
    "one way": RecurrentConfig(bidirectional=False, layers=2),
    "summary": RecurrentConfig(summary=True),
    "one-way summary": RecurrentConfig(cell="lstm", summary=True, bidirectional=False),
}


def small(config, **sizes):
    if isinstance(config, RecurrentConfig):
        return RecurrentConfig(**{**vars(config), "embedding": 6, "hidden": 5})
    attention = AttentionConfig(**{**vars(config.attention), "size": 8})
    sizes = {"embedding": 6, "hidden": 10, "attention": attention, **sizes}
    return DecoderConfig(**{**vars(config), **sizes})


def lively(module):
    """Weights that matter: nothing is nearly linear or nearly uniform."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(2 if parameter.dim() > 1 else 1)
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module.eval()


def both(config, without=(), dimension=D):
    """The same random decoder in PyTorch and exported."""
    torch.manual_seed(1)
    decoder = lively(Decoder(small(config), V, dimension))
    graphs = step_graph(decoder, "int16"), start_graph(decoder, dimension, "int16")
    return TorchStepper(decoder).without(without), GraphStepper(*graphs, without=without)


def both_reading(config, encoder, without=()):
    """The same with a text encoder: what reads and what steps, in PyTorch and exported."""
    torch.manual_seed(1)
    text = TextEncoder(small(encoder), V)
    decoder = Decoder(small(config), V, text.dimension)
    model = lively(EncoderDecoder(text, decoder, Likelihood()))
    graphs = step_graph(decoder, "int16"), start_graph(decoder, text.dimension, "int16")
    ours = GraphStepper(*graphs, encoder_graph(text, "int16"), without=without)
    theirs = TorchStepper(model).without(without)
    return theirs, lambda tokens: encoded(sentences(tokens), model), ours


def vectors(seed=0, examples=B, positions=M):
    """A context set; the last example has fewer positions."""
    values = np.random.default_rng(seed).normal(size=(examples, positions, D)).astype(np.float32)
    mask = np.ones((examples, positions), dtype=bool)
    mask[-1, -2:] = False
    return ContextSet(values, mask)


def tokens_of(*lengths):
    rng = np.random.default_rng(5)
    tokens = np.full((len(lengths), max(lengths)), PAD)
    for row, length in enumerate(lengths):
        tokens[row, :length] = rng.integers(UNKNOWN + 1, V, length)
    return tokens


def assert_same_steps(ours, theirs, context, theirs_context=None, steps=6):
    """From the first state on, through a widening of the beam and the end of an example."""
    rng = np.random.default_rng(3)
    mine, its = ours.start(context), theirs.start(theirs_context or context)
    tokens = np.full(len(its), theirs.begin)
    for step in range(steps):
        found, wanted = ours.step(mine, tokens), theirs.step(its, tokens)
        np.testing.assert_allclose(found.log_probs, wanted.log_probs, atol=CLOSE, rtol=CLOSE)
        assert (found.attention is None) == (wanted.attention is None)
        if wanted.attention is not None:
            np.testing.assert_allclose(found.attention, wanted.attention, atol=CLOSE)
        mine, its = found.state, wanted.state
        count = len(its)
        if step == 0:  # three rows for each example
            rows = np.repeat(np.arange(count), 3)
        elif step == 2:  # the second example is finished; rows change places inside the others
            rows = np.array([b * 3 + r for b in range(count // 3) if b != 1 for r in (2, 0, 0)])
        else:
            rows = np.arange(count)
        mine, its = ours.select(mine, rows), theirs.select(its, rows)
        tokens = rng.integers(END, V, len(rows))


@pytest.mark.parametrize("name", DECODERS)
def test_every_decoder_steps_as_in_torch(name):
    theirs, ours = both(DECODERS[name])
    assert_same_steps(ours, theirs, vectors())


@pytest.mark.parametrize("name", ENCODERS)
def test_every_text_encoder_reads_as_in_torch_padding_included(name):
    theirs, encode, ours = both_reading(DECODERS["soft"], ENCODERS[name])
    tokens = tokens_of(7, 3, 1, 5)
    assert_same_steps(ours, theirs, ours.encode(tokens), encode(tokens))


@pytest.mark.parametrize("name", ["location", "window", "all of it", "top_k"])
def test_padding_is_never_looked_at(name):
    theirs, encode, ours = both_reading(DECODERS[name], ENCODERS["gru"])
    tokens = tokens_of(7, 2, 1, 6)
    assert_same_steps(ours, theirs, ours.encode(tokens), encode(tokens))


@pytest.mark.parametrize("name", ["soft", "location", "every entry", "simple"])
def test_a_batch_equals_its_singles_and_torch(name):
    theirs, encode, ours = both_reading(DECODERS[name], ENCODERS["gru"], without=[UNKNOWN])
    options = search.BeamOptions(size=4, max_length=9, n_best=3, length_penalty=0.7)
    inputs = tokens_of(7, 3, 1, 5)
    together = search.finish(search.beam(ours, ours.encode(inputs), options))
    in_torch = search.finish(search.beam(theirs, encode(inputs), options))
    for row, found in enumerate(together):
        length = int((inputs[row] != PAD).sum())
        one = ours.encode(inputs[row : row + 1, :length])
        (alone,) = search.finish(search.beam(ours, one, options))
        for mine, single, its in zip(found, alone, in_torch[row], strict=True):
            assert mine.tokens == single.tokens == its.tokens
            assert UNKNOWN not in mine.tokens
            np.testing.assert_allclose(mine.log_probs, single.log_probs, atol=1e-5)
            np.testing.assert_allclose(mine.log_probs, its.log_probs, atol=CLOSE)


def whole_products(graph):
    """The weights (in, out) of a graph's products of whole numbers."""
    from onnx import numpy_helper

    stored = {each.name: numpy_helper.to_array(each) for each in graph.graph.initializer}
    nodes = [node for node in graph.graph.node if node.op_type == "MatMulInteger"]
    return [stored[node.input[1]] for node in nodes if node.input[1] in stored]


def test_sums_of_two_products_of_eight_bits_fit_sixteen():
    """What x86's vpmaddubsw makes of them, where there is no VNNI; with any values there can be."""
    config = small(DECODERS["soft"], hidden=128, embedding=128)
    torch.manual_seed(0)
    decoder = Decoder(config, 300, 128)
    graphs = [step_graph(decoder, "int8"), start_graph(decoder, 128, "int8")]
    weights = [weight for graph in graphs for weight in whole_products(graph)]
    assert len(weights) >= 5
    for weight in weights:
        assert weight.dtype == np.int8
        assert np.abs(weight).max() > 64  # more than 7 of the 8 bits are used
        pairs = weight.astype(int).reshape(-1, 2, weight.shape[1])
        # bytes 0 to 255, at their worst: 255 where the weight has the one sign, 0 elsewhere
        most = 255 * np.maximum(pairs, 0).sum(axis=1).max()
        least = 255 * np.minimum(pairs, 0).sum(axis=1).min()
        assert -(2**15) <= least < 0 < most < 2**15


def test_mixing_bytes_fits_sixteen_bits_too():
    """Shares are 0 to 127 and context rows −127 to 127, whatever the values are."""
    rng = np.random.default_rng(0)
    values = 1e4 * rng.standard_cauchy((2, 3, 160)).astype(np.float32)
    shares = np.array([[[1, 0, 0], [0.2, 0.5, 0.3]], [[0, 0.999, 0.001], [1, 1, 1]]], np.float32)
    weight = rng.normal(size=(130, 160)).astype(np.float32)
    g = Graph("int8")
    mixed = g.mix("shares", *g.product_in_bytes("values", torch.from_numpy(weight)))
    *_, node = (each for each in g.nodes if each.op_type == "MatMulInteger")
    coarse, rows = (g("Cast", name, to=1) for name in node.input[:2])
    inputs = {name: (1, [None] * 3) for name in ("values", "shares")}
    outputs = {"keys": mixed, "mixed": coarse, "factors": rows}  # names of three dimensions
    graph = g.model(inputs, outputs)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    mixed, coarse, rows = session.run(None, {"values": values, "shares": shares})
    assert (coarse.min(), coarse.max()) == (0, 127)
    assert (np.abs(rows).max(axis=2) == 127).all()
    assert 2 * 127 * 127 < 2**15
    wanted = shares @ (values @ weight.T)
    error = np.abs(mixed - wanted).max(axis=(1, 2)) / np.abs(wanted).max(axis=(1, 2))
    assert (error < 0.05).all()


@pytest.mark.parametrize("bounded", [False, True])
def test_a_product_of_whole_numbers_is_the_product(bounded):
    """Also as onnxruntime rewrites it: row by row, with its bias."""
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=(130, 160)), rng.normal(size=130)
    values = np.tanh(rng.normal(size=(4, 160)))
    values[1] *= 0.01 if bounded else 100
    g = Graph("int8")
    tensors = [torch.tensor(each, dtype=torch.float32) for each in (weight, bias)]
    graph = g.model(
        {"x": (1, ["n", 160])}, {"y": g.linear("x", *tensors, bounded=bounded)}
    ).SerializeToString()
    (found,) = onnxruntime.InferenceSession(graph).run(None, {"x": values.astype(np.float32)})
    wanted = values @ weight.T + bias
    error = np.abs(found - wanted).max(axis=1)
    assert (error < 0.02 * (30 if bounded else np.abs(wanted).max(axis=1))).all()


def test_weights_that_would_not_fit_in_pairs_are_made_smaller():
    weight = np.array([[1.0, 1.0, -1.0], [1.0, -1.0, -1.0], [0.5, 0.5, 0.0]], np.float32)
    small, scale = rounded_for_pairs(weight)
    np.testing.assert_array_equal(small, [[64, 127, -64], [64, -127, -64], [32, 64, 0]])
    np.testing.assert_allclose(small * scale, weight, atol=scale.max())


@pytest.mark.parametrize(
    "name", ["soft", "location", "gru", "vanilla", "two gru layers", "Show and Tell"]
)
def test_eight_bits_stay_close_and_a_batch_equals_its_singles(name):
    """In sizes whose products are of whole numbers."""
    torch.manual_seed(0)
    attention = AttentionConfig(**{**vars(DECODERS[name].attention), "size": 128})
    config = small(DECODERS[name], hidden=128, embedding=128, attention=attention)
    size, words = 128, 300
    decoder = Decoder(config, words, size).eval()
    graphs = step_graph(decoder, "int8"), start_graph(decoder, size, "int8")
    kinds = {node.op_type for graph in graphs for node in graph.graph.node}
    assert "MatMulInteger" in kinds
    ours, theirs = GraphStepper(*graphs), TorchStepper(decoder)
    inputs = np.random.default_rng(0).normal(size=(B, M, size)).astype(np.float32)
    inputs[1] *= 100  # a row's rounding is its own
    mine, its = ours.start(every(inputs)), theirs.start(every(inputs))
    alone = ours.start(every(inputs[2:3]))
    for token in (ours.begin, 7, 9):
        tokens = np.full(B, token)
        found, wanted = ours.step(mine, tokens), theirs.step(its, tokens)
        single = ours.step(alone, tokens[:1])
        errors = np.abs(found.log_probs - wanted.log_probs)[[0, 2, 3], END:]
        assert 0 < errors.max() < 0.05
        np.testing.assert_allclose(single.log_probs[0], found.log_probs[2], atol=1e-5)
        mine, its, alone = found.state, wanted.state, single.state


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_a_language_model_steps_as_in_torch(cell):
    torch.manual_seed(0)
    config = small(DecoderConfig(cell=cell, layers=2, attention=NONE, context=(), output="plain"))
    decoder = Decoder(config, V).eval()
    ours = GraphStepper(step_graph(decoder, "int16"))
    assert_same_steps(ours, TorchStepper(decoder), ContextSet.empty(B))


def test_steering_is_added_to_the_scores():
    theirs, ours = both(DECODERS["soft"])
    bias = np.zeros((B, M), np.float32)
    bias[:, 2], bias[1, 4] = 3.0, -2.0
    context = vectors()
    assert_same_steps(ours, theirs, ContextSet(context.values, context.mask, bias=bias))


class Frames(torch.nn.Module):
    """An encoder of two streams: frames of any number, and one vector for each example."""

    def __init__(self):
        super().__init__()
        self.frame, self.whole = torch.nn.Linear(40, 20), torch.nn.Linear(3, 20)

    def example(self):
        frames = Stream(torch.zeros(2, 4, 40), torch.ones(2, 4, dtype=torch.bool))
        return Inputs(2, {"frames": frames, "whole": Stream(torch.zeros(2, 3))})

    def forward(self, inputs):
        frames, whole = inputs["frames"], inputs["whole"]
        values = torch.tanh(self.frame(frames.values) + self.whole(whole.values)[:, None])
        return ContextSet(values, frames.mask)


@pytest.mark.parametrize("weights", ["int16", "int8"])
def test_any_encoder_becomes_a_graph_of_its_streams(weights):
    torch.manual_seed(0)
    encoder = Frames().eval()
    graph = encoder_graph(encoder, weights)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    assert [each.name for each in session.get_inputs()] == ["frames", "frames_mask", "whole"]
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(3, 7, 40)).astype(np.float32)
    mask = np.arange(7) < np.array([[7], [2], [5]])
    whole = rng.normal(size=(3, 3)).astype(np.float32)
    values, exists = session.run(
        ["values", "mask"], {"frames": frames, "frames_mask": mask, "whole": whole}
    )
    np.testing.assert_array_equal(exists > 0, mask)
    inputs = Inputs(3, {"frames": Stream(frames, mask), "whole": Stream(whole)})
    with torch.no_grad():
        expected = encoder(inputs.map(torch.from_numpy)).values.numpy()
    np.testing.assert_allclose(values, expected, atol=1e-3 if weights == "int16" else 0.05)

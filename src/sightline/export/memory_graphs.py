"""A memory network's decoder as ONNX graphs: the question's vector, then one hop a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sightline.data.vocabulary import PAD
from sightline.export.attention_graph import EMPTY, likeliest
from sightline.export.graph_writer import FLOAT, INT64, Graph, Weights
from sightline.nn.memory import MemoryDecoder
from sightline.runtime.model_folder import LEADING

if TYPE_CHECKING:
    import onnx

NOTHING = -1e30  # the bias of a position that does not exist


def start_graph(decoder: MemoryDecoder, context_size: int, weights: Weights) -> onnx.ModelProto:
    """values (B, P, S · d), mask (B, P) → keys, the same values; h0, the question; hop, 0."""
    g, size = Graph(weights), decoder.memory.size
    at = 0 if decoder.memory.tying == "adjacent" else 2
    question = g("Squeeze", g("Slice", "values", g.shape(0), g.shape(1), g.shape(1)), g.shape(1))
    bounds = g.shape(at * size), g.shape((at + 1) * size), g.shape(1)
    zero = g("Mul", g("ReduceSum", "mask", g.shape(1), keepdims=1), g.number(0.0))  # (B, 1)
    outputs = {
        "keys": g("Identity", "values"),
        "h0": g("Slice", question, *bounds),
        "hop": zero,
    }
    sizes = ("examples", "positions", context_size)
    return g.model({"values": (FLOAT, sizes), "mask": (FLOAT, sizes[:2])}, outputs)


def step_graph(decoder: MemoryDecoder, weights: Weights) -> onnx.ModelProto:
    """One hop of all rows; they have all had as many."""
    g, config, vocab = Graph(weights), decoder.memory, decoder.vocab_size
    slots, size = decoder.slots_in_all, config.size
    hop = g("Cast", g("ReduceMax", "hop", keepdims=0), to=INT64)  # ()
    if config.tying == "adjacent":
        key, value = hop, g("Add", hop, g.integer(1))
    else:
        key, value = g.integer(0), g.integer(1)
    facts = g("Reshape", "keys", g.shape(0, 0, slots, size))  # (B, P, S, d)
    queries = g("Reshape", "h0", g.grouped(size, of="keys"))  # (B, K, d)
    by_fact = g("Transpose", g("Gather", facts, key, axis=2), perm=[0, 2, 1])  # (B, d, P)
    after_question = g("Slice", "bias", g.shape(1), g.shape(2**31 - 1), g.shape(1))
    first = g("Slice", "bias", g.shape(0), g.shape(1), g.shape(1))
    never = g("Add", g("Mul", first, g.number(0.0)), g.number(NOTHING))  # the question is no fact
    bias = g("Unsqueeze", g("Concat", never, after_question, axis=1), g.shape(1))  # (B, 1, P)
    scores = g("Add", g("MatMul", queries, by_fact), bias)
    exists = g("Cast", g("Greater", bias, g.number(EMPTY)), to=FLOAT)
    shares = g("Mul", g("Softmax", scores, axis=2), exists)  # (B, K, P)
    if config.hard:
        shares = g("Mul", likeliest(g, shares), exists)
    read = g("Reshape", g("MatMul", shares, g("Gather", facts, value, axis=2)), g.shape(-1, size))
    before = g.linear("h0", decoder.turn.weight) if config.tying == "layerwise" else "h0"
    if config.gate:
        share = g("Sigmoid", g.linear("h0", decoder.gate.weight, g.vector(decoder.gate.bias)))
        state = g("Add", before, g("Mul", share, g("Sub", read, before)))
    else:
        state = g("Add", before, read)
    bias_out = g("Add", g.vector(decoder.output.bias), "forbidden")
    answer = g.linear(state, decoder.output.weight, bias_out)  # (N, V)
    silence = np.full((1, vocab), -np.inf, np.float32)
    silence[0, PAD] = 0.0
    following = g("Add", "hop", g.number(1.0))  # (N, 1)
    is_last = g("GreaterOrEqual", following, g.number(float(config.hops)))
    logits = g("Where", is_last, answer, g.vector(silence))
    outputs = {"log_probs": g("LogSoftmax", logits, axis=1)}
    best_tokens = g.many("TopK", outputs["log_probs"], "count", outputs=2, axis=1)
    outputs |= dict(zip(LEADING, best_tokens, strict=True))
    outputs |= {"weights": g("Flatten", shares, axis=2), "next_h0": state, "next_hop": following}
    inputs: dict[str, tuple[int, tuple[str | int, ...]]] = {
        "tokens": (INT64, ("rows",)),
        "count": (INT64, (1,)),
        "forbidden": (FLOAT, (vocab,)),
        "h0": (FLOAT, ("rows", size)),
        "hop": (FLOAT, ("rows", 1)),
        "keys": (FLOAT, ("examples", "positions", slots * size)),
        "bias": (FLOAT, ("examples", "positions")),
    }
    return g.model(inputs, outputs, {LEADING[1]: INT64})

"""The attention of a step as ONNX: scores, and the weights that are made of them."""

from __future__ import annotations

import numpy as np

from sightline.export.graph_writer import FLOAT, INT64, Graph
from sightline.nn.attention import Attention

EMPTY = -1e29  # a bias below this says that there is no such position
LOWEST = float(np.finfo(np.float32).min)


def scores_of(g: Graph, attention: Attention, query: str, keys: str) -> str:
    """The scores (B, K, M) of queries (N, A) and keys (B, M, A)."""
    config = attention.config
    query = g("Reshape", query, g.grouped(1, config.size, of=keys))  # (B, K, 1, A)
    hidden = g("Add", g("Unsqueeze", keys, g.shape(1)), query)  # (B, K, M, A)
    if config.kind == "location":  # U (F * α₋)
        edge = config.width // 2
        before = g("Unsqueeze", "attended", g.shape(1))  # (N, 1, M)
        seen = g("Conv", before, g.weight(attention.filters.weight), pads=[edge, edge])
        seen = g.product(g("Transpose", seen, perm=[0, 2, 1]), attention.location.weight)
        hidden = g("Add", hidden, g("Reshape", seen, g.grouped("positions", config.size, of=keys)))
    # v · each row as one row times a matrix: onnxruntime takes a quarter of the time that it
    # needs for a matrix times one column
    score = g.vector(attention.score.weight)  # (1, A)
    every = g("Reshape", g("Tanh", hidden), g.shape(-1, config.size))  # (B·K·M, A)
    return g("Reshape", g("Gemm", score, every, transB=1), g.grouped("positions", of=keys))


def attend(g: Graph, attention: Attention, query: str, looks_back: bool) -> str:
    """The weights α (B, K, M) of a query (N, A)."""
    config = attention.config
    scores = scores_of(g, attention, query, "keys")  # (B, K, M)
    scores = g("Add", scores, g("Unsqueeze", "bias", g.shape(1)))
    if attention.is_plain:  # e^-1e30 is 0: nothing else is needed
        return g("Softmax", sharpened(g, scores, config.temperature), axis=2)
    normalised = _normalise(g, attention, g("Flatten", scores, axis=2), looks_back)
    return g("Reshape", normalised, g.grouped("positions", of="keys"))


def likeliest(g: Graph, weights: str) -> str:
    """1 at the largest of the weights (B, K, M), else 0."""
    best = g("ArgMax", weights, axis=2, keepdims=1)
    count = g("Squeeze", g("Shape", weights, start=2, end=3), g.shape(0))
    places = g("Range", g.integer(0), count, g.integer(1))  # (M,)
    return g("Cast", g("Equal", places, best), to=FLOAT)


def _normalise(g: Graph, attention: Attention, scores: str, looks_back: bool) -> str:
    """As Attention.normalise of scores (N, M), which the mask is in."""
    config = attention.config
    allowed = g("Greater", scores, g.number(EMPTY))
    if config.window and looks_back:
        allowed = _window(g, allowed, config.window, "last" if config.cumulative else "attended")
    scores = g("Where", allowed, scores, g.number(LOWEST))
    if config.top_k:  # of at least top_k places, however short the context is
        places = g("Pad", scores, g.shape(0, 0, 0, config.top_k), g.number(LOWEST))
        best, _ = g.many("TopK", places, g.shape(config.top_k), outputs=2, axis=1)
        least = g("Gather", best, g.shape(config.top_k - 1), axis=1)  # (N, 1)
        allowed = g("And", allowed, g("GreaterOrEqual", scores, least))
    scores = sharpened(g, scores, config.temperature)
    kept = g("Cast", allowed, to=FLOAT)
    if config.smoothing:
        positive = g("Mul", g("Sigmoid", scores), kept)
        total = g("ReduceSum", positive, g.shape(1), keepdims=1)
        return g("Div", positive, g("Clip", total, g.number(1e-30)))
    scores = g("Where", allowed, scores, g.number(LOWEST))
    return g("Mul", g("Softmax", scores, axis=1), kept)


def sharpened(g: Graph, scores: str, temperature: float) -> str:
    return scores if temperature == 1 else g("Div", scores, g.number(temperature))


def _window(g: Graph, allowed: str, reach: int, last: str) -> str:
    """Only within `reach` of the median of the last weights, where there are any."""
    size = g("Squeeze", g("Shape", last, start=1, end=2), g.shape(0))
    positions = g("Range", g.integer(0), size, g.integer(1))  # (M,)
    paid = g("ReduceSum", last, g.shape(1), keepdims=1)
    before = g("Less", g("CumSum", last, g.integer(1)), g("Mul", paid, g.number(0.5)))
    focus = g("ReduceSum", g("Cast", before, to=INT64), g.shape(1), keepdims=1)  # (N, 1)
    near = g("LessOrEqual", g("Abs", g("Sub", positions, focus)), g.integer(reach))
    inside = g("And", near, allowed)
    any_inside = g("ReduceMax", g("Cast", inside, to=FLOAT), axes=[1], keepdims=1)
    has_focus = g("Greater", g("Mul", paid, any_inside), g.number(0.0))
    return g("And", allowed, g("Or", near, g("Not", has_focus)))

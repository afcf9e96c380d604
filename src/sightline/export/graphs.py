"""A decoder as ONNX graphs, written out from its equations.

`start` is run once per input, `step` once per token. Whatever a step multiplies the context with
is multiplied into the context set at the start: a step needs ẑ = Σ α_i c_i only through linear
maps (the cell's input, L_z), and W Σ α_i c_i = Σ α_i W c_i. So it mixes the vectors W c_i, made
once, and neither reads W again nor copies a context per beam.

Rows are grouped as in `nn/attention.py`: N = B · K rows share B context sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from sightline.data.vocabulary import END, SPECIALS
from sightline.export.attention_graph import EMPTY, attend, likeliest, scores_of, sharpened
from sightline.export.graph_writer import FLOAT, INT8, INT64, Graph, Weights
from sightline.nn.attention import Attention
from sightline.nn.decoder import Decoder
from sightline.nn.deep_fusion import FusedDecoder, LanguageModelCells
from sightline.nn.heads import CopyHead, PointerHead, VocabularyHead
from sightline.nn.recurrent import GATES, Recurrent
from sightline.runtime.model_folder import LEADING

if TYPE_CHECKING:
    import onnx

NOTHING = -1e30  # the bias of a position that does not exist
LAST = 2**31 - 1  # where a slice ends that goes to the end
Sizes = dict[str, tuple[int, tuple[str | int, ...]]]  # inputs: type and shape


def parts_of(recurrent: Recurrent) -> str:
    return "hc" if recurrent.kind == "lstm" else "h"


def states_of(recurrent: Recurrent) -> list[str]:
    return [f"{part}{layer}" for layer in range(recurrent.layers) for part in parts_of(recurrent)]


def looks_back(decoder: Decoder) -> bool:
    """Whether a step depends on where the steps before it looked."""
    attention = decoder.config.attention
    return decoder.attention is not None and (attention.kind == "location" or attention.window > 0)


def start_graph(
    decoder: Decoder, context_size: int, weights: Weights, into: Graph | None = None
) -> onnx.ModelProto:
    """values (B, M, D), mask (B, M) → keys (B, M, A), mixed (B, M, G), constant and first state.

    For a pointer head also pointer_keys (B, 4 + M, A) and pointer_inputs (B, 4 + M, G); for a
    copying one, of the vectors `tags` (B, K, D) that name tokens, tag_keys (B, K, A).
    """
    g, config = into or Graph(weights), decoder.config
    outputs: dict[str, str] = {}
    mask = g("Unsqueeze", "mask", g.shape(1))  # (B, 1, M)
    total = g("Squeeze", g("MatMul", mask, "values"), g.shape(1))
    count = g("Clip", g("ReduceSum", "mask", g.shape(1), keepdims=1), g.number(1.0))
    mean = g("Div", total, count)  # (B, D)
    for number, part in enumerate(parts_of(decoder.recurrent)):
        if "state" in decoder.entries:  # f_init: h and c of all layers
            first, _, second, _ = cast(Any, decoder.enter_state[number])
            hidden = g("Relu", g.linear(mean, first.weight, first.bias))
            state = g("Tanh", g.linear(hidden, second.weight, second.bias))
        else:
            state = g("Mul", g("ReduceSum", mean, g.shape(1), keepdims=1), g.number(0.0))
            state = g("Expand", state, g.shape(1, config.layers * config.hidden))
        names = [f"{part}{layer}" for layer in range(config.layers)]
        sizes = g.shape(*[config.hidden] * config.layers)
        outputs |= dict(zip(names, g.split(state, sizes, config.layers), strict=True))
    # columns of the embedding, of what enters at every step, of ẑ
    weight, embedding = decoder.recurrent.weights(0)[0], config.embedding
    if "every" in decoder.entries:
        entering = g.linear(mean, decoder.enter_every.weight, decoder.enter_every.bias)
        outputs["constant"] = g.linear(entering, weight[:, embedding : 2 * embedding])
    if "first" in decoder.entries:
        picture = g.linear(mean, decoder.enter_first.weight, decoder.enter_first.bias)
        projected = _project(g, decoder, picture, outputs.get("constant"))
        outputs |= _advance(g, decoder, projected, outputs)
    if decoder.attention is not None:
        key = decoder.attention.key
        outputs["keys"] = g("Add", g.product("values", key.weight), g.vector(key.bias))
        # all that ẑ is multiplied with: the cell's columns for it, and L_z
        read = [weight[:, -context_size:]]
        read += [decoder.from_context.weight] if config.output == "deep" else []
        if weights == "int8":
            outputs["mixed"], outputs["factors"] = g.product_in_bytes("values", *read)
        else:
            outputs["mixed"] = g.product("values", *read)
    if isinstance(decoder.output, PointerHead):
        outputs |= _pointers(g, decoder, decoder.output)
    if isinstance(decoder.output, CopyHead):
        key = decoder.output.pointer.key
        with g.finely():
            outputs["tag_keys"] = g("Add", g.product("tags", key.weight), g.vector(key.bias))
    if isinstance(decoder, FusedDecoder):
        nothing = g("Mul", g("ReduceSum", mean, g.shape(1), keepdims=1), g.number(0.0))  # (B, 1)
        size = g.shape(1, decoder.prior.recurrent.hidden)
        outputs |= {name: g("Expand", nothing, size) for name in _prior_states(decoder)}
    of_values = ("examples", "positions", context_size)
    inputs: Sizes = {"values": (FLOAT, of_values), "mask": (FLOAT, of_values[:2])}
    if isinstance(decoder.output, CopyHead):
        inputs["tags"] = (FLOAT, ("examples", "named", context_size))
    return g.model(inputs, outputs, {"mixed": INT8} if weights == "int8" else None)


def _pointers(g: Graph, decoder: Decoder, head: PointerHead) -> dict[str, str]:
    """Of every token, a special one or a position: its key, and what it is read as.

    It is read as W_x (W_e c + b_e) + b, and for a deep output as its embedding as well.
    """
    specials = g.vector(head.specials[None])  # (1, 4, D)
    examples = g("Concat", g("Shape", "values", start=0, end=1), g.shape(1, 1), axis=0)
    every = g("Concat", g("Expand", specials, examples), "values", axis=1)  # (B, 4 + M, D)
    weight, _, bias, _ = decoder.recurrent.weights(0)
    weight, embed = weight[:, : decoder.config.embedding], head.embed
    read = [(weight @ embed.weight, weight @ embed.bias + bias)]
    if decoder.config.output == "deep":
        read.append((embed.weight, embed.bias))
    inputs = g.product(every, *(weight for weight, _ in read))
    key = head.attention.key
    return {
        "pointer_keys": g("Add", g.product(every, key.weight), g.vector(key.bias)),
        "pointer_inputs": g("Add", inputs, g.vector(torch.cat([bias for _, bias in read]))),
    }


def step_graph(decoder: Decoder, weights: Weights, into: Graph | None = None) -> onnx.ModelProto:
    """One token per row. `forbidden` (V,) is added to the logits: −inf for what is not written.

    `bias` (B, M) is added to the scores: −1e30 where there is no position, 0 or a preference
    elsewhere. `count` (1,) is how many of the likeliest tokens are given apart from the rest.
    A pointer head has no `forbidden`: its log_probs are (N, 4 + M).
    """
    g, config = into or Graph(weights), decoder.config
    states = states_of(decoder.recurrent)
    inputs: Sizes = {"tokens": (INT64, ("rows",)), "count": (INT64, (1,))}
    inputs |= dict.fromkeys(states, (FLOAT, ("rows", config.hidden)))
    pointer = decoder.output if isinstance(decoder.output, PointerHead) else None
    matrix = g.weight(decoder.embed.weight) if pointer is None else ""
    embedded, projected = _read(g, decoder, matrix, inputs)  # (N, E), (N, gates)
    own, query, gate = _from_hidden(g, decoder)
    made: dict[str, str] = {}
    readout = ""
    if decoder.attention is not None:
        made, context, readout = _glimpse(g, decoder, query, gate, inputs)
        projected = g("Add", projected, context)
    made |= _advance(g, decoder, projected, {name: name for name in states}, own)
    hidden = made[f"h{config.layers - 1}"]
    if config.output == "deep":  # E y_{t-1} + L_h h_t + L_z ẑ_t
        layer = decoder.from_hidden
        hidden = g("Add", embedded, g.linear(hidden, layer.weight, layer.bias, bounded=True))
        hidden = g("Add", hidden, readout) if readout else hidden
    if isinstance(decoder, FusedDecoder):  # + L_s (g_t s_t)
        size = decoder.prior.recurrent.hidden
        inputs |= dict.fromkeys(_prior_states(decoder), (FLOAT, ("rows", size)))
        prior, after = _prior(g, decoder)
        hidden, made = g("Add", hidden, prior), made | after
    if pointer is None:
        inputs["forbidden"] = (FLOAT, (decoder.vocab_size,))
        logits = _logits(g, decoder, hidden, matrix)
    else:
        inputs["bias"] = (FLOAT, ("examples", "positions"))
        logits = _point(g, pointer, hidden)
    outputs = {"log_probs": g("LogSoftmax", logits, axis=1)}
    if isinstance(decoder.output, CopyHead):
        inputs["tag_keys"] = (FLOAT, ("examples", "named", config.attention.size))
        inputs["tag_tokens"] = (INT64, ("examples", "named"))
        outputs = {"log_probs": _copy(g, decoder.output, hidden, logits)}
    if pointer is not None:  # its attention is its output
        after_specials = g.shape(len(SPECIALS)), g.shape(LAST), g.shape(1)
        made["weights"] = g("Slice", g("Exp", outputs["log_probs"]), *after_specials)
    best = g.many("TopK", outputs["log_probs"], "count", outputs=2, axis=1)
    outputs |= dict(zip(LEADING, best, strict=True))
    outputs |= {name if name == "weights" else f"next_{name}": at for name, at in made.items()}
    return g.model(inputs, outputs, {LEADING[1]: INT64})


def _read(g: Graph, decoder: Decoder, matrix: str, inputs: Sizes) -> tuple[str, str]:
    """The embedding of the tokens, and W x + b of the first layer."""
    config, constant = decoder.config, None
    gates = GATES[config.cell] * config.hidden
    if "every" in decoder.entries:
        inputs["constant"] = (FLOAT, ("rows", gates))
        constant = "constant"
    if not isinstance(decoder.output, PointerHead):
        embedded = g("Gather", matrix, "tokens")
        return embedded, _project(g, decoder, embedded, constant)
    deep = config.embedding if config.output == "deep" else 0
    inputs["pointer_keys"] = (FLOAT, ("examples", "tokens_of_one", config.attention.size))
    inputs["pointer_inputs"] = (FLOAT, ("examples", "tokens_of_one", gates + deep))
    tokens = g("Reshape", "tokens", g.grouped(1, of="pointer_keys"))  # (B, K, 1)
    read = g("GatherND", "pointer_inputs", tokens, batch_dims=1)  # (B, K, gates + E)
    projected, embedded = g("Reshape", read, g.shape(-1, gates + deep)), ""
    if deep:
        projected, embedded = g.split(projected, g.shape(gates, deep), 2)
    return embedded, projected if constant is None else g("Add", projected, constant)


def _glimpse(
    g: Graph, decoder: Decoder, query: str, gate: str, inputs: Sizes
) -> tuple[dict[str, str], str, str]:
    """Attention from h_{t-1}: outputs by name, and ẑ_t as the cell and the readout take it."""
    config, attention = decoder.config, cast(Attention, decoder.attention)
    gates = GATES[config.cell] * config.hidden
    size = config.embedding if config.output == "deep" else 0
    whole = g.weights == "int8"
    inputs["keys"] = (FLOAT, ("examples", "positions", config.attention.size))
    inputs["mixed"] = (INT8 if whole else FLOAT, ("examples", "positions", gates + size))
    if whole:
        inputs["factors"] = (FLOAT, ("examples", 1, "positions"))
    inputs["bias"] = (FLOAT, ("examples", "positions"))
    soft = attend(g, attention, query, looks_back(decoder))  # (B, K, M)
    rows = likeliest(g, soft) if attention.chooses(None, None) else soft
    made = {"weights": g("Flatten", rows, axis=2)}  # (N, M)
    if looks_back(decoder):
        inputs["attended"] = (FLOAT, ("rows", "positions"))
        alpha = g("Flatten", soft, axis=2)
        both = g("Add", "attended", alpha) if config.attention.cumulative else alpha
        made["attended"] = g("Identity", both)
        if (
            config.attention.cumulative and config.attention.window
        ):  # which follows the last weights
            inputs["last"] = (FLOAT, ("rows", "positions"))
            made["last"] = g("Identity", alpha)
    mix = g.mix(rows, "mixed", "factors") if whole else g("MatMul", rows, "mixed")
    context = g("Reshape", mix, g.shape(-1, gates + size))
    if config.gate:
        context = g("Mul", g("Sigmoid", gate), context)  # β_t ẑ_t
    readout = ""
    if size:
        context, readout = g.split(context, g.shape(gates, size), 2)
    return made, context, readout


def _logits(g: Graph, decoder: Decoder, readout: str, matrix: str) -> str:
    """A logit for each token of a vocabulary, (N, V)."""
    head = cast(VocabularyHead, decoder.output)
    bias = g("Add", g.vector(head.bias), "forbidden")  # (V,)
    if decoder.config.tied and g.weights == "int16":  # the matrix is stored once
        return g("Gemm", readout, matrix, bias, transB=1)
    return g.linear(readout, head.weight, bias)


def _copy(g: Graph, head: CopyHead, readout: str, logits: str) -> str:
    """log p of each token, written or copied, (N, V)."""
    with g.finely():  # few positions, whose shares are the output: in 8 bits captions suffer
        share = g("Sigmoid", g.linear(readout, head.share.weight, head.share.bias))  # (N, 1)
        query = g.linear(readout, head.pointer.query.weight)
    scores = scores_of(g, head.pointer, query, "tag_keys")
    weights = g("Softmax", scores, axis=2)  # (B, rows of one, K)
    tokens = g("Unsqueeze", "tag_tokens", g.shape(1))
    tokens = g("Flatten", g("Expand", tokens, g("Shape", weights)), axis=2)  # (N, K)
    written = g("Mul", g("Softmax", logits, axis=1), g("Sub", g.number(1.0), share))
    copied = g("Mul", g("Flatten", weights, axis=2), share)
    total = g("ScatterElements", written, tokens, copied, axis=1, reduction="add")
    return g("Log", total)


def _point(g: Graph, head: PointerHead, readout: str) -> str:
    """The score of each token of the context set, (N, 4 + M); −inf where there is none."""
    attention = head.attention
    scores = scores_of(g, attention, g.linear(readout, attention.query.weight), "pointer_keys")
    never = np.full((1, len(SPECIALS)), NOTHING, np.float32)
    never[0, END] = 0
    examples = g("Concat", g("Shape", "bias", start=0, end=1), g.shape(1), axis=0)
    bias = g("Concat", g("Expand", g.vector(never), examples), "bias", axis=1)  # (B, 4 + M)
    scores = g("Add", scores, g("Unsqueeze", bias, g.shape(1)))
    exists = g("Greater", scores, g.number(EMPTY))
    scores = sharpened(g, scores, attention.config.temperature)
    return g("Flatten", g("Where", exists, scores, g.number(-np.inf)), axis=2)


def _from_hidden(g: Graph, decoder: Decoder) -> tuple[str, str, str]:
    """All that is made of the top layer's h_{t-1} alone, in one product.

    Its share of the layer's own gates, the attention's query, what the gate β opens by.
    """
    config = decoder.config
    top = config.layers - 1
    _, weight, _, bias = decoder.recurrent.weights(top)
    weights, biases = [weight], [bias]
    if decoder.attention is not None:
        weights.append(decoder.attention.query.weight)
        biases.append(torch.zeros(config.attention.size))
        if config.gate:
            weights.append(decoder.gate.weight)
            biases.append(decoder.gate.bias)
    made = g.linear(f"h{top}", torch.cat(weights), torch.cat(biases), bounded=True)
    sizes = [len(weight) for weight in weights]
    split = g.split(made, g.shape(*sizes), len(sizes)) if len(sizes) > 1 else [made]
    own, query, gate = [*split, "", ""][:3]
    return own, query, gate


def _project(g: Graph, decoder: Decoder, fed: str, constant: str | None) -> str:
    """W x + b of the first layer, of the embedding and of what enters at every step."""
    weight, _, bias, _ = decoder.recurrent.weights(0)
    projected = g.linear(fed, weight[:, : decoder.config.embedding], bias)
    return projected if constant is None else g("Add", projected, constant)


def _prior_states(decoder: FusedDecoder) -> list[str]:
    return [f"prior_{name}" for name in states_of(decoder.prior.recurrent)]


def _prior(g: Graph, decoder: FusedDecoder) -> tuple[str, dict[str, str]]:
    """What the language model of a deep fusion adds to the readout, and its new state by name."""
    recurrent = decoder.prior.recurrent
    weight, _, bias, _ = recurrent.weights(0)
    projected = g.linear(g("Gather", g.weight(decoder.prior.embed.weight), "tokens"), weight, bias)
    before = {name.removeprefix("prior_"): name for name in _prior_states(decoder)}
    after = _advance(g, decoder.prior, projected, before)
    state, layer = after[f"h{recurrent.layers - 1}"], decoder.prior_gate
    gate = g("Sigmoid", g.linear(state, layer.weight, layer.bias))
    added = g.linear(g("Mul", gate, state), decoder.from_prior.weight)
    return added, {f"prior_{name}": at for name, at in after.items()}


def _advance(
    g: Graph,
    decoder: Decoder | LanguageModelCells,
    projected: str,
    before: dict[str, str],
    own_of_top: str = "",  # W h_{t-1} + b of the top layer, where it is made already
) -> dict[str, str]:
    """One step of every layer: the new state by name."""
    recurrent = decoder.recurrent
    after: dict[str, str] = {}
    for layer in range(recurrent.layers):
        weight_ih, weight_hh, bias_ih, bias_hh = recurrent.weights(layer)
        if layer:
            projected = g.linear(after[f"h{layer - 1}"], weight_ih, bias_ih, bounded=True)
        h, own = before[f"h{layer}"], own_of_top
        if not own or layer + 1 < recurrent.layers:
            own = g.linear(h, weight_hh, bias_hh, bounded=True)
        if recurrent.kind == "rnn":
            after[f"h{layer}"] = g("Tanh", g("Add", projected, own))
        elif recurrent.kind == "gru":
            after[f"h{layer}"] = _gru(g, recurrent.hidden, projected, own, h)
        else:
            total = g("Add", projected, own)
            cell = _lstm(g, recurrent.hidden, total, before[f"c{layer}"])
            after[f"h{layer}"], after[f"c{layer}"] = cell
    return after


def _gru(g: Graph, size: int, projected: str, own: str, h: str) -> str:
    x_gates, x_new = g.split(projected, g.shape(2 * size, size), 2)
    h_gates, h_new = g.split(own, g.shape(2 * size, size), 2)
    both = g("Sigmoid", g("Add", x_gates, h_gates))
    reset, update = g.split(both, g.shape(size, size), 2)
    new = g("Tanh", g("Add", x_new, g("Mul", reset, h_new)))
    return g("Add", new, g("Mul", update, g("Sub", h, new)))


def _lstm(g: Graph, size: int, total: str, c: str) -> tuple[str, str]:
    i_f, new, out = g.split(total, g.shape(2 * size, size, size), 3)
    i, f = g.split(g("Sigmoid", i_f), g.shape(size, size), 2)
    c = g("Add", g("Mul", f, c), g("Mul", i, g("Tanh", new)))
    return g("Mul", g("Sigmoid", out), g("Tanh", c)), c

"""A graph's bytes, checked against what exports write before onnxruntime parses them.

A model's folder is untrusted data. The check is an allow-list: the messages and fields of
onnx.proto that exports have, each in its canonical encoding, and the operators and attributes
that they use. All of these compute on arrays in memory and come to an end; what reads a file
(tensors stored outside), calls other code (functions, other domains) or repeats without a bound
(Loop, Scan, If: graphs in attributes) is not among them. See docs/reference/security.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

MAX_NODES = 20_000  # ResNet-101 has 1,500
MAX_FIELDS = 500_000
ITEM_SIZES = {1: 4, 2: 1, 3: 1, 5: 2, 6: 4, 7: 8, 9: 1}  # TensorProto.data_type → bytes

_POOLING = ("dilations", "kernel_shape", "pads", "strides")
_RECURRENT = ("activations", "direction", "hidden_size")
# Operator → the attributes that it may have.
OPERATORS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "Abs", "Add", "And", "Clip", "CumSum", "Div", "Equal", "Exp", "Expand", "Greater",
                "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Log", "MatMul",
                "MatMulInteger", "Max", "Mul", "Neg", "Not", "Or", "QuantizeLinear", "Range",
                "Relu", "Sigmoid", "Slice", "Sqrt", "Squeeze", "Sub", "Tanh", "Unsqueeze", "Where",
            ),
            (),
        ),
        **dict.fromkeys(
            (
                "Concat", "Flatten", "Gather", "GatherElements", "LogSoftmax", "Softmax", "Split",
            ),
            ("axis",),
        ),
        "ArgMax": ("axis", "keepdims"),
        "Cast": ("to",),
        "Constant": ("value",),
        "ConstantOfShape": ("value",),
        "Conv": ("group", *_POOLING),
        "GRU": ("linear_before_reset", *_RECURRENT),
        "GatherND": ("batch_dims",),
        "Gemm": ("alpha", "beta", "transB"),
        "LSTM": _RECURRENT,
        "LayerNormalization": ("axis", "epsilon"),
        "MaxPool": ("ceil_mode", *_POOLING),
        "Pad": ("mode",),
        "RNN": _RECURRENT,
        "ReduceMax": ("axes", "keepdims"),
        "ReduceMean": ("axes", "keepdims"),
        "ReduceMin": ("axes", "keepdims"),
        "ReduceSum": ("keepdims",),
        "Reshape": ("allowzero",),
        "ScatterElements": ("axis", "reduction"),
        "Shape": ("end", "start"),
        "TopK": ("axis", "largest", "sorted"),
        "Transpose": ("perm",),
    }
)  # fmt: skip


class _Field(NamedTuple):
    wire: int  # 0: a varint, 2: bytes, 5: four bytes
    inside: str = ""  # the message that the bytes are
    repeated: bool = False


_NUMBER, _NUMBERS = _Field(0), _Field(0, repeated=True)
_BYTES, _STRINGS = _Field(2), _Field(2, repeated=True)
# message → number → field, as onnx.proto has them
_FIELDS: dict[str, dict[int, _Field]] = {
    "model": {1: _NUMBER, 2: _BYTES, 7: _Field(2, "graph"), 8: _Field(2, "opset", True)},
    "opset": {1: _BYTES, 2: _NUMBER},
    "graph": {
        1: _Field(2, "node", True), 2: _BYTES, 5: _Field(2, "tensor", True),
        11: _Field(2, "value", True), 12: _Field(2, "value", True),
    },
    "node": {1: _STRINGS, 2: _STRINGS, 3: _BYTES, 4: _BYTES, 5: _Field(2, "attribute", True)},
    "attribute": {
        1: _BYTES, 2: _Field(5), 3: _NUMBER, 4: _BYTES, 5: _Field(2, "tensor"), 8: _NUMBERS,
        9: _STRINGS, 20: _NUMBER,
    },
    "tensor": {1: _NUMBERS, 2: _NUMBER, 8: _BYTES, 9: _BYTES},
    "value": {1: _BYTES, 2: _Field(2, "type")},
    "type": {1: _Field(2, "array")},
    "array": {1: _NUMBER, 2: _Field(2, "shape")},
    "shape": {1: _Field(2, "size", True)},
    "size": {1: _NUMBER, 2: _BYTES},
}  # fmt: skip
# Why a field is refused, where that says more than its number.
_REASONS = {
    ("tensor", 13): "keeps its weights in another file",
    ("tensor", 14): "keeps its weights in another file",
    ("node", 7): "uses operators that are not ONNX's own",
    ("model", 20): "holds a training program",
    ("model", 25): "defines functions",
    ("graph", 15): "holds sparse tensors",
    ("attribute", 22): "holds sparse tensors",
    ("attribute", 23): "holds sparse tensors",
    ("attribute", 6): "holds a graph in an attribute (Loop, Scan, If)",
    ("attribute", 11): "holds a graph in an attribute (Loop, Scan, If)",
}
Span = tuple[int, int]  # where bytes begin and end
Values = dict[int, list[int | Span]]  # a message's fields by number


class RefusedError(Exception):
    """The graph has something that no export has; the text says what, as in "it …"."""


class MalformedError(Exception):
    """The bytes are not a graph, or are cut short."""


def check_graph(content: bytes) -> None:
    """Raise RefusedError or MalformedError unless the graph is one that an export could hold."""
    if not content:
        raise MalformedError
    _Check(content).message((0, len(content)), "model")


class _Check:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.fields = self.nodes = 0

    def message(self, span: Span, kind: str) -> Values:
        """The fields of a message, all of them and all inside them checked."""
        known, values = _FIELDS[kind], Values()
        for number, wire, value in _fields(self.content, *span):
            if number not in known:
                default = f"has an unknown field ({number} of a {kind})"
                raise RefusedError(_REASONS.get((kind, number), default))
            expected, inside, repeated = known[number]
            if wire != expected:
                raise MalformedError
            if number not in values:
                values[number] = [value]
            elif repeated:
                values[number].append(value)
            else:  # parsers differ in which one counts
                raise RefusedError(f"has a field twice ({number} of a {kind})")
            self.fields += 1
            if self.fields > MAX_FIELDS:
                raise RefusedError(f"has more than {MAX_FIELDS:,} fields")
            if inside and inside != "attribute":  # which is checked with its operator
                inner = self.message(value, inside)  # type: ignore[arg-type]
                if inside in _RULES:
                    _RULES[inside](self, inner)
        return values

    def node(self, values: Values) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise RefusedError(f"has more than {MAX_NODES:,} operations")
        operator = self.text(values, 4)
        if operator not in OPERATORS:
            raise RefusedError(f"uses the operator {operator[:40]!r}")
        for span in values.get(5, ()):
            name = self.text(self.message(span, "attribute"), 1)  # type: ignore[arg-type]
            if name not in OPERATORS[operator]:
                raise RefusedError(f"gives {operator} the attribute {name[:40]!r}")

    def tensor(self, values: Values) -> None:
        """As many bytes as its shape says: nothing is allocated by a shape alone."""
        (kind,), (raw,) = values.get(2, [0]), values.get(9, [(0, 0)])
        assert isinstance(raw, tuple)
        if kind not in ITEM_SIZES:
            raise RefusedError(f"holds a tensor of type {kind}")
        sizes: list[int] = values.get(1, [])  # type: ignore[assignment]
        if math.prod(sizes) * ITEM_SIZES[kind] != raw[1] - raw[0]:
            raise RefusedError("holds a tensor whose shape and size differ")

    def opset(self, values: Values) -> None:
        if self.text(values, 1):
            raise RefusedError("uses operators that are not ONNX's own")

    def text(self, values: Values, number: int) -> str:
        (span,) = values.get(number, [(0, 0)])
        assert isinstance(span, tuple)
        return self.content[slice(*span)].decode("utf-8", "replace")


_RULES = {"node": _Check.node, "tensor": _Check.tensor, "opset": _Check.opset}


# ------------------------------------------------------------------------------- protobuf


def _fields(content: bytes, at: int, end: int) -> Iterator[tuple[int, int, int | Span]]:
    """The fields of the protobuf message from `at` to `end`: number, wire type, value."""
    while at < end:
        key, at = (content[at], at + 1) if content[at] < 0x80 else _varint(content, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(content, at)
            if at > end:
                raise MalformedError
            yield key >> 3, wire, value
            continue
        if wire == 2:
            size, at = _varint(content, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise MalformedError
        begin, at = at, at + size
        if at > end:
            raise MalformedError
        yield key >> 3, wire, (begin, at)


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of at most 64 bits in as few bytes as it needs, and where it ends."""
    try:
        byte = content[at]
        if byte < 0x80:
            return byte, at + 1
        value, shift = byte & 0x7F, 7
        while byte >= 0x80:
            at += 1
            byte = content[at]
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 70:
                raise MalformedError
    except IndexError:
        raise MalformedError from None
    if byte == 0:  # another parser may read such a number as a different field
        raise RefusedError("writes a number in more bytes than it needs")
    if value >> 64:
        raise MalformedError
    return value, at + 1

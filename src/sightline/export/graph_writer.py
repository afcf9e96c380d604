"""Graph: ONNX written one operation a line, with weights that are stored small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sightline.errors import CheckpointError, UserError
from sightline.runtime.graph_check import RefusedError, check_graph

if TYPE_CHECKING:
    import onnx

# Whole numbers of so many bits with a factor for each output of a layer. With 16 the outputs err
# by a seventh of what half precision, of the same size, makes them err. With 8 the products are
# whole numbers too, see `Graph.whole_product`.
Weights = Literal["int16", "int8"]
OPSET = 17
FLOAT, INT8, INT64 = 1, 3, 7  # onnx.TensorProto's numbers for them
SMALL = 256  # a tensor of fewer numbers stays in full precision: it would save nothing
MANY = 1 << 14  # for a weight of fewer numbers it does not pay to round what it is multiplied with
ZERO = 128  # the byte that stands for 0 among values of 8 bits
FEW = 8  # numbers of a constant that is kept once
# The axis of a weight that has a factor for each entry, by what it is an input of; 0 elsewhere
OUTPUTS = {"GRU": 1, "LSTM": 1, "RNN": 1, "MatMul": 1}
TINY = 1e-20  # keeps a row of zeros from being divided by zero


@dataclass(frozen=True)
class Stored:
    """A weight as it was given, and the constants that it became: values · scale · factor."""

    given: NDArray[np.float32]
    values: str
    scale: str = ""  # none: as it was given
    factor: float = 1.0


class Graph:
    """Nodes in the order in which they are called; a value is known by its name."""

    def __init__(self, weights: Weights) -> None:
        self.weights: Weights = weights
        self.nodes: list[Any] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self.named: dict[Any, str] = {}  # of few numbers: their constant
        self.stored: list[Stored] = []
        self.count = 0

    @contextmanager
    def finely(self) -> Iterator[None]:
        """What is written within a `with` computes in float32, its weights in 16 bits."""
        weights, self.weights = self.weights, "int16"
        yield
        self.weights = weights

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """One operation with one output: its name."""
        return self.many(operator, *inputs, outputs=1, **attributes)[0]

    def many(self, operator: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        from onnx import helper

        names = [self._name(operator) for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names

    def split(self, value: str, sizes: str, outputs: int) -> list[str]:
        """Along the second axis."""
        return self.many("Split", value, sizes, outputs=outputs, axis=1)

    def linear(
        self,
        value: str,
        weight: Tensor,
        bias: Tensor | str | None = None,  # a str is a value of the graph
        *,
        bounded: bool = False,  # whether no entry of the value is beyond ±1
    ) -> str:
        """(N, in) → (N, out), with a weight (out, in)."""
        added = [] if bias is None else [bias if isinstance(bias, str) else self.vector(bias)]
        if self._computes_whole(weight.numel()):
            product = self._scaled(*self.whole_product(value, _array(weight).T, bounded=bounded))
            return self("Add", product, *added) if added else product
        return self("Gemm", value, self.weight(weight), *added, transB=1)

    def product(self, value: str, *weights: Tensor) -> str:
        """(…, in) → (…, out), with weights (out, in) one below the other."""
        return self._scaled(*self._product(value, *weights))

    def _product(self, value: str, *weights: Tensor) -> tuple[str, str]:
        """The same, lacking factors (…, 1) where there are any."""
        turned = np.concatenate([_array(weight) for weight in weights]).T
        if self._computes_whole(turned.size):
            return self.whole_product(value, turned)
        return self("MatMul", value, self.weight(np.ascontiguousarray(turned), axis=1)), ""

    def _scaled(self, product: str, factors: str) -> str:
        # Not with the factors of weight and rows multiplied first: onnxruntime 1.31 then makes one
        # operation of the product, both factors and the bias, and has the rows' factor scale it.
        return self("Mul", product, factors) if factors else product

    def _computes_whole(self, size: int) -> bool:
        return self.weights == "int8" and size >= MANY

    def whole_product(
        self, value: str, weight: NDArray[np.float32], *, bounded: bool = False
    ) -> tuple[str, str]:
        """(…, in) → (…, out) in whole numbers of 8 bits, with a weight (in, out).

        Each row of the value is rounded by a factor of its own, or by 1/127 if it is bounded by
        1: what a row gives depends on no other row, so that a batch equals its singles. Rows lack
        their own factors (…, 1), which come second.
        """
        small, scale = rounded_for_pairs(weight)
        zero = self.constant(np.array(ZERO, np.uint8))
        value, most = (value, "") if bounded else self.by_largest(value)
        coarse = self("QuantizeLinear", value, self.number(1 / 127), zero)
        values = self.constant(small)
        product = self("Cast", self("MatMulInteger", coarse, values, zero), to=FLOAT)
        by = self.constant(scale / np.float32(127))
        self.stored.append(Stored(weight, values, by, 127.0))
        return self("Mul", product, by), most

    def by_largest(self, values: str, *, positive: bool = False) -> tuple[str, str]:
        """Values (…, n) divided by the largest of their row, its sign aside, and these (…, 1)."""
        most = self("ReduceMax", values, axes=[-1], keepdims=1)
        if not positive:  # half the time of the largest of Abs
            most = self("Max", most, self("Neg", self("ReduceMin", values, axes=[-1], keepdims=1)))
        most = self("Clip", most, self.number(TINY))
        return self("Div", values, most), most

    def product_in_bytes(self, value: str, *weights: Tensor) -> tuple[str, str]:
        """`product` (B, M, out) in whole numbers of 8 bits, and what `mix` multiplies them with."""
        product, factors = self._product(value, *weights)
        product, most = self.by_largest(product)
        zero = self.constant(np.array(0, np.int8))
        small = self("QuantizeLinear", product, self.number(1 / 127), zero)
        factors = self("Transpose", self._scaled(most, factors), perm=[0, 2, 1])  # (B, 1, M)
        return small, self("Mul", factors, self.number(1 / 127**2))

    def mix(self, shares: str, small: str, factors: str) -> str:
        """Σ_i share_i · row_i, (B, K, out), of shares (B, K, M) and what `product_in_bytes` made.

        Shares are not negative. They take 7 bits, so that two products fit 16: see
        `rounded_for_pairs`.
        """
        shares, most = self.by_largest(self("Mul", shares, factors), positive=True)
        zero = self.constant(np.array(0, np.uint8))
        coarse = self("QuantizeLinear", shares, self.number(1 / 127), zero)
        product = self("Cast", self("MatMulInteger", coarse, small), to=FLOAT)
        return self("Mul", product, most)

    def weight(self, values: Tensor | NDArray[np.float32], axis: int = 0) -> str:
        """A weight in few bits, with a factor for each entry of `axis`.

        The operations that make float32 of it have only constants to work on, so that
        onnxruntime does them once, when the graph is loaded.
        """
        full = _array(values)
        if full.size < SMALL:
            return self.vector(full)
        small, scale = rounded(full, axis, self.weights)
        name = self.constant(small)
        wide, by = self("Cast", name, to=FLOAT), self.constant(scale)
        self.stored.append(Stored(full, name, by))
        return self("Mul", wide, by)

    def vector(self, values: Tensor | NDArray[np.float32]) -> str:
        full = _array(values)
        name = self.constant(full)
        self.stored.append(Stored(full, name))
        return name

    def number(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))

    def integer(self, value: int) -> str:
        return self.constant(np.array(value, np.int64))

    def shape(self, *sizes: int) -> str:
        return self.constant(np.array(sizes, np.int64))

    def constant(self, values: NDArray[Any]) -> str:
        """The same name for the same few numbers: onnxruntime then sees what is done twice."""
        key = (values.dtype.str, values.shape, values.tobytes()) if values.size < FEW else None
        if key in self.named:
            return self.named[key]
        name = self._name("constant")
        self.constants[name] = values
        if key is not None:
            self.named[key] = name
        return name

    def grouped(self, *rest: str | int, of: str) -> str:
        """The shape (B, K, …) of N = B · K rows; "positions" stands for M; `of` is (B, M, …)."""
        examples = self("Shape", of, start=0, end=1)
        if rest[0] != "positions":
            return self("Concat", examples, self.shape(-1, *map(int, rest)), axis=0)
        positions = self("Shape", of, start=1, end=2)
        more = [self.shape(int(size)) for size in rest[1:]]
        return self("Concat", examples, self.shape(-1), positions, *more, axis=0)

    def model(
        self,
        inputs: dict[str, tuple[int, tuple[str | int, ...]]],
        outputs: dict[str, str],  # name → the value that it is
        kinds: dict[str, int] | None = None,  # of outputs that are no floats
    ) -> onnx.ModelProto:
        from onnx import helper, numpy_helper

        for name, value in outputs.items():
            for node in self.nodes:  # a value is given the name of an output: it costs no operation
                for names in (node.input, node.output):
                    names[:] = [name if each == value else each for each in names]
        graph = helper.make_graph(
            self.nodes,
            "sightline",
            [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
            [
                helper.make_tensor_value_info(name, (kinds or {}).get(name, FLOAT), _rank(name))
                for name in outputs
            ],
            [numpy_helper.from_array(values, name) for name, values in self.constants.items()],
        )
        return finished(graph)

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"{kind.lower()}{self.count}"


def finished(graph: onnx.GraphProto) -> onnx.ModelProto:
    """The model of a graph, checked; an old IR version, so that old runtimes read it too."""
    import onnx
    from onnx import helper

    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=8, producer_name="sightline")
    onnx.checker.check_model(model, full_check=True)
    try:
        check_graph(model.SerializeToString())  # what is written can be read
    except RefusedError as error:
        raise UserError(f"this model cannot be exported: its graph {error}") from None
    return model


def with_weights_stored(content: bytes, weights: Weights) -> onnx.ModelProto:
    """A traced model with its weights stored as a Graph stores them."""
    import onnx
    from onnx import numpy_helper

    # Convolutions always in 16 bits: with 8, EfficientNet-Lite2's vectors are off by 17 % (RMS),
    # with 8 for its wide ones alone by 6 %, which a third of all captions show.
    graph, ours = onnx.load_from_string(content).graph, Graph(weights)
    used_by = {name: node.op_type for node in graph.node for name in node.input}
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.ndim > 1:
            operator = used_by.get(tensor.name, "")
            ours.weights = "int16" if operator == "Conv" else weights
            ours("Identity", ours.weight(values, OUTPUTS.get(operator, 0)))
            ours.nodes[-1].output[0] = tensor.name
        else:
            ours.constants[tensor.name] = values
    nodes = [*ours.nodes, *graph.node]
    tensors = [numpy_helper.from_array(values, name) for name, values in ours.constants.items()]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(tensors)
    return finished(graph)


def rounded(
    values: NDArray[np.float32], axis: int, weights: Weights
) -> tuple[NDArray[np.signedinteger[Any]], NDArray[np.float32]]:
    """Whole numbers, and for each entry of `axis` the factor that brings them back."""
    _require_numbers(values)
    kind = np.dtype(weights)
    others = tuple(i for i in range(values.ndim) if i != axis)
    most = np.abs(values).max(axis=others, keepdims=True)
    scale = np.maximum(most / np.iinfo(kind).max, 1e-30).astype(np.float32)
    return np.rint(values / scale).astype(kind), scale


def rounded_for_pairs(
    weight: NDArray[np.float32],  # (in, out)
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Whole numbers to multiply bytes with, and the factor of each output (out,).

    x86 processors without VNNI (vpmaddubsw) add two neighbours' products in 16 bits and cut off
    what goes beyond. So two neighbours of one sign may be 127 together, with both rounded up 128:
    255 · 128 = 32,640 fits. This costs half a bit, where weights of 7 bits would cost a whole one,
    and then more CIDEr than an export may lose.
    """
    _require_numbers(weight)
    even = np.pad(weight, ((0, len(weight) % 2), (0, 0)))
    pairs = even.reshape(-1, 2, weight.shape[1])
    most = np.maximum([pairs, -pairs], 0).sum(axis=2).max(axis=(0, 1))
    scale = np.maximum(most / 127, 1e-30).astype(np.float32)
    return np.rint(weight / scale).astype(np.int8), scale


def _require_numbers(values: NDArray[np.float32]) -> None:
    if not np.isfinite(values).all():
        raise CheckpointError("the model has weights that are no numbers; use another checkpoint")


def _rank(output: str) -> list[None]:
    """An output's sizes, left open."""
    shared = ("keys", "mixed", "factors", "values", "pointer_keys", "pointer_inputs", "tag_keys")
    return [None] * (3 if output in shared else 2)


def _array(values: Tensor | NDArray[np.float32]) -> NDArray[np.float32]:
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
    return np.ascontiguousarray(array, np.float32)

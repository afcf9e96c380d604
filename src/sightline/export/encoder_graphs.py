"""Encoders as ONNX graphs, traced. A text encoder written out by hand was 3 to 5 % faster."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from sightline.data.vocabulary import PAD
from sightline.export.graph_writer import OPSET, Weights, with_weights_stored
from sightline.types import ContextSet, Inputs, Stream

if TYPE_CHECKING:
    import onnx

NAMED = "tokens", "sure"  # of a context set whose positions may stand for words


def encoder_graph(encoder: nn.Module, weights: Weights) -> onnx.ModelProto:
    """Any encoder → values (B, M, D), mask (B, M) and, if it names positions, those of NAMED.

    The input X is the stream X, X_mask its mask. The encoder's `example()` has the streams that it
    reads, of two examples. A stream with a mask may have any length. Of "tokens" the mask is made
    in the graph: what is not <pad>.
    """
    example: Inputs = encoder.example()  # type: ignore[operator]
    tensors = {}
    for name, stream in example.streams.items():
        tensors[name] = stream.values
        if stream.mask is not None and name != "tokens":
            tensors[f"{name}_mask"] = stream.mask
    with torch.inference_mode():
        context = encoder(example)
    made = ["values", "mask", *(n for n in NAMED if getattr(context, n) is not None)]
    sizes = {name: {0: "examples"} for name in (*tensors, *made)}
    for name in [n for n in tensors if n == "tokens" or f"{n}_mask" in tensors]:  # of any length
        for each in {name, f"{name}_mask"} & sizes.keys():
            sizes[each][1] = "positions"
        for each in ("values", "mask"):  # as many positions, or fewer
            sizes[each][1] = "made"
    buffer = io.BytesIO()
    with warnings.catch_warnings(), torch.inference_mode():
        # the tracer finds that a picture's size becomes a constant: it is one
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Streams(encoder, list(tensors)),
            tuple(tensors.values()),
            cast(Any, buffer),  # a file would do as well
            dynamo=False,
            opset_version=OPSET,
            input_names=list(tensors),
            output_names=made,
            dynamic_axes=sizes,
        )
    return with_weights_stored(buffer.getvalue(), weights)


class _Streams(nn.Module):
    """An encoder that takes and gives tensors, for the tracer."""

    def __init__(self, encoder: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.encoder = encoder
        self.names = names

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        named = dict(zip(self.names, tensors, strict=True))
        streams = {
            name: Stream(values, values != PAD if name == "tokens" else named.get(f"{name}_mask"))
            for name, values in named.items()
            if not name.endswith("_mask")
        }
        context: ContextSet = self.encoder(Inputs(2, streams))
        words = (part for n in NAMED if (part := getattr(context, n)) is not None)
        return context.values, context.mask.to(context.values.dtype), *words

"""For tests of decoders: given vectors as inputs, and graphs run by onnxruntime alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnxruntime
import torch

from sightline.data.vocabulary import BEGIN, END, PAD
from sightline.nn.encoders.picture import PictureEncoder
from sightline.nn.stepper import TorchEncoder
from sightline.search.steppers import StepResult
from sightline.types import ContextSet, Inputs, Stream


def given(dimension: int = 0) -> PictureEncoder:
    """An encoder whose inputs are its vectors."""
    return PictureEncoder(None, dimension=dimension)


def vectors(values, mask=None) -> Inputs:
    return Inputs(len(values), {"vectors": Stream(values, mask)})


def sentences(tokens) -> Inputs:
    """Padded token ids (B, M), an array or a tensor."""
    return Inputs(len(tokens), {"tokens": Stream(tokens, tokens != PAD)})


def every(values, mask=None, bias=None) -> ContextSet:
    """A context set of arrays; without a mask, all positions exist."""
    mask = np.ones(values.shape[:2], bool) if mask is None else mask
    return ContextSet(values, mask, bias=bias)


def tensors(context: ContextSet) -> ContextSet:
    return ContextSet(*(torch.as_tensor(array) for array in (context.values, context.mask)))


def encoded(inputs: Inputs, *models) -> ContextSet:
    """What one model's encoder reads, or for an ensemble what each of several reads."""
    contexts = tuple(TorchEncoder(model).encode(inputs) for model in models)
    return contexts[0] if len(contexts) == 1 else replace(contexts[0], members=contexts)


@dataclass(frozen=True)
class GraphState:
    rows: dict
    examples: dict

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))


class GraphStepper:
    """Exported graphs, run with onnxruntime and nothing of ours."""

    SHARED = ("keys", "mixed", "factors", "pointer_keys", "pointer_inputs")

    def __init__(self, step, start=None, text=None, begin=BEGIN, end=END, without=()) -> None:
        self.begin, self.end = begin, end
        self._step, self._start, self._text = (
            None if graph is None else onnxruntime.InferenceSession(graph.SerializeToString())
            for graph in (step, start, text)
        )
        self._inputs = {each.name: each.shape for each in self._step.get_inputs()}
        self._names = [each.name for each in self._step.get_outputs()]
        self.vocab_size = 0
        if "forbidden" in self._inputs:
            (self.vocab_size,) = self._inputs["forbidden"]
            self._forbidden = np.zeros(self.vocab_size, np.float32)
            self._forbidden[list(without)] = -np.inf

    def encode(self, tokens) -> ContextSet:
        values, mask = self._text.run(["values", "mask"], {"tokens": np.asarray(tokens)})
        return ContextSet(values, mask > 0)

    def start(self, context: ContextSet) -> GraphState:
        if self._start is None:
            sizes = {n: s[1] for n, s in self._inputs.items() if f"next_{n}" in self._names}
            shape = len(context)
            return GraphState({n: np.zeros((shape, s), np.float32) for n, s in sizes.items()}, {})
        names = [each.name for each in self._start.get_outputs()]
        mask = np.asarray(context.mask)
        arrays = {
            "values": np.asarray(context.values, np.float32),
            "mask": mask.astype(np.float32),
        }
        made = dict(zip(names, self._start.run(names, arrays), strict=True))
        examples = {name: made.pop(name) for name in self.SHARED if name in made}
        if "bias" in self._inputs:
            bias = 0 if context.bias is None else context.bias
            examples["bias"] = (bias + np.where(mask, 0, -1e30)).astype(np.float32)
        for name in {"attended", "last"} & set(self._inputs):
            made[name] = np.zeros(mask.shape, np.float32)
        return GraphState(made, examples)

    def step(self, state: GraphState, tokens) -> StepResult:
        arrays = {"tokens": tokens, "count": np.array([1]), **state.rows, **state.examples}
        if "forbidden" in self._inputs:
            arrays["forbidden"] = self._forbidden
        made = dict(zip(self._names, self._step.run(self._names, arrays), strict=True))
        rows = {name: made.get(f"next_{name}", before) for name, before in state.rows.items()}
        after = GraphState(rows, state.examples)
        return StepResult(made["log_probs"], made.get("weights"), after)

    def select(self, state: GraphState, rows) -> GraphState:
        examples = state.examples
        if examples:
            owners = rows // (len(state) // len(examples["bias"]))
            kept = owners[np.diff(owners, prepend=-1) > 0]
            examples = {name: values[kept] for name, values in examples.items()}
        return GraphState({n: values[rows] for n, values in state.rows.items()}, examples)

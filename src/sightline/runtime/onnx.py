"""An exported model on onnxruntime: OnnxEncoder behind Encoder, OnnxStepper behind Stepper."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sightline.errors import CheckpointError, DataError
from sightline.runtime.model_folder import (
    AGAIN,
    ENCODER,
    LEADING,
    START,
    STEP,
    Export,
    onnxruntime,
    processors,
    reason,
)
from sightline.search.constraints import Banned, Constrained
from sightline.search.steppers import SearchError, State, Stepper, StepResult
from sightline.types import ContextSet, Inputs

Item = TypeVar("Item")
Result = TypeVar("Result")
Floats = NDArray[np.float32]
SHARED = ("keys", "mixed", "factors", "pointer_keys", "pointer_inputs", "tag_keys")  # per example
NO_POSITION = np.float32(-1e30)  # the bias of a position that does not exist
ENCODED_AT_ONCE = 2  # pictures: more take memory and are no faster


class OnnxEncoder:
    """Runs an exported encoder: each graph input takes the stream of its name."""

    def __init__(self, export: Export) -> None:
        self._session = export.session(ENCODER)
        self._wanted = [each.name for each in self._session.get_inputs()]
        self._made = [each.name for each in self._session.get_outputs()]
        self._path = export.folder / ENCODER
        if "values" not in self._made:
            raise CheckpointError(f"{self._path} gives no values; {AGAIN}")

    def encode(self, inputs: Inputs) -> ContextSet:
        unknown = [n for n in self._wanted if n.removesuffix("_mask") not in inputs]
        if unknown:
            raise CheckpointError(f"{self._path} reads {unknown[0]!r}, which there is not; {AGAIN}")
        streams = {name: inputs[name] for name in self._wanted if not name.endswith("_mask")}
        arrays = {name: stream.values for name, stream in streams.items()}
        arrays |= {n: inputs[n.removesuffix("_mask")].mask for n in self._wanted if n not in arrays}
        fixed = all(stream.mask is None for stream in streams.values())
        step = ENCODED_AT_ONCE if fixed else len(inputs)
        parts = [
            _run(self._session, None, {n: values[at : at + step] for n, values in arrays.items()})
            for at in range(0, len(inputs), step)
        ]
        made = {n: np.concatenate(some) for n, some in zip(self._made, zip(*parts), strict=True)}  # noqa: B905
        values = made["values"]
        mask = made["mask"] > 0 if "mask" in made else np.ones(values.shape[:2], dtype=bool)
        if values.ndim != 3 or values.shape[:2] != mask.shape or len(mask) != len(inputs):
            raise CheckpointError(f"{self._path} gives values of shape {values.shape}; {AGAIN}")
        tokens = made.get("tokens")
        if tokens is not None and (tokens.shape != mask.shape or tokens.dtype != np.int64):
            raise CheckpointError(f"{self._path} names positions that there are not; {AGAIN}")
        sure = made.get("sure")
        if sure is not None and (sure.shape != mask.shape or tokens is None):
            raise CheckpointError(f"{self._path} is sure of positions that there are not; {AGAIN}")
        return ContextSet(values, mask, tokens=tokens, sure=sure)


@dataclass(frozen=True)
class OnnxState:
    """What one step hands to the next: arrays of N rows and of the B examples that they share."""

    rows: dict[str, Floats]  # (N, …)
    examples: dict[str, Floats]  # (B, M, …); empty without attention and pointers

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))


class OnnxStepper:
    """Runs an exported model one token at a time."""

    def __init__(self, export: Export, begin: int, end: int | None) -> None:
        self.begin = begin
        self.end = end
        self._step = export.session(STEP, threads=1)  # too little work to be shared
        self._start = export.session(START) if START in export.graphs else None
        self._wanted = {each.name: each.shape for each in self._step.get_inputs()}
        self._made = [each.name for each in self._step.get_outputs()]
        self._all = [name for name in self._made if name not in LEADING]
        self._some = [name for name in self._made if name != "log_probs"]
        self._folder = export.folder
        self._check_fit(export)
        # 0 with a pointer head: there are as many tokens as `step` gives probabilities of
        (self.vocab_size,) = self._wanted.get("forbidden", (0,))
        self._forbidden = np.zeros(self.vocab_size, np.float32)

    def _check_fit(self, export: Export) -> None:
        """Every input of a step comes from the start, from the step before, or from here."""
        given = {"tokens", "forbidden", "count", "bias", "attended", "last", "tag_tokens"}
        if self._start is not None:
            given |= {each.name for each in self._start.get_outputs()}
        else:
            given |= {name.removeprefix("next_") for name in self._made}
        misfits = set(self._wanted) - given
        needed = "pointer_keys" if "pointer_keys" in given else "forbidden"
        misfits |= {needed, "count"} - set(self._wanted)
        misfits |= {"log_probs", *LEADING} - set(self._made)
        if misfits:
            raise CheckpointError(
                f"the graphs in {export.folder} do not fit together "
                f"({', '.join(sorted(misfits))}); {AGAIN}"
            )

    def without(self, tokens: Sequence[int]) -> Stepper:
        """The same model with these tokens left out of its softmax."""
        if not self.vocab_size:
            return Constrained(self, Banned(tokens))
        twin = copy.copy(self)
        twin._forbidden = self._forbidden.copy()
        twin._forbidden[list(tokens)] = -np.inf
        return twin

    def start(self, context: ContextSet) -> State:
        if self._start is None:  # a language model
            if context.bias is not None:
                raise SearchError("this model has no attention that could be steered")
            return OnnxState(self._zeros(len(context)), {})
        empty = np.flatnonzero(~context.mask.any(axis=1))
        if len(empty):
            raise DataError(f"example {empty[0] + 1} is empty: there is nothing to attend to")
        mask = context.mask.astype(np.float32)
        names = [each.name for each in self._start.get_outputs()]
        tags = self._tags(context)
        arrays = {"values": context.values, "mask": mask}
        arrays |= {"tags": context.values[:, -tags.shape[1] :]} if tags.size else {}
        rows = dict(zip(names, _run(self._start, names, arrays), strict=True))
        examples: dict[str, Floats] = {name: rows.pop(name) for name in SHARED if name in rows}
        if tags.size:
            examples["tag_tokens"] = tags
        if examples:
            examples["bias"] = _bias(context)
        elif context.bias is not None:
            raise SearchError("this model has no attention that could be steered")
        for name in {"attended", "last"} & set(self._wanted):  # nothing yet
            rows[name] = np.zeros(mask.shape, np.float32)
        return OnnxState(rows, examples)

    def _tags(self, context: ContextSet) -> NDArray[Any]:
        """The tokens (B, K) of the positions that name one, behind all others; K may be 0."""
        if "tag_tokens" not in self._wanted:
            return np.zeros((len(context), 0), np.int64)
        tokens = context.tokens
        if tokens is None or tokens.min() < 0 or tokens.max() >= self.vocab_size:
            raise CheckpointError(f"{self._folder} names tokens that do not exist; {AGAIN}")
        named: NDArray[Any] = tokens[:, int((tokens == 0).all(0).sum()) :]
        return named

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        made, state = self._run(state, tokens, self._all, 1)
        return StepResult(made["log_probs"], made.get("weights"), state)

    def leading(self, state: State, tokens: NDArray[np.int64], count: int) -> StepResult:
        made, after = self._run(state, tokens, self._some, count)
        log_probs, best = (made[name] for name in LEADING)
        assert isinstance(state, OnnxState)
        size = self.vocab_size or state.examples["pointer_keys"].shape[1]
        if best.shape != log_probs.shape or best.min() < 0 or best.max() >= size:
            raise CheckpointError(f"{self._folder / STEP} gives tokens that do not exist; {AGAIN}")
        return StepResult(log_probs, made.get("weights"), after, best)

    def _run(
        self, state: State, tokens: NDArray[np.int64], names: list[str], count: int
    ) -> tuple[dict[str, Any], OnnxState]:
        """These outputs of one step, and the state after it."""
        assert isinstance(state, OnnxState)
        given = {"tokens": tokens, "count": np.array([count]), **state.rows, **state.examples}
        if self.vocab_size:
            given["forbidden"] = self._forbidden
        made = dict(zip(names, _run(self._step, names, given), strict=True))
        if any(values.shape[:1] != tokens.shape for values in made.values()):
            raise CheckpointError(f"{self._folder / STEP} gives too many or too few rows; {AGAIN}")
        rows = {name: made.get(f"next_{name}", before) for name, before in state.rows.items()}
        return made, OnnxState(rows, state.examples)

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        assert isinstance(state, OnnxState)
        examples = state.examples
        count = len(examples["bias"]) if examples else 0
        if count > 1:
            owners = rows // (len(state) // count)
            kept = owners[np.diff(owners, prepend=-1) > 0]  # ascending, by the contract
            if len(kept) < count:
                examples = {name: values[kept] for name, values in examples.items()}
        taken = {name: values.take(rows, axis=0) for name, values in state.rows.items()}
        return OnnxState(taken, examples)

    def _zeros(self, rows: int) -> dict[str, Floats]:
        """A language model's first state."""
        sizes = {n: shape[1] for n, shape in self._wanted.items() if f"next_{n}" in self._made}
        return {name: np.zeros((rows, size), np.float32) for name, size in sizes.items()}


_THREAD = threading.local()  # the options of the runs of each thread


@contextmanager
def stoppable() -> Iterator[Callable[[], None]]:
    """The runs of this thread, in a `with`, end if another thread calls what it gives.

    They end between two nodes of a graph: one node's kernel cannot be stopped.
    """
    _THREAD.options = options = onnxruntime().RunOptions()

    def stop() -> None:
        options.terminate = True

    try:
        yield stop
    finally:
        _THREAD.options = None


def _run(session: Any, names: list[str] | None, given: dict[str, Any]) -> list[Any]:
    """A graph's outputs; one that cannot be computed (wrong shapes, no memory) is an error."""
    try:
        outputs: list[Any] = session.run(names, given, getattr(_THREAD, "options", None))
    except Exception as error:  # onnxruntime has a class for each of its complaints
        raise CheckpointError(f"the model cannot be run ({reason(error)})") from None
    return outputs


def _bias(context: ContextSet) -> Floats:
    """What is added to the scores of every step, (B, M)."""
    bias = np.where(context.mask, np.float32(0), NO_POSITION)
    if context.bias is None:
        return bias
    if context.bias.shape != bias.shape:
        shapes = f"{context.bias.shape} for context sets of {bias.shape}"
        raise SearchError(f"a bias of shape {shapes}; give one number for each position")
    return bias + np.asarray(context.bias, np.float32)


def workers(stepper: Stepper) -> int:
    """How many searches to run side by side: a step has one thread."""
    return processors() if isinstance(stepper, OnnxStepper) else 1  # PyTorch has its own ways


def side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], count: int
) -> Iterator[Result]:
    """work(item) of each in order, `count` at a time."""
    if min(count, len(items)) < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(count) as pool:
        yield from pool.map(work, items)

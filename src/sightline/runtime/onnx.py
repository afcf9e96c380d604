"""OnnxStepper: an exported model behind the Stepper contract, on onnxruntime; and its encoders."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sightline.data.vocabulary import BEGIN, END, PAD
from sightline.errors import CheckpointError, DataError
from sightline.media.image import ImageSpec
from sightline.runtime.model_folder import AGAIN, ENCODER, LEADING, START, STEP, Export, processors
from sightline.search.steppers import SearchError, State, Steered, Stepper, StepResult

Item = TypeVar("Item")
Result = TypeVar("Result")
Floats = NDArray[np.float32]
NOTHING = np.float32(-1e30)  # the bias of a position that does not exist
PICTURES = 2  # encoded at a time: more take memory and are no quicker


@dataclass(frozen=True)
class OnnxState:
    """What one step hands to the next: arrays of N rows and of the B examples that they share."""

    rows: dict[str, Floats]  # (N, …)
    examples: dict[str, Floats]  # (B, M, …); empty without attention

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))


class OnnxStepper:
    """Runs an exported model one token at a time."""

    def __init__(
        self,
        export: Export,
        begin: int = BEGIN,
        end: int | None = END,
        banned: Sequence[int] = (),  # tokens never to be written
    ) -> None:
        self.begin = begin
        self.end = end
        self._step = export.session(STEP, threads=1)  # too little work to be shared
        self._start = export.session(START) if START in export.graphs else None
        reads = ENCODER in export.graphs and export.about["task"] != "caption"
        self._read = export.session(ENCODER) if reads else None
        self._wanted = {each.name: each.shape for each in self._step.get_inputs()}
        self._made = [each.name for each in self._step.get_outputs()]
        self._all = [name for name in self._made if name not in LEADING]
        self._some = [name for name in self._made if name != "log_probs"]
        self._check_fit(export)
        (self.vocab_size,) = self._wanted["forbidden"]
        self._forbidden = np.zeros(self.vocab_size, np.float32)
        self._forbidden[list(banned)] = -np.inf

    def _check_fit(self, export: Export) -> None:
        """Every input of a step comes from the start, from the step before, or from here."""
        given = {"tokens", "forbidden", "count", "bias", "attended"}
        if self._start is not None:
            given |= {each.name for each in self._start.get_outputs()}
        else:
            given |= {name.removeprefix("next_") for name in self._made}
        misfits = set(self._wanted) - given
        misfits |= {"forbidden", "count"} - set(self._wanted)
        misfits |= {"log_probs", *LEADING} - set(self._made)
        if misfits:
            raise CheckpointError(
                f"the graphs in {export.folder} do not fit together "
                f"({', '.join(sorted(misfits))}); {AGAIN}"
            )

    def writing(self, begin: int, end: int | None, banned: Sequence[int]) -> OnnxStepper:
        """The same model, begun and ended by other tokens."""
        twin = copy.copy(self)
        twin.begin, twin.end = begin, end
        twin._forbidden = np.zeros(self.vocab_size, np.float32)
        twin._forbidden[list(banned)] = -np.inf
        return twin

    def start(self, inputs: Any) -> State:
        """Token ids (B, M) or vectors (B, M, D), as the model reads; or the number of rows."""
        steered = inputs if isinstance(inputs, Steered) else None
        if self._start is None:
            if steered is not None:
                raise SearchError("this model has no attention that could be steered")
            return OnnxState(self._zeros(int(inputs)), {})
        values, mask = self._context(inputs if steered is None else steered.inputs)
        names = [each.name for each in self._start.get_outputs()]
        made = self._start.run(names, {"values": values, "mask": mask})
        found = dict(zip(names, made, strict=True))
        shared = [name for name in ("keys", "mixed", "factors") if name in found]
        examples: dict[str, Floats] = {name: found.pop(name) for name in shared}
        if shared:
            examples["bias"] = _bias(mask, steered)
        elif steered is not None:
            raise SearchError("this model has no attention that could be steered")
        if "attended" in self._wanted:
            found["attended"] = np.zeros(mask.shape, np.float32)
        return OnnxState(found, examples)

    def _context(self, inputs: Any) -> tuple[Floats, Floats]:
        """What is attended to, (B, M, D), and where there is something, (B, M)."""
        if self._read is None:
            values = np.asarray(inputs, np.float32)
            return values, np.ones(values.shape[:2], np.float32)
        tokens = np.asarray(inputs, np.int64)
        empty = np.flatnonzero((tokens == PAD).all(axis=1))
        if len(empty):
            raise DataError(f"example {empty[0] + 1} is empty: there is nothing to attend to")
        values, mask = self._read.run(["values", "mask"], {"tokens": tokens})
        return values, mask

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        found, state = self._run(state, tokens, self._all, 1)
        return StepResult(found["log_probs"], found.get("weights"), state)

    def leading(self, state: State, tokens: NDArray[np.int64], count: int) -> StepResult:
        found, state = self._run(state, tokens, self._some, count)
        log_probs, best = (found[name] for name in LEADING)
        return StepResult(log_probs, found.get("weights"), state, best)

    def _run(
        self, state: State, tokens: NDArray[np.int64], names: list[str], count: int
    ) -> tuple[dict[str, Any], OnnxState]:
        """These outputs of one step, and the state after it."""
        assert isinstance(state, OnnxState)
        given = {"tokens": tokens, "forbidden": self._forbidden, "count": np.array([count])}
        given |= state.rows | state.examples
        found = dict(zip(names, self._step.run(names, given), strict=True))
        rows = {name: found.get(f"next_{name}", before) for name, before in state.rows.items()}
        return found, OnnxState(rows, state.examples)

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


def _bias(mask: Floats, steered: Steered | None) -> Floats:
    """What is added to the scores of every step, (B, M)."""
    bias = np.where(mask > 0, np.float32(0), NOTHING)
    if steered is None:
        return bias
    if steered.bias.shape != mask.shape:
        shapes = f"{steered.bias.shape} for context sets of {mask.shape}"
        raise SearchError(f"a bias of shape {shapes}; give one number for each position")
    return bias + np.asarray(steered.bias, np.float32)


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


class OnnxPictureEncoder:
    """Preprocessed pictures to annotation vectors."""

    def __init__(self, export: Export) -> None:
        self.spec = ImageSpec.from_json(export.about["pictures"]["spec"])
        rows, columns = export.about["pictures"]["grid"]
        self._grid = int(rows), int(columns)
        self._session = export.session(ENCODER)

    def grid(self) -> tuple[int, int]:
        return self._grid

    def encode(self, images: Floats) -> Floats:
        """(B, 3, S, S) → (B, M, D)."""
        parts = [
            self._session.run(None, {"pictures": images[at : at + PICTURES]})[0]
            for at in range(0, len(images), PICTURES)
        ]
        return np.concatenate(parts)

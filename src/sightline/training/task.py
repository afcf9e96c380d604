"""What the training loop asks of a task; nothing here imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import nn

    from sightline.config import TrainingConfig
    from sightline.nn.model import Batch


class Recipe(Protocol):
    """What every task's recipe has; tasks add their own keys."""

    @property
    def task(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def training(self) -> TrainingConfig: ...


class Epoch(Protocol):
    """One pass over the training data, addressed by position so that a run can resume anywhere."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> Batch: ...


class TrainingTask(Protocol):
    """What the training loop asks of a task: its data, its model, its evaluation."""

    @property
    def recipe(self) -> Any: ...

    @property
    def files(self) -> dict[str, str]:
        """What goes into checkpoints besides config and weights: vocabularies."""

    @property
    def fingerprint(self) -> str:
        """Of the training data, `+` of its files; a resumed run must see the same."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The scores that `evaluate` gives, any of which can choose the best checkpoint."""

    @property
    def carries_state(self) -> bool:
        """The decoder's state is carried from batch to batch (truncated BPTT)."""

    def prepare(self) -> None:
        """The costly steps, each with a progress bar: features, vocabularies."""

    def build_model(self) -> nn.Module:
        """A module with `loss(batch, state) → (Loss, state)`."""

    def epoch(self, number: int) -> Epoch: ...

    def evaluate(self, model: Any) -> dict[str, float]:
        """Held-out scores by name; `loss` is nats per token."""

    def samples(self, model: Any) -> Sequence[str]:
        """A few outputs to look at during training, each as it is printed."""

"""What tasks share in training: minibatches, the model as a Describer, held-out scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from sightline.data import batching
from sightline.data.manifest import Example, Medium, read_data
from sightline.errors import DataError
from sightline.runtime.describer import Describer, Reader

if TYPE_CHECKING:
    from sightline.nn.model import Batch, EncoderDecoder

SHOWN = 4  # dev examples that are printed in training


@dataclass(frozen=True)
class Minibatches:
    """An epoch: what is in each batch, and what makes the batch of it and its position."""

    batches: Sequence[Any]
    make: Callable[[Any, int], Batch]

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, position: int) -> Batch:
        return self.make(self.batches[position], position)


class TaskData:
    """A TrainingTask that describes with `reader` and `codec`."""

    recipe: Any
    reader: Reader
    codec: Any
    metrics: tuple[str, ...]  # what `evaluate` gives
    carries_state = False
    grown: tuple[str, ...] = ()  # weights with more rows than those of `training.initial`

    def prepare(self) -> None:
        """Nothing is costly, unless a task says so."""

    @property
    def sizes(self) -> dict[str, int]:
        """What a training says at its start: how much there is to learn from."""
        return {"tokens in the vocabulary": len(self.codec.vocab)}

    def drawn(self, lengths: Sequence[int], epoch: int, weights: Sequence[float] = ()) -> Any:
        """The members of an epoch's minibatches, each as often as its weight says on average."""
        draw = getattr(batching, self.recipe.batching.kind)
        size, seed = self.recipe.batching.size, self.recipe.training.seed
        if all(weight == 1 for weight in weights):
            return draw(lengths, size, seed, epoch)
        members = batching.by_weight(weights, seed, epoch)
        drawn = draw([lengths[i] for i in members], size, seed, epoch)
        return [members[places] for places in drawn]

    def describer(self, model: EncoderDecoder) -> Describer:
        """The model as it is now."""
        from sightline.tasks import spec_of
        from sightline.training.load import describer_of

        spec = spec_of(self.recipe.task)
        return describer_of(spec, self.recipe, self.reader, self.codec, model)


class ManifestData(TaskData, ABC):
    """Trains on a manifest, and is scored by what the search writes for its dev split."""

    medium: ClassVar[Medium]
    scored: ClassVar[tuple[str, ...]]  # the metrics of that

    def __init__(self, recipe: Any) -> None:
        self.recipe = recipe
        examples = read_data(recipe.manifest, medium=self.medium)
        given = [example for example in examples if example.split == "train"]
        self.train = [example for example in given if self.trusted(example)]
        # of the vocabulary, which does not depend on how much a target counts
        self.targets = [target for example in given for target in example.targets]
        self.dev = [example for example in examples if example.split == "dev"]
        if not self.train or not self.dev:
            empty = "dev" if self.train else "train"
            raise DataError(f'{recipe.manifest} has no item of split "{empty}"; training needs one')

    @property
    def sizes(self) -> dict[str, int]:
        return {"items": len(self.train), "held out": len(self.dev), **super().sizes}

    def trusted(self, example: Example) -> list[tuple[str, float]]:
        """The targets to train on, with how much each counts."""
        origins = example.origins or ("human",) * len(example.targets)
        weights = (float(getattr(self.recipe.trust, origin)) for origin in origins)
        return [(t, weight) for t, weight in zip(example.targets, weights, strict=True) if weight]

    def source(self, example: Example) -> Any:
        """What `reader` reads of an example."""
        return example.source

    @abstractmethod
    def dev_batches(self) -> Iterable[Batch]:
        """For the likelihood of the first reference of each dev example."""

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        from sightline.metrics import score
        from sightline.tasks import spec_of

        write = spec_of(self.recipe.task).reference
        texts = self.written(model)
        references = {example.id: tuple(map(write, example.targets)) for example in self.dev}
        scores = score(texts, references, self.scored, intervals=False)["corpus"]
        kept = {name: value for name, value in scores.items() if name in self.metrics}
        return {"loss": nats_per_token(model, self.dev_batches()), **kept}

    def samples(self, model: EncoderDecoder) -> Sequence[str]:
        some = self.dev[:: max(1, len(self.dev) // SHOWN)][:SHOWN]
        return [
            f"    {self.source(example)}\n      → {text}\n        ({example.targets[0]})"
            for example, text in self._described(model, some)
        ]

    def written(self, model: EncoderDecoder) -> dict[str, str]:
        """What the model writes for each dev example; processes share the work."""
        from sightline.training import distributed

        def some(examples: list[Example]) -> dict[str, str]:
            return {example.id: text for example, text in self._described(model, examples)}

        return distributed.shared_out(self.dev, some)

    def _described(self, model: EncoderDecoder, some: list[Example]) -> list[tuple[Example, str]]:
        described = self.describer(model).describe([self.source(each) for each in some])
        return [(e, d.text) for e, d in zip(some, described, strict=True)]


def nats_per_token(model: EncoderDecoder, batches: Iterable[Batch]) -> float:
    """The mean negative log-likelihood of the targets; processes share the batches."""
    import torch

    from sightline.training import distributed

    device = next(model.parameters()).device
    with torch.inference_mode():
        model.eval()
        some = islice(batches, distributed.rank(), None, distributed.size())
        losses = [model.loss(batch.to(device))[0] for batch in some]
    mine = sum(loss.nats for loss in losses), sum(loss.tokens for loss in losses)
    sums = distributed.gathered(mine)
    return sum(nats for nats, _ in sums) / max(1, sum(tokens for _, tokens in sums))


def some_names(names: Iterable[object], most: int) -> str:
    """The first ones, for a batch's name in errors."""
    shown = [str(name) for name in names]
    return ", ".join(shown[:most]) + (" …" if len(shown) > most else "")

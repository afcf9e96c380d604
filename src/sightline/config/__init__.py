"""Recipes: frozen dataclasses ← YAML ← `key.sub=value`; a wrong key is an error that says where.

A recipe is a YAML file that names its `task`; the task's own dataclass (in `tasks/`) says which
keys there are; the sections that tasks share are here. `config/reader.py` does the reading.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml

from sightline.config.reader import (
    Check,
    Reader,
    compose,
    compose_file,
    key_paths,
    override_node,
    replaced,
)
from sightline.errors import ConfigError

T = TypeVar("T")

CellKind = Literal["rnn", "gru", "lstm"]


Count = Annotated[int, Check(lambda n: n >= 0, "0 or more")]
Positive = Annotated[int, Check(lambda n: n >= 1, "1 or more")]
Odd = Annotated[int, Check(lambda n: n >= 1 and n % 2 == 1, "an odd number")]
Weight = Annotated[float, Check(lambda x: x >= 0, "0 or more")]
AboveZero = Annotated[float, Check(lambda x: x > 0, "more than 0")]
Share = Annotated[float, Check(lambda x: 0 <= x <= 1, "from 0 to 1")]
BelowOne = Annotated[float, Check(lambda x: 0 <= x < 1, "0 or more and less than 1")]


@dataclass(frozen=True)
class AttentionConfig:
    """How the decoder looks at the context set (PAPERS §2)."""

    kind: Literal["none", "content", "location"] = "content"
    hard: bool = False  # look at one sampled position instead of the weighted sum
    size: Positive = 512  # A, the width of the tanh layer
    filters: Positive = 10  # location-aware: number of convolution filters
    width: Odd = 31  # location-aware: their width K
    cumulative: bool = False  # location-aware: convolve the sum of all previous weights
    temperature: AboveZero = 1.0  # below 1 sharpens
    top_k: Count = 0  # keep only the k best scores; 0 keeps all
    window: Count = 0  # only positions within this many of the last focus; 0 for all
    smoothing: bool = False  # logistic in place of exp


@dataclass(frozen=True)
class DecoderConfig:
    """The decoder of Xu et al., conditional (with a context set) or not."""

    cell: CellKind = "lstm"
    embedding: Positive = 512
    hidden: Positive = 512
    layers: Positive = 1
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    # Where the mean of the context set enters besides attention: the first state (Xu et al.),
    # one step before the first word (Vinyals et al.), every step (Donahue et al.).
    context: tuple[Literal["state", "first", "every"], ...] = ("state",)
    gate: bool = True  # Xu et al.'s β_t
    output: Literal["deep", "plain"] = "deep"  # eq. 7, or straight from h_t
    # What a readout becomes: a token of a vocabulary, a position of the context set (Vinyals et
    # al. 2015; `attention` is then an extra glimpse before each step, "none" in that paper), or
    # one class
    head: Literal["vocabulary", "pointer", "class"] = "vocabulary"
    dropout: BelowOne = 0.0
    sampled_softmax: Count = 0  # negatives per batch in training; 0 uses the whole vocabulary
    tied: bool = False  # the output layer's matrix is the embedding's


@dataclass(frozen=True)
class ImageEncoderConfig:
    """A convolutional network that reads pictures (`nn/encoders/image.py`)."""

    name: str = "efficientnet_lite2"
    # A file, package:NAME, hub:NAME, a run whose encoder learnt; default is the published ones
    weights: str = "default"
    stride: int | None = None  # 16 or 32: which map; None is the network's own
    size: Positive | None = None  # pixels
    mode: Literal["crop", "squeeze"] | None = None
    # What learns with the decoder: nothing, what lies above the map of stride 16, everything, or
    # everything from random weights
    learning: Literal["frozen", "upper", "tuned", "scratch"] = "frozen"
    mirror: bool = False  # in training, half of the pictures are seen in a mirror


@dataclass(frozen=True)
class SearchConfig:
    """The beam search that evaluates and describes, unless told otherwise."""

    beam: Positive = 5
    max_length: Positive = 30
    min_length: Count = 0
    length_penalty: float = 0.0


@dataclass(frozen=True)
class RecurrentConfig:
    """A recurrent encoder of a sequence."""

    cell: CellKind = "gru"
    embedding: Positive = 256
    hidden: Positive = 256
    layers: Positive = 1
    bidirectional: bool = True
    summary: bool = False  # one vector, the last state: the simple encoder-decoder
    dropout: BelowOne = 0.0


@dataclass(frozen=True)
class VocabularyConfig:
    """The tokens of one language (`data/vocabulary.py`)."""

    kind: Literal["word", "char", "bpe"] = "bpe"
    size: Positive = 8000  # at most this many tokens
    min_count: Positive = 1  # of words, characters or merges


@dataclass(frozen=True)
class HardConfig:
    """The hard-attention objective (Xu et al. §4.1)."""

    samples: Positive = 1  # N
    reward: Weight = 1.0  # λ_r
    entropy: Weight = 0.002  # λ_e
    baseline: bool = True
    decay: BelowOne = 0.9  # of the moving-average baseline
    expectation: Share = 0.5  # probability, per example, of α in place of the sample


@dataclass(frozen=True)
class LossConfig:
    """What is minimised."""

    label_smoothing: BelowOne = 0.0
    doubly_stochastic: Weight = 0.0  # λ of Xu et al. eq. 14
    hard: HardConfig = field(default_factory=HardConfig)
    per: Literal["token", "sequence"] = "token"  # what the loss is divided by


@dataclass(frozen=True)
class OptimiserConfig:
    kind: Literal["sgd", "adagrad", "adadelta", "rmsprop", "adam", "adamw"] = "adam"
    learning_rate: Weight = 1e-3
    momentum: BelowOne = 0.0  # sgd and rmsprop
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.999)  # adam and adamw
    rho: BelowOne = 0.95  # adadelta's and rmsprop's decay
    weight_decay: Weight = 0.0
    clip_norm: Weight = 5.0  # of the whole gradient; 0 does not clip
    encoder: Weight = 1.0  # the encoder's learning rate, as a factor of the decoder's


@dataclass(frozen=True)
class ScheduleConfig:
    """The learning rate's course, as a factor of `optimiser.learning_rate`."""

    kind: Literal["constant", "linear", "cosine", "exponential", "inverse_sqrt"] = "constant"
    warmup: Count = 0  # steps over which the factor rises from 0 to 1
    final: Weight = 0.0  # linear and cosine end at this factor; exponential reaches it


@dataclass(frozen=True)
class BatchingConfig:
    """How sequences are put together into minibatches (`data/batching.py`)."""

    kind: Literal["same_length", "similar_length", "token_budget"] = "same_length"
    size: Positive = 64  # sequences of one length or about one length, or padded tokens


@dataclass(frozen=True)
class TrainingConfig:
    steps: Positive = 10_000
    seed: Count = 1
    initial: str | None = None  # a model of the same kind whose weights to begin with
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    # Of the words before, the part that the model draws itself at the last step; grows from 0
    scheduled_sampling: BelowOne = 0.0
    ema: BelowOne = 0.0  # decay of the averaged weights that are evaluated and kept; 0 for none
    evaluate_every: Positive = 500
    save_every: Count = 0  # extra checkpoints between evaluations; 0 for none
    keep: Positive = 2  # newest checkpoints kept beside the best one
    select: str = "loss"  # the metric that chooses the best checkpoint
    patience: Count = 0  # evaluations without a better one before stopping; 0 never stops early
    explode: AboveZero = 5.0  # stop when the loss exceeds this many times its first value
    tensorboard: bool = True
    device: str = "auto"  # auto, cpu, cuda, cuda:1 …


# ---------------------------------------------------------------------------------- reading


def parse_file(path: Path | str, schema: type[T], overrides: Sequence[str] = ()) -> T:
    """Read a recipe into `schema`; `overrides` are `key.sub=value` strings that win over it."""
    return _parse(compose_file(Path(path)), str(path), schema, overrides)


def parse_text(text: str, schema: type[T], overrides: Sequence[str] = (), name: str = "text") -> T:
    return _parse(compose(text, name), name, schema, overrides)


def top_level(path: Path | str, key: str) -> str | None:
    """One scalar at the top of a YAML file, read before the schema is known (such as `task`)."""
    root = compose_file(Path(path))
    for name, value in root.value:
        if name.value == key and isinstance(value, yaml.ScalarNode):
            return str(value.value)
    return None


def _parse(root: yaml.MappingNode, name: str, schema: type[T], overrides: Sequence[str]) -> T:
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key:
            raise ConfigError(f"`{override}`: an override is written key.sub=value")
        root = replaced(root, key.split("."), override_node(value))
    return typing.cast(T, Reader(name, key_paths(schema)).build(root, schema))


# ---------------------------------------------------------------------------------- writing


def to_dict(config: Any) -> dict[str, Any]:
    """A config as plain dictionaries and lists, for YAML and JSON."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        return [plain(v) for v in value] if isinstance(value, tuple | list) else value

    return typing.cast(dict[str, Any], plain(dataclasses.asdict(config)))


def to_yaml(config: Any) -> str:
    # not allow_unicode: PyYAML then writes U+0085, U+2028 and U+2029 in ways it cannot read
    return yaml.safe_dump(to_dict(config), sort_keys=False)

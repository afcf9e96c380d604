"""Recipes: frozen dataclasses ← YAML ← `key.sub=value`; a wrong key is an error that says where.

A recipe is a YAML file that names its `task`; the task's own dataclass (in `tasks/`) says which
keys there are. `parse` fills any frozen dataclass from YAML nodes, so each message can give the
file, the line and the nearest known key.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import textwrap
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import yaml

from sightline.errors import ConfigError

T = TypeVar("T")

CellKind = Literal["rnn", "gru", "lstm"]


class Check(NamedTuple):
    """Which values of its type a key takes; held wherever a recipe is read."""

    holds: Callable[[Any], bool]
    wanted: str


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
    dropout: BelowOne = 0.0
    sampled_softmax: Count = 0  # negatives per batch in training; 0 uses the whole vocabulary


@dataclass(frozen=True)
class ImageEncoderConfig:
    """A convolutional network that reads pictures (`nn/image_encoders.py`)."""

    name: str = "efficientnet_lite2"
    weights: str = "default"  # a file, package:NAME, hub:NAME; default is the published ones
    stride: int | None = None  # 16 or 32: which map; None is the network's own
    size: int | None = None  # pixels
    mode: Literal["crop", "squeeze"] | None = None
    learning: Literal["frozen", "tuned", "scratch"] = "frozen"


@dataclass(frozen=True)
class SearchConfig:
    """The beam search that evaluates and describes, unless told otherwise."""

    beam: int = 5
    max_length: int = 30
    min_length: int = 0
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


@dataclass(frozen=True)
class ScheduleConfig:
    """The learning rate's course, as a factor of `optimiser.learning_rate`."""

    kind: Literal["constant", "linear", "cosine", "exponential", "inverse_sqrt"] = "constant"
    warmup: Count = 0  # steps over which the factor rises from 0 to 1
    final: Weight = 0.0  # linear and cosine end at this factor; exponential reaches it


@dataclass(frozen=True)
class BatchingConfig:
    """How sequences are put together into minibatches (`data/batching.py`)."""

    kind: Literal["same_length", "token_budget"] = "same_length"
    size: Positive = 64  # sequences of one length, or padded tokens


@dataclass(frozen=True)
class TrainingConfig:
    steps: Positive = 10_000
    seed: Count = 1
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
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

_MAP, _NULL, _STR = (f"tag:yaml.org,2002:{kind}" for kind in ("map", "null", "str"))


def parse_file(path: Path | str, schema: type[T], overrides: Sequence[str] = ()) -> T:
    """Read a recipe into `schema`; `overrides` are `key.sub=value` strings that win over it."""
    return _parse(_compose_file(Path(path)), str(path), schema, overrides)


def parse_text(text: str, schema: type[T], overrides: Sequence[str] = (), name: str = "text") -> T:
    return _parse(_compose(text, name), name, schema, overrides)


def top_level(path: Path | str, key: str) -> str | None:
    """One scalar at the top of a YAML file, read before the schema is known (such as `task`)."""
    root = _compose_file(Path(path))
    for name, value in root.value:
        if name.value == key and isinstance(value, yaml.ScalarNode):
            return str(value.value)
    return None


def key_paths(schema: type[Any], prefix: str = "") -> list[str]:
    """Every key that a recipe of this schema may set, as `section.key`."""
    paths = []
    for key, hint in typing.get_type_hints(schema).items():
        full = f"{prefix}{key}"
        if dataclasses.is_dataclass(hint):
            paths += key_paths(typing.cast(type, hint), f"{full}.")
        else:
            paths.append(full)
    return paths


def _compose_file(path: Path) -> yaml.MappingNode:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"no recipe at {path}; `sightline recipes` lists those there are"
        raise ConfigError(message) from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder; give the recipe's YAML file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start}); is it a recipe?") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    return _compose(text, str(path))


def _compose(text: str, name: str) -> yaml.MappingNode:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"the character {text[error.position]!r} cannot be in YAML; is it a recipe?"
        raise ConfigError(f"{name}:{line}: {what}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{name}:{line}: not YAML: {error.problem}") from None
    except RecursionError:
        raise ConfigError(f"{name}: nested too deeply; is it a recipe?") from None
    if root is None:
        return yaml.MappingNode(_MAP, [])
    if not isinstance(root, yaml.MappingNode):
        line = root.start_mark.line + 1
        raise ConfigError(f"{name}:{line}: a recipe is a mapping of `key: value` lines")
    return root


def _parse(root: yaml.MappingNode, name: str, schema: type[T], overrides: Sequence[str]) -> T:
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key:
            raise ConfigError(f"`{override}`: an override is written key.sub=value")
        root = _with(root, key.split("."), _override_node(value))
    return typing.cast(T, _Reader(name, key_paths(schema)).build(root, schema))


def _override_node(value: str) -> yaml.Node:
    """An override's value as YAML; what is not YAML, such as `*`, is text as it stands."""
    try:
        node = yaml.compose(value, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        node = None
    if node is None:
        return yaml.ScalarNode(_STR if value else _NULL, value)
    _forget_lines(node)
    return node


def _forget_lines(node: yaml.Node) -> None:
    """An override has no line: without marks, its errors name the key instead."""
    if node.start_mark is None:  # been here: an anchor may hold itself
        return
    node.start_mark = None
    for item in node.value if isinstance(node, yaml.CollectionNode) else ():
        for part in item if isinstance(item, tuple) else (item,):
            _forget_lines(part)


def _with(mapping: yaml.Node, path: list[str], value: yaml.Node) -> yaml.MappingNode:
    """The mapping with `value` at `path`; a copy, since YAML anchors may share the original."""
    is_section = isinstance(mapping, yaml.MappingNode)
    pairs = list(mapping.value) if is_section else []
    at = next((i for i, (key, _) in enumerate(pairs) if key.value == path[0]), len(pairs))
    if at == len(pairs):
        pairs.append((yaml.ScalarNode(_STR, path[0]), yaml.ScalarNode(_NULL, "")))
    key, child = pairs[at]
    pairs[at] = (key, value if len(path) == 1 else _with(child, path[1:], value))
    return yaml.MappingNode(_MAP, pairs, mapping.start_mark if is_section else None)


@dataclass(frozen=True)
class _Reader:
    """Fills dataclasses from the nodes of one file."""

    name: str  # of the file
    paths: list[str]  # every key of the whole recipe, to suggest from

    def fail(self, node: yaml.Node, key: str, problem: str) -> ConfigError:
        mark, key = node.start_mark, textwrap.shorten(key, 80)  # a quoted key may have line ends
        where = f"override {key}" if mark is None else f"{self.name}:{mark.line + 1}: {key}"
        return ConfigError(f"{where}: {problem}")

    def build(self, node: yaml.Node, schema: type[Any], section: str = "") -> Any:
        """A dataclass from a mapping node."""
        if not isinstance(node, yaml.MappingNode):
            raise self.fail(node, section, "expected keys below it, as in `key: value`")
        hints = typing.get_type_hints(schema, include_extras=True)
        prefix = f"{section}." if section else ""
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.fail(key_node, section or "the recipe", "a key is one word")
            key = key_node.value
            full = prefix + key
            if key not in hints:
                raise self.fail(key_node, full, f"unknown key; {self.suggest(full, list(hints))}")
            if key in values:
                raise self.fail(key_node, full, "given twice")
            values[key] = self.convert(value_node, hints[key], full)
        for item in dataclasses.fields(schema):
            required = item.default is item.default_factory is dataclasses.MISSING
            if required and item.name not in values:
                full = prefix + item.name
                raise ConfigError(f"{self.name}: needs {full}; set it there or as {full}=VALUE")
        return schema(**values)

    def suggest(self, full: str, known: list[str]) -> str:
        section, dot, key = full.rpartition(".")
        here = [section + dot + name for name in known]

        def likeness(path: str) -> float:
            return difflib.SequenceMatcher(None, key, path.rpartition(".")[2]).ratio()

        nearest = max([*here, *self.paths], key=likeness)  # of equals the first: in this section
        if likeness(nearest) < 0.6:
            return f"known here: {', '.join(known)}"
        return f"did you mean `{nearest}`?"

    def convert(self, node: yaml.Node, hint: Any, key: str) -> Any:
        """A value of the type `hint`."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if dataclasses.is_dataclass(hint):
            return self.build(node, typing.cast(type, hint), key)
        if origin is Annotated:
            value, check = self.convert(node, arguments[0], key), arguments[1]
            if not check.holds(value):
                raise self.fail(node, key, f"expected {check.wanted}, got {_shown(node)}")
            return value
        if origin in (typing.Union, types.UnionType):
            if node.tag == _NULL and type(None) in arguments:
                return None
            return self.convert(node, next(a for a in arguments if a is not type(None)), key)
        if origin is tuple:
            items = node.value if isinstance(node, yaml.SequenceNode) else [node]
            if arguments[-1] is Ellipsis:
                arguments = (arguments[0],) * len(items)
            if len(items) != len(arguments):
                problem = f"expected {len(arguments)} values, got {len(items)}"
                raise self.fail(node, key, problem)
            return tuple(self.convert(i, a, key) for i, a in zip(items, arguments, strict=True))
        try:
            return _choose(node, arguments) if origin is Literal else _scalar(node, hint)
        except ValueError as error:
            raise self.fail(node, key, str(error)) from None


def _shown(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        return "a list" if isinstance(node, yaml.SequenceNode) else "keys below it"
    return f"`{textwrap.shorten(node.value, 60)}`" if node.value else "nothing"


def _choose(node: yaml.Node, choices: tuple[Any, ...]) -> Any:
    named = {str(choice): choice for choice in choices}
    if isinstance(node, yaml.ScalarNode) and node.value in named:
        return named[node.value]
    close = difflib.get_close_matches(str(node.value), named, n=1)
    hint = f"; did you mean `{close[0]}`?" if close else ""
    raise ValueError(f"{_shown(node)} is not one of {', '.join(named)}{hint}")


def _scalar(node: yaml.Node, hint: type) -> Any:
    """Read as written, not as YAML 1.1 sees it: there 1e-3 is text, 010 is 8 and `no` is false."""
    wanted = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
    if isinstance(node, yaml.ScalarNode) and node.tag != _NULL:
        text = node.value
        if hint is str:
            return text
        if hint is bool and text.lower() in yaml.SafeLoader.bool_values:
            return yaml.SafeLoader.bool_values[text.lower()]
        if hint in (int, float):
            with contextlib.suppress(ValueError):
                number = float(text.lower().replace(".inf", "inf"))
                if hint is float and number == number:  # not NaN, which no setting means
                    return number
                if number.is_integer():
                    return int(text) if text.lstrip("+-").isdigit() else int(number)
    raise ValueError(f"expected {wanted[hint]}, got {_shown(node)}")


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

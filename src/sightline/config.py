"""Recipes: frozen dataclasses ← YAML ← `key.sub=value`; a wrong key is an error that says where.

A recipe is a YAML file that names its `task`; the task's own dataclass (in `tasks/`) says which
keys there are. `parse` fills any frozen dataclass from YAML nodes, so each message can give the
file, the line and the nearest known key.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml

from sightline.errors import ConfigError

T = TypeVar("T")

CellKind = Literal["rnn", "gru", "lstm"]


@dataclass(frozen=True)
class AttentionConfig:
    """How the decoder looks at the context set (PAPERS §2)."""

    kind: Literal["none", "content", "location"] = "content"
    hard: bool = False  # look at one sampled position instead of the weighted sum
    size: int = 512  # A, the width of the tanh layer
    filters: int = 10  # location-aware: number of convolution filters
    width: int = 31  # location-aware: their width K, odd
    cumulative: bool = False  # location-aware: convolve the sum of all previous weights
    temperature: float = 1.0  # below 1 sharpens
    top_k: int = 0  # keep only the k best scores; 0 keeps all
    window: int = 0  # only positions within this many of the last focus; 0 for all
    smoothing: bool = False  # logistic in place of exp


@dataclass(frozen=True)
class DecoderConfig:
    """The decoder of Xu et al., conditional (with a context set) or not."""

    cell: CellKind = "lstm"
    embedding: int = 512
    hidden: int = 512
    layers: int = 1
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    # Where the mean of the context set enters besides attention: the first state (Xu et al.),
    # one step before the first word (Vinyals et al.), every step (Donahue et al.).
    context: tuple[Literal["state", "first", "every"], ...] = ("state",)
    gate: bool = True  # Xu et al.'s β_t
    output: Literal["deep", "plain"] = "deep"  # eq. 7, or straight from h_t
    dropout: float = 0.0
    sampled_softmax: int = 0  # negatives per batch in training; 0 uses the whole vocabulary


@dataclass(frozen=True)
class RecurrentConfig:
    """A recurrent encoder of a sequence."""

    cell: CellKind = "gru"
    embedding: int = 256
    hidden: int = 256
    layers: int = 1
    bidirectional: bool = True
    summary: bool = False  # one vector, the last state: the simple encoder-decoder
    dropout: float = 0.0


@dataclass(frozen=True)
class HardConfig:
    """The hard-attention objective (Xu et al. §4.1)."""

    samples: int = 1  # N
    reward: float = 1.0  # λ_r
    entropy: float = 0.002  # λ_e
    baseline: bool = True
    decay: float = 0.9  # of the moving-average baseline
    expectation: float = 0.5  # probability, per example, of α in place of the sample


@dataclass(frozen=True)
class LossConfig:
    """What is minimised."""

    label_smoothing: float = 0.0
    doubly_stochastic: float = 0.0  # λ of Xu et al. eq. 14
    hard: HardConfig = field(default_factory=HardConfig)
    per: Literal["token", "sequence"] = "token"  # what the loss is divided by


@dataclass(frozen=True)
class OptimiserConfig:
    kind: Literal["sgd", "adagrad", "adadelta", "rmsprop", "adam", "adamw"] = "adam"
    learning_rate: float = 1e-3
    momentum: float = 0.0  # sgd and rmsprop
    betas: tuple[float, float] = (0.9, 0.999)  # adam and adamw
    rho: float = 0.95  # adadelta's and rmsprop's decay
    weight_decay: float = 0.0
    clip_norm: float = 5.0  # of the whole gradient; 0 does not clip


@dataclass(frozen=True)
class ScheduleConfig:
    """The learning rate's course, as a factor of `optimiser.learning_rate`."""

    kind: Literal["constant", "linear", "cosine", "exponential", "inverse_sqrt"] = "constant"
    warmup: int = 0  # steps over which the factor rises from 0 to 1
    final: float = 0.0  # linear and cosine end at this factor; exponential reaches it


@dataclass(frozen=True)
class BatchingConfig:
    """How sequences are put together into minibatches (`data/batching.py`)."""

    kind: Literal["same_length", "token_budget"] = "same_length"
    size: int = 64  # sequences of one length, or padded tokens


@dataclass(frozen=True)
class TrainingConfig:
    steps: int = 10_000
    seed: int = 1
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    ema: float = 0.0  # decay of the averaged weights that are evaluated and kept; 0 for none
    evaluate_every: int = 500
    save_every: int = 0  # extra checkpoints between evaluations; 0 for none
    keep: int = 2  # newest checkpoints kept beside the best one
    select: str = "loss"  # the metric that chooses the best checkpoint
    patience: int = 0  # evaluations without a better one before stopping; 0 never stops early
    explode: float = 5.0  # stop when the loss exceeds this many times its first value
    tensorboard: bool = True
    device: str = "auto"  # auto, cpu, cuda, cuda:1 …


# ---------------------------------------------------------------------------------- reading


def parse_file(path: Path | str, schema: type[T], overrides: Sequence[str] = ()) -> T:
    """Read a recipe into `schema`; `overrides` are `key.sub=value` strings that win over it."""
    return _parse(_compose_file(Path(path)), str(path), schema, overrides)


def parse_text(
    text: str, schema: type[T], overrides: Sequence[str] = (), name: str = "<text>"
) -> T:
    return _parse(_compose(text, name), name, schema, overrides)


def top_level(path: Path | str, key: str) -> str | None:
    """One scalar at the top of a YAML file, read before the schema is known (such as `task`)."""
    root = _compose_file(Path(path))
    for name, value in root.value:
        if name.value == key and isinstance(value, yaml.ScalarNode):
            return str(value.value)
    return None


def _compose_file(path: Path) -> yaml.MappingNode:
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; give the recipe's YAML file")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(
            f"no recipe at {path}; `sightline recipes` lists those there are"
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start}); is it a recipe?") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    return _compose(text, str(path))


def _compose(text: str, name: str) -> yaml.MappingNode:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}:{mark.line + 1}" if mark else name
        problem = getattr(error, "problem", None) or "not YAML"
        raise ConfigError(f"{where}: {problem}") from None
    if root is None:
        return yaml.MappingNode("tag:yaml.org,2002:map", [])
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"{name}:1: a recipe is a mapping of `key: value` lines")
    return root


def _parse(root: yaml.MappingNode, name: str, schema: type[T], overrides: Sequence[str]) -> T:
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key:
            raise ConfigError(f"`{override}`: an override is written key.sub=value")
        node = yaml.compose(value, Loader=yaml.SafeLoader) or yaml.ScalarNode(
            "tag:yaml.org,2002:null", ""
        )
        for part in _walk(node):
            part.start_mark = None  # has no line: its errors name the override
        _set(root, key.split("."), node)
    result = _build(root, schema, name, "")
    return typing.cast(T, result)


def _walk(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [node, *(n for key, value in node.value for n in (*_walk(key), *_walk(value)))]
    if isinstance(node, yaml.SequenceNode):
        return [node, *(n for item in node.value for n in _walk(item))]
    return [node]


def _set(mapping: yaml.MappingNode, path: list[str], value: yaml.Node) -> None:
    for index, (key, child) in enumerate(mapping.value):
        if key.value == path[0]:
            if len(path) == 1:
                mapping.value[index] = (key, value)
                return
            if isinstance(child, yaml.MappingNode):
                _set(child, path[1:], value)
                return
            del mapping.value[index]
            break
    key = yaml.ScalarNode("tag:yaml.org,2002:str", path[0])
    if len(path) == 1:
        mapping.value.append((key, value))
        return
    child = yaml.MappingNode("tag:yaml.org,2002:map", [])
    mapping.value.append((key, child))
    _set(child, path[1:], value)


def _where(node: yaml.Node, name: str, key: str) -> str:
    if node.start_mark is None:
        return f"override {key}"
    return f"{name}:{node.start_mark.line + 1}: {key}"


def _build(node: yaml.Node, schema: type[Any], name: str, prefix: str) -> Any:
    """Fill the dataclass `schema` from a mapping node."""
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(
            f"{_where(node, name, prefix)}: expected keys below it, as in `key: value`"
        )
    hints = typing.get_type_hints(schema)
    known = [f.name for f in dataclasses.fields(schema)]
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value)
        full = f"{prefix}.{key}" if prefix else key
        if key not in known:
            hint = _nearest(full, schema, known, prefix)
            raise ConfigError(f"{_where(key_node, name, full)}: unknown key{hint}")
        if key in values:
            raise ConfigError(f"{_where(key_node, name, full)}: given twice")
        values[key] = _convert(value_node, hints[key], name, full)
    missing = [
        f.name
        for f in dataclasses.fields(schema)
        if f.name not in values
        and f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        full = ", ".join(f"{prefix}.{m}" if prefix else m for m in missing)
        raise ConfigError(f"{name}: needs {full}; set it in the file or as {missing[0]}=VALUE")
    return schema(**values)


def _nearest(full: str, schema: type[Any], known: list[str], prefix: str) -> str:
    siblings = [f"{prefix}.{k}" if prefix else k for k in known]
    if prefix == "":
        siblings += [path for path in key_paths(schema) if path not in siblings]
    close = difflib.get_close_matches(full, siblings, n=1, cutoff=0.5)
    if not close:  # perhaps right but in another section
        last = full.rpartition(".")[2]
        close = [path for path in siblings if path.rpartition(".")[2] == last][:1]
    return f"; did you mean `{close[0]}`?" if close else f"; known here: {', '.join(known)}"


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


def _convert(node: yaml.Node, hint: Any, name: str, key: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return _build(node, typing.cast(type, hint), name, key)
    value = yaml.SafeLoader("").construct_object(node, deep=True)
    try:
        return _coerce(value, hint)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{_where(node, name, key)}: {error}") from None


def _coerce(value: Any, hint: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _coerce(value, next(a for a in arguments if a is not type(None)))
    if origin is Literal:
        if value not in arguments or isinstance(value, bool):
            choices = ", ".join(map(str, arguments))
            close = difflib.get_close_matches(str(value), [str(a) for a in arguments], n=1)
            hint_text = f"; did you mean `{close[0]}`?" if close else ""
            raise ValueError(f"`{value}` is not one of {choices}{hint_text}")
        return value
    if origin is tuple:
        items = value if isinstance(value, list) else [value]
        if arguments[-1] is Ellipsis:
            return tuple(_coerce(item, arguments[0]) for item in items)
        if len(items) != len(arguments):
            raise ValueError(f"expected {len(arguments)} values, got {len(items)}")
        return tuple(_coerce(item, a) for item, a in zip(items, arguments, strict=True))
    return _coerce_scalar(value, hint)


def _coerce_scalar(value: Any, hint: type) -> Any:
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int and isinstance(value, int | float) and not isinstance(value, bool):
        if int(value) == value:
            return int(value)
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif hint is float and isinstance(value, str):
        try:  # YAML 1.1 reads 1e-3 as a string
            return float(value)
        except ValueError:
            pass
    elif hint is str and isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    wanted = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}
    raise TypeError(f"expected {wanted.get(hint.__name__, hint.__name__)}, got `{value}`")


# ---------------------------------------------------------------------------------- writing


def to_dict(config: Any) -> dict[str, Any]:
    """A config as plain dictionaries and lists, for YAML and JSON."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        return [plain(v) for v in value] if isinstance(value, tuple | list) else value

    return typing.cast(dict[str, Any], plain(dataclasses.asdict(config)))


def to_yaml(config: Any) -> str:
    return yaml.safe_dump(to_dict(config), sort_keys=False, allow_unicode=True)

"""Recipes are read exactly, and every mistake in one is named with its place and a way out."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import time
import tracemalloc
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import config
from sightline.commands.recipes import SHIPPED
from sightline.config import (
    AttentionConfig,
    BatchingConfig,
    DecoderConfig,
    HardConfig,
    LossConfig,
    OptimiserConfig,
    RecurrentConfig,
    ScheduleConfig,
    TrainingConfig,
    parse_file,
    parse_text,
    to_yaml,
    top_level,
)
from sightline.config.reader import key_paths, type_words
from sightline.errors import ConfigError
from sightline.tasks import read_recipe
from sightline.tasks.translate.recipe import TranslateRecipe

RECIPES = sorted(SHIPPED.glob("*.yaml"))


@dataclass(frozen=True)
class Inner:
    size: config.Positive = 1
    needed: str = "there"


@dataclass(frozen=True)
class Strict:
    name: str
    inner: Inner = field(default_factory=Inner)


@dataclass(frozen=True)
class Nested:
    whole: Strict


@dataclass(frozen=True)
class Outer:
    """One key of every type that a recipe can have."""

    count: int = 3
    rate: float = 0.5
    name: str = "x"
    flag: bool = False
    kind: Literal["soft", "hard"] = "soft"
    maybe: str | None = None
    part: float | None = None
    pair: tuple[float, float] = (0.0, 1.0)
    many: tuple[str, ...] = ()
    inner: Inner = field(default_factory=Inner)
    other: Inner = field(default_factory=Inner)
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


KEYS = [f.name for f in dataclasses.fields(Outer)]


def error(text: str, *overrides: str, schema: type = Outer) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_text(text, schema, overrides, name="r.yaml")
    message = str(caught.value)
    assert "\n" not in message
    return message


# ------------------------------------------------------------------------------ what is read


def test_an_empty_recipe_is_all_defaults() -> None:
    assert parse_text("", Outer) == Outer()
    assert parse_text("# nothing\n", Outer) == Outer()


def test_every_type_is_read() -> None:
    text = """
count: 7
rate: 2
name: seven
flag: yes
kind: hard
maybe: something
part: 0.25
pair: [1, 2.5]
many: [a, b]
inner: {size: 9}
"""
    assert parse_text(text, Outer) == Outer(
        7, 2.0, "seven", True, "hard", "something", 0.25, (1.0, 2.5), ("a", "b"), Inner(9)
    )


@pytest.mark.parametrize(
    ("written", "number"),
    [("1e-3", 1e-3), ("1E3", 1000.0), (".5", 0.5), ("3", 3.0), ("-.inf", -math.inf), ("1_0", 10.0)],
)
def test_a_number_is_read_as_a_person_reads_it(written: str, number: float) -> None:
    value = parse_text(f"rate: {written}", Outer).rate
    assert type(value) is float
    assert value == number
    assert parse_text("", Outer, [f"rate={written}"]).rate == number


@pytest.mark.parametrize(
    ("written", "number"), [("2e4", 20000), ("010", 10), ("5.0", 5), ("'7'", 7), ("1_000", 1000)]
)
def test_a_whole_number_may_be_written_in_any_way(written: str, number: int) -> None:
    value = parse_text(f"count: {written}", Outer).count
    assert type(value) is int
    assert value == number


def test_a_large_whole_number_keeps_every_digit() -> None:
    assert parse_text("count: 12345678901234567891", Outer).count == 12345678901234567891


@pytest.mark.parametrize("written", ["no", "007", "1.50", "2020-01-01", "1e3", "0x10", "a=b"])
def test_text_is_kept_as_written(written: str) -> None:
    assert parse_text(f"name: {written}", Outer).name == written
    assert parse_text("", Outer, [f"name={written}"]).name == written


def test_null_is_only_for_what_may_be_absent() -> None:
    assert parse_text("maybe: null\npart:\n", Outer).maybe is None
    assert parse_text("maybe: 'null'", Outer).maybe == "null"
    assert "name: expected text, got nothing" in error("name:")


def test_one_value_will_do_for_a_list() -> None:
    assert parse_text("many: a", Outer).many == ("a",)
    assert parse_text("many: []", Outer).many == ()


# ----------------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count: 1\ncuont: 3\n", "r.yaml:2: cuont: unknown key; did you mean `count`?"),
        ("inner:\n  sise: 2\n", "r.yaml:2: inner.sise: unknown key; did you mean `inner.size`?"),
        (
            "training:\n  steps: 3\n  optimizer: {}\n",
            "r.yaml:3: training.optimizer: unknown key; did you mean `training.optimiser`?",
        ),
        # right, but in another section
        ("hidden: 3\n", "r.yaml:1: hidden: unknown key; did you mean `decoder.hidden`?"),
        (
            "decoder:\n  learning_rate: 1\n",
            "r.yaml:2: decoder.learning_rate: unknown key; "
            "did you mean `training.optimiser.learning_rate`?",
        ),
        ("inner: {zzz: 3}\n", "r.yaml:1: inner.zzz: unknown key; known here: size, needed"),
        ("\ncount: 1.5\n", "r.yaml:2: count: expected a whole number, got `1.5`"),
        ("count: many", "r.yaml:1: count: expected a whole number, got `many`"),
        ("count: true", "r.yaml:1: count: expected a whole number, got `true`"),
        ("count: .inf", "r.yaml:1: count: expected a whole number, got `.inf`"),
        ("count: [1]", "r.yaml:1: count: expected a whole number, got a list"),
        ("rate: {a: 1}", "r.yaml:1: rate: expected a number, got keys below it"),
        ("rate: fast", "r.yaml:1: rate: expected a number, got `fast`"),
        ("rate: .nan", "r.yaml:1: rate: expected a number, got `.nan`"),
        ("rate: nan", "r.yaml:1: rate: expected a number, got `nan`"),
        ("flag: 1", "r.yaml:1: flag: expected true or false, got `1`"),
        ("name: [a]", "r.yaml:1: name: expected text, got a list"),
        ("kind: sotf", "r.yaml:1: kind: `sotf` is not one of soft, hard; did you mean `soft`?"),
        ("kind: 7", "r.yaml:1: kind: `7` is not one of soft, hard"),
        ("kind: [soft]", "r.yaml:1: kind: a list is not one of soft, hard"),
        ("pair: [1, 2, 3]", "r.yaml:1: pair: expected 2 values, got 3"),
        ("pair:\n- 1\n- x\n", "r.yaml:3: pair: expected a number, got `x`"),
        ("inner: 3", "r.yaml:1: inner: expected keys below it, as in `key: value`"),
        ("inner:\n  size: 0\n", "r.yaml:2: inner.size: expected 1 or more, got `0`"),
        ("count: 1\nname: a\ncount: 2\n", "r.yaml:3: count: given twice"),
        ("inner:\n  size: 1\n  size: 1\n", "r.yaml:3: inner.size: given twice"),
        ('"a\\nb": 1', "r.yaml:1: a b: unknown key; known here: " + ", ".join(KEYS)),
        ("? [a, b]\n: 1\n", "r.yaml:1: the recipe: a key is one word"),
        ("count: 1\nname: a: b\n", "r.yaml:2: not YAML: mapping values are not allowed here"),
        ("count: 1\nname: [a\n", "r.yaml:3: not YAML: expected ',' or ']', but got '<stream end>'"),
        (
            "count: 1\n\tname: a\n",
            "r.yaml:2: not YAML: found character '\\t' that cannot start any token",
        ),
        ("count: 1\n---\ncount: 2\n", "r.yaml:2: not YAML: but found another document"),
        ("count: *other\n", "r.yaml:1: not YAML: found undefined alias 'other'"),
        (
            "count: 1\nname: \x01\n",
            "r.yaml:2: the character '\\x01' cannot be in YAML; is it a recipe?",
        ),
        ("[" * 600, "r.yaml: nested too deeply; is it a recipe?"),
        ("- a\n- b\n", "r.yaml:1: a recipe is a mapping of `key: value` lines"),
        ("\n\njust words\n", "r.yaml:3: a recipe is a mapping of `key: value` lines"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_the_nearest_key(text: str, message: str) -> None:
    assert error(text) == message


def test_what_is_missing_is_named_with_its_section() -> None:
    assert error("", schema=Strict) == "r.yaml: needs name; set it there or as name=VALUE"
    message = "r.yaml: needs whole.name; set it there or as whole.name=VALUE"
    assert error("whole: {}", schema=Nested) == message


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(error("count: " + "word " * 1000)) < 120


@pytest.mark.parametrize(
    ("schema", "bad"),
    [
        (AttentionConfig, "width: 4"),
        (AttentionConfig, "temperature: 0"),
        (AttentionConfig, "top_k: -1"),
        (DecoderConfig, "hidden: 0"),
        (DecoderConfig, "layers: -1"),
        (DecoderConfig, "dropout: 1"),
        (RecurrentConfig, "hidden: -8"),
        (HardConfig, "expectation: 1.1"),
        (LossConfig, "label_smoothing: -0.1"),
        (OptimiserConfig, "betas: [0.9, 1.0]"),
        (OptimiserConfig, "learning_rate: -1e-3"),
        (ScheduleConfig, "warmup: -1"),
        (BatchingConfig, "size: 0"),
        (TrainingConfig, "evaluate_every: 0"),
        (TrainingConfig, "seed: -1"),
    ],
)
def test_a_number_that_could_only_crash_later_is_refused(schema: type, bad: str) -> None:
    assert "r.yaml:1: " + bad.partition(":")[0] + ": expected " in error(bad, schema=schema)


# ------------------------------------------------------------------------------------ unions


@dataclass(frozen=True)
class Source:
    path: str
    weight: config.AboveZero = 1.0


@dataclass(frozen=True)
class Unions:
    """Keys that take values of several types."""

    name: str | int | None = None
    rate: Literal["auto", "off"] | float = "auto"
    layers: tuple[int, ...] | str = ()
    part: Inner | None = None
    size: config.Positive | str = 1
    share: config.Share | config.Positive = 1.0
    switch: bool | str | tuple[str, ...] = False
    manifest: tuple[str | Source, ...] = ()
    sources: str | tuple[str | Source, ...] = ""


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("name: 5", Unions(name=5)),
        ("name: '5'", Unions(name="5")),  # in quotes it is text
        ("name: five", Unions(name="five")),
        ("name: 1.5", Unions(name="1.5")),
        ("name:", Unions(name=None)),
        ("rate: off", Unions(rate="off")),
        ("rate: 1e-3", Unions(rate=1e-3)),
        ("layers: [1, 2]", Unions(layers=(1, 2))),
        ("layers: all", Unions(layers="all")),
        ("part: {size: 3}", Unions(part=Inner(3))),
        ("part: null", Unions(part=None)),
        ("size: 3", Unions(size=3)),
        ("size: large", Unions(size="large")),
        ("share: 7", Unions(share=7)),
        ("share: 0.5", Unions(share=0.5)),
        ("share: 0", Unions(share=0.0)),
        ("switch: on", Unions(switch=True)),
        ("switch: 'on'", Unions(switch="on")),
        ("switch: maybe", Unions(switch="maybe")),
        ("switch: [on]", Unions(switch=("on",))),
        ("manifest: a.jsonl", Unions(manifest=("a.jsonl",))),
        ("manifest: {path: a.jsonl}", Unions(manifest=(Source("a.jsonl"),))),
        (
            "manifest: [a.jsonl, {path: b.jsonl, weight: 0.5}]",
            Unions(manifest=("a.jsonl", Source("b.jsonl", 0.5))),
        ),
        ("sources: [{path: b}]", Unions(sources=(Source("b"),))),
        ("sources: b", Unions(sources="b")),
    ],
)
def test_every_arm_of_a_union_is_read(written: str, expected: Unions) -> None:
    value = parse_text(written, Unions)
    assert value == expected
    key = written.partition(":")[0]
    assert type(getattr(value, key)) is type(getattr(expected, key))
    assert parse_text(to_yaml(value), Unions) == value
    assert (
        parse_text("", Unions, [written.replace(": ", "=", 1).replace("name:", "name=")]) == value
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nrate: fast", "r.yaml:2: rate: expected `auto`, `off` or a number, got `fast`"),
        (
            "layers: {a: 1}",
            "r.yaml:1: layers: expected a list (each a whole number) or text, got keys below it",
        ),
        ("layers: [1, x]", "r.yaml:1: layers: expected a whole number, got `x`"),
        ("name: [5]", "r.yaml:1: name: expected text or a whole number, got a list"),
        ("part: 3", "r.yaml:1: part: expected keys below it, as in `key: value`"),
        ("part:\n  size: 0", "r.yaml:2: part.size: expected 1 or more, got `0`"),
        ("part:\n  sise: 0", "r.yaml:2: part.sise: unknown key; did you mean `part.size`?"),
        ("size: 0", "r.yaml:1: size: expected a whole number (1 or more) or text, got `0`"),
        (
            "share: -1",
            "r.yaml:1: share: expected a number (from 0 to 1) or a whole number (1 or more), "
            "got `-1`",
        ),
        (
            "manifest:\n- a.jsonl\n- path: b.jsonl\n  wieght: 1\n",
            "r.yaml:4: manifest.wieght: unknown key; did you mean `manifest.weight`?",
        ),
        (
            "manifest:\n- a.jsonl\n- [b.jsonl]\n",
            "r.yaml:3: manifest: expected text or keys (path, weight), got a list",
        ),
        ("sources:\n- a\n- {path: b,\n   weight: 0}\n", "r.yaml:4: sources.weight: expected "),
    ],
)
def test_the_error_of_a_union_names_every_arm_that_was_tried(text: str, message: str) -> None:
    assert error(text, schema=Unions).startswith(message)


def test_types_are_put_in_words() -> None:
    assert type_words(config.Odd) == "a whole number (1, 3, 5 …)"
    assert type_words(str | int | None) == "text, a whole number or null"
    assert type_words(tuple[float, float]) == "a list of 2 (each a number)"


def test_text_that_looks_like_a_number_stays_text() -> None:
    for text in ("1e-3", "08", "1_0", "inf", "-.inf", "5"):
        assert parse_text(to_yaml(Unions(name=text)), Unions).name == text


# ----------------------------------------------------------------------------------- aliases

LEVELS = [f"&a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 30)]
BOMB = f"[&a0 [x, x], {', '.join(LEVELS)}]"


@pytest.mark.parametrize("key", ["kind", "name", "many", "pair", "inner", "decoder"])
@pytest.mark.parametrize("value", [BOMB, "&x [*x]", "&x {size: *x, hidden: *x}"])
def test_aliases_that_expand_without_end_are_refused_at_once(key: str, value: str) -> None:
    assert len(BOMB) < 1200
    began = time.process_time()
    tracemalloc.start()
    try:
        assert error(f"{key}: {value}").startswith(f"r.yaml:1: {key}")
        assert error("", f"{key}={value}").startswith(f"override {key}")
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < 2


# --------------------------------------------------------------------------------- overrides


def test_overrides_win_and_the_last_one_wins_most() -> None:
    read = parse_text("count: 1\ninner: {size: 2}", Outer, ["count=5", "inner.size=6", "count=7"])
    assert (read.count, read.inner) == (7, Inner(6))


def test_overrides_make_the_sections_they_need() -> None:
    read = parse_text("", Outer, ["training.optimiser.learning_rate=1e-3", "many=[a, b]"])
    assert read.training == TrainingConfig(optimiser=OptimiserConfig(learning_rate=1e-3))
    assert read.many == ("a", "b")
    assert parse_text("inner:\n", Outer, ["inner.size=3"]).inner == Inner(3)
    assert parse_text("", Outer, ["inner={size: 4}"]).inner == Inner(4)


def test_an_override_keeps_its_neighbours() -> None:
    text = "inner: {size: 2, needed: here}"
    assert parse_text(text, Outer, ["inner.size=3"]).inner == Inner(3, "here")


def test_an_override_of_one_section_leaves_its_yaml_twin_alone() -> None:
    read = parse_text("inner: &same {size: 2}\nother: *same\n", Outer, ["inner.size=3"])
    assert (read.inner.size, read.other.size) == (3, 2)


@pytest.mark.parametrize("value", ["*", "a: b: c", "[draft", "@x", '"half', "# title", "%"])
def test_an_override_that_is_no_yaml_is_text(value: str) -> None:
    assert parse_text("", Outer, [f"name={value}"]).name == value


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("cuont=3", "override cuont: unknown key; did you mean `count`?"),
        ("inner.sise=3", "override inner.sise: unknown key; did you mean `inner.size`?"),
        ("inner={sise: 3}", "override inner.sise: unknown key; did you mean `inner.size`?"),
        (
            "lerning_rate=3",
            "override lerning_rate: unknown key; did you mean `training.optimiser.learning_rate`?",
        ),
        ("count=x", "override count: expected a whole number, got `x`"),
        ("count=", "override count: expected a whole number, got nothing"),
        ("count=[", "override count: expected a whole number, got `[`"),
        ("count.deep=3", "override count: expected a whole number, got keys below it"),
        ("inner=3", "override inner: expected keys below it, as in `key: value`"),
        ("pair=[1, x]", "override pair: expected a number, got `x`"),
        ("inner.size=0", "override inner.size: expected 1 or more, got `0`"),
        ("count", "`count`: an override is written key.sub=value"),
        ("=3", "`=3`: an override is written key.sub=value"),
    ],
)
def test_a_mistake_in_an_override_names_it(override: str, message: str) -> None:
    assert error("count: 1\ninner: {size: 2}\n", override) == message


# -------------------------------------------------------------------------------------- files


def test_a_missing_recipe_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no recipe at .*nope\.yaml; `sightline recipes` lists"):
        parse_file(tmp_path / "nope.yaml", Outer)


def test_a_folder_is_no_recipe(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder; give the recipe's YAML file"):
        parse_file(tmp_path, Outer)


def test_a_binary_file_is_no_recipe(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with pytest.raises(ConfigError, match=r"r\.yaml: not UTF-8 text \(byte 0\); is it a recipe\?"):
        parse_file(path, Outer)
    path.write_bytes(b"name: a\nELF\0\0\1")
    with pytest.raises(ConfigError, match=r"r\.yaml:2: the character '\\x00' cannot be in YAML"):
        parse_file(path, Outer)


def test_a_path_through_a_file_or_too_long_is_an_error_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "r.yaml", tmp_path / ("x" * 300)):
        with pytest.raises(ConfigError, match="cannot read"):
            parse_file(path, Outer)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_recipe_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("name: a")
    path.chmod(0)
    with pytest.raises(ConfigError, match=r"cannot read .*: Permission denied"):
        parse_file(path, Outer)


def test_one_key_can_be_read_before_its_schema_is_known(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("\ufefftask: translate\nother: {task: no}\n", encoding="utf-8")
    assert top_level(path, "task") == "translate"
    assert top_level(path, "other") is None
    assert top_level(path, "absent") is None


# ---------------------------------------------------------------------------------- writing


def test_key_paths_name_every_leaf() -> None:
    assert key_paths(Strict) == ["name", "inner.size", "inner.needed"]


WHOLE = [path for path in RECIPES if ": auto" not in path.read_text("utf-8")]  # others need data


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_a_shipped_recipe_round_trips(path: Path) -> None:
    recipe = read_recipe(path)
    assert parse_text(to_yaml(recipe), type(recipe)) == recipe
    assert top_level(path, "description"), "`sightline recipes` needs one line on each"


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_shipped_recipe_opens_with_the_command_that_runs_it(path: Path) -> None:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    assert re.match(rf"# sightline train (recipes/)?{path.stem}\b", first)


TEXTS = st.text(max_size=100)
NUMBERS = st.floats(allow_nan=False)
INNERS = st.builds(Inner, size=st.integers(min_value=1), needed=TEXTS)
OUTERS = st.builds(
    Outer,
    count=st.integers(),
    rate=NUMBERS,
    name=TEXTS,
    flag=st.booleans(),
    kind=st.sampled_from(["soft", "hard"]),
    maybe=st.none() | TEXTS,
    part=st.none() | NUMBERS,
    pair=st.tuples(NUMBERS, NUMBERS),
    many=st.lists(TEXTS, max_size=4).map(tuple),
    inner=INNERS,
    other=INNERS,
)


@given(OUTERS)
@settings(max_examples=60, deadline=None)
def test_any_config_round_trips_through_yaml(value: Outer) -> None:
    assert parse_text(to_yaml(value), Outer) == value


PARTS = st.one_of(TEXTS, st.builds(Source, path=TEXTS, weight=st.floats(1e-9, 1e9)))
LOOKALIKES = st.sampled_from(
    ["5", "1e-3", "on", "null", "~", "", "08", ".inf", "auto", "[a]", "*a"]
)
WRITTEN = TEXTS | LOOKALIKES
UNIONS = st.builds(
    Unions,
    name=WRITTEN | st.integers(-(10**9), 10**9) | st.none(),
    rate=st.sampled_from(["auto", "off"]) | NUMBERS,
    layers=st.lists(st.integers(-9, 9), max_size=3).map(tuple) | WRITTEN,
    part=st.none() | INNERS,
    size=st.integers(1, 10**9) | WRITTEN,
    share=st.floats(0, 1) | st.integers(1, 99),
    switch=st.booleans() | WRITTEN | st.lists(WRITTEN, max_size=3).map(tuple),
    manifest=st.lists(PARTS, max_size=3).map(tuple),
    sources=WRITTEN | st.lists(PARTS, max_size=3).map(tuple),
)


@given(UNIONS)
@settings(max_examples=200, deadline=None)
def test_any_value_of_a_union_round_trips_through_yaml(value: Unions) -> None:
    read = parse_text(to_yaml(value), Unions)
    assert read == value
    assert type(read.name) is type(value.name)
    assert type(read.switch) is type(value.switch)


@given(OUTERS)
@settings(max_examples=30, deadline=None)
def test_to_dict_is_plain_data(value: Outer) -> None:
    plain = config.to_dict(value)
    assert list(plain) == KEYS
    assert plain["many"] == list(value.many)
    assert plain["inner"] == {"size": value.inner.size, "needed": value.inner.needed}


@given(st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_is_a_recipe_or_a_one_line_error(text: str) -> None:
    message = ""
    try:
        assert isinstance(parse_text(text, Outer), Outer)
    except ConfigError as error:
        message = str(error)
    assert message == "" or message.startswith("text:")
    assert "\n" not in message


def test_a_section_is_completed_from_the_recipe_s_own_default():
    """`search.beam=7` must not reset the other keys of a section to the class's defaults."""
    recipe = config.parse_text("manifest: a.jsonl", TranslateRecipe, ["search.beam=7"])
    assert recipe.search.beam == 7
    assert recipe.search.max_length == TranslateRecipe("a.jsonl").search.max_length == 250

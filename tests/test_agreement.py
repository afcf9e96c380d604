"""Articles and plurals of a caption's words (`tasks/caption/agreement.py`)."""

import pytest

from sightline.config import SearchConfig
from sightline.data.vocabulary import SPECIALS, Vocabulary
from sightline.tasks.caption.agreement import agreed, plurals
from sightline.tasks.caption.parts import CaptionCodec

WORDS = [
    "a",
    "an",
    "the",
    "two",
    "eagle",
    "dog",
    "unicycle",
    "umbrella",
    "hour",
    "hen",
    "hens",
    "wolf",
    "group",
    "of",
    "one",
    "uniform",
]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("a eagle", "an eagle"),
        ("an dog with a umbrella", "a dog with an umbrella"),
        ("an unicycle and an uniform", "a unicycle and a uniform"),
        ("a hour on an one way street", "an hour on a one way street"),
        ("an unusual usual unit", "an unusual usual unit"),
        ("two hen on a eagle", "two hens on an eagle"),
        ("a group of wolf", "a group of wolves"),
        ("three fish and several ox", "three fish and several oxen"),
        ("two dogs", "two dogs"),
        ("the hen of two", "the hen of two"),
        ("of hen", "of hen"),
        ("a", "a"),
        ("", ""),
    ],
)
def test_words_agree(written: str, said: str) -> None:
    assert " ".join(agreed(written.split(), plurals())) == said


def test_plurals_are_of_animals_alone() -> None:
    names = plurals()
    assert names["ostrich"] == "ostriches"
    assert names["butterfly"] == "butterflies"
    assert "orange" not in names  # "two orange and white cats"
    assert "armor" not in names


def codec(words: list[str], common: int = 0) -> CaptionCodec:
    return CaptionCodec(Vocabulary("word", [*SPECIALS, *words]), SearchConfig(common=common))


def test_a_caption_can_be_read_back() -> None:
    hens = codec([word for word in WORDS if word != "hens"])
    tokens = hens.ids(["two", "hen", "and", "a", "eagle"])
    words = hens.words(tokens, None, None)
    assert words[:2] == ["two", "hens"]  # no word of its vocabulary
    assert hens.ids(words)[:2] == tokens[:2]
    assert codec(WORDS).ids(["hens"]) == [len(SPECIALS) + WORDS.index("hens")]


def test_common_words_and_other_languages_are_left_alone() -> None:
    common = codec(WORDS, common=len(SPECIALS) + len(WORDS))
    assert common.words(common.ids(["two", "hen"]), None, None) == ["two", "hen"]
    german = codec(["an", "a", "der", "eagle", "wand"])
    assert german.words(german.ids(["an", "der", "a", "eagle"]), None, None) == [
        "an",
        "der",
        "a",
        "eagle",
    ]

"""METEOR 1.5 equals the Java program that the COCO evaluation runs."""

import gzip
import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.errors import DataError, UserError
from sightline.metrics import meteor_metric as scoring
from sightline.metrics.meteor import Meteor
from sightline.metrics.meteor.index import open_index
from sightline.metrics.meteor.normalise import java_hash, words_of
from sightline.metrics.meteor.stemming import stem

CASES = json.loads(Path(__file__).with_name("meteor_cases.json").read_text())
HYPOTHESES = [case["hypothesis"] for case in CASES["items"]]
REFERENCES = [case["references"] for case in CASES["items"]]


def row_of(meteor: Meteor, hypothesis: str, references: list[str]) -> np.ndarray:
    return meteor.statistics([hypothesis], [references])[0]


def segment_score(row: np.ndarray) -> float:
    return float(scoring.scores(row))


def corpus_score(rows: np.ndarray) -> float:
    return float(scoring.scores(rows.sum(0), scoring.CORPUS_CHUNKS))


@pytest.fixture(scope="module")
def meteor() -> Meteor:
    pytest.importorskip("pycocoevalcap")
    return Meteor()


@pytest.fixture(scope="module")
def statistics(meteor: Meteor) -> np.ndarray:
    return meteor.statistics(HYPOTHESES, REFERENCES)


def test_counts_equal_the_jars(statistics: np.ndarray) -> None:
    for case, row in zip(CASES["items"], statistics, strict=True):
        assert row[: len(case["counts"])].tolist() == case["counts"], case


def test_scores_equal_the_jars(meteor: Meteor, statistics: np.ndarray) -> None:
    for case, row in zip(CASES["items"], statistics, strict=True):
        assert segment_score(row) == pytest.approx(case["score"], abs=1e-12), case
    assert corpus_score(statistics) == pytest.approx(CASES["corpus"], abs=1e-12)


@pytest.mark.parametrize(
    "name", ["fakecap", "flickr8k_test_shuffled", "odd_inputs_nonempty", "single_image"]
)
def test_every_golden_score_is_equal(meteor: Meteor, shared_data: Path, name: str) -> None:
    with gzip.open(shared_data / "cocoeval" / "goldens.json.gz") as file:
        golden = json.load(file)["sets"][name]
    images = golden["images"]
    rows = meteor.statistics(
        [image["hyp_tok"] for image in images], [image["refs_tok"] for image in images]
    )
    theirs = np.array([image["scores"]["METEOR"] for image in images])
    wrong = np.flatnonzero(np.abs(scoring.scores(rows) - theirs) > 1e-9)
    assert not len(wrong), [images[at]["hyp_tok"] for at in wrong]
    assert corpus_score(rows) == pytest.approx(golden["corpus"]["METEOR"], abs=1e-9)


@pytest.mark.slow
def test_a_thousand_pictures_take_a_second(shared_data: Path) -> None:
    open_index()
    with gzip.open(shared_data / "cocoeval" / "goldens.json.gz") as file:
        images = json.load(file)["sets"]["fakecap"]["images"]
    hypotheses = [image["hyp_tok"] for image in images]
    references = [image["refs_tok"] for image in images]
    begin = time.perf_counter()
    Meteor().statistics(hypotheses, references)
    assert time.perf_counter() - begin < 1.2


def test_one_at_a_time_equals_all_at_once(meteor: Meteor, statistics: np.ndarray) -> None:
    for hypothesis, references, row in zip(HYPOTHESES, REFERENCES, statistics, strict=True):
        assert row_of(meteor, hypothesis, references).tolist() == row.tolist()


def test_order_and_repetition_of_items_change_nothing(
    meteor: Meteor, statistics: np.ndarray
) -> None:
    order = np.random.default_rng(0).integers(0, len(HYPOTHESES), 3 * len(HYPOTHESES))
    rows = meteor.statistics([HYPOTHESES[i] for i in order], [REFERENCES[i] for i in order])
    assert np.array_equal(rows, statistics[order])


def test_a_corpus_taken_in_parts_is_the_same(
    meteor: Meteor, statistics: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.metrics.meteor._ITEMS", 7)
    assert np.array_equal(meteor.statistics(HYPOTHESES, REFERENCES), statistics)


def test_summed_statistics_give_the_corpus_score(meteor: Meteor, statistics: np.ndarray) -> None:
    halves = np.stack([statistics[::2].sum(0), statistics[1::2].sum(0)])
    assert scoring.scores(halves, scoring.CORPUS_CHUNKS).tolist() == [
        corpus_score(statistics[::2]),
        corpus_score(statistics[1::2]),
    ]


def test_a_text_scores_one_against_itself(meteor: Meteor) -> None:
    text = "a brown dog jumps over the fence"
    assert segment_score(row_of(meteor, text, ["a cat", text])) == 1.0


def test_the_best_reference_counts(meteor: Meteor) -> None:
    references = ["two cats", "a dog on grass", "the dog is here"]
    alone = [segment_score(row_of(meteor, "a dog", [r])) for r in references]
    together = segment_score(row_of(meteor, "a dog", references))
    assert together == max(alone)
    assert len(set(alone)) > 1


def test_nothing_to_compare_scores_nothing(meteor: Meteor) -> None:
    assert meteor.statistics([], []).shape == (0, len(row_of(meteor, "a", ["a"])))
    assert corpus_score(meteor.statistics([], [])) == 0.0
    for hypothesis, references in (("", ["a dog"]), ("a dog", []), ("", []), ("a dog", [""])):
        assert segment_score(row_of(meteor, hypothesis, references)) == 0.0
    # pycocoevalcap sends no references as one empty one
    assert np.array_equal(row_of(meteor, "a dog", []), row_of(meteor, "a dog", [""]))


def test_different_counts_of_items_are_refused(meteor: Meteor) -> None:
    with pytest.raises(ValueError, match="2 hypotheses but 1 reference lists"):
        meteor.statistics(["a", "b"], [["a"]])


def test_lines_of_a_hundred_thousand_characters_are_scored(meteor: Meteor) -> None:
    long = "x" * 100_000
    assert segment_score(row_of(meteor, long, [long])) == 1.0
    many = "a " * 50_000
    counts = row_of(meteor, many, ["a man on a horse"])
    assert counts[:2].tolist() == [50_000, 5]
    assert counts[4:20].sum() == 4  # both of the reference's, and as many of the hypothesis


def test_texts_that_no_search_could_align_are_named(meteor: Meteor) -> None:
    with pytest.raises(DataError, match=r"“a a a .*50000 words.*too many repeated words"):
        meteor.statistics(["a dog", "a " * 50_000], [["a cat"], ["a " * 49_999]])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=4), st.text(max_size=40))
def test_any_text_has_a_score(meteor: Meteor, references: list[str], hypothesis: str) -> None:
    score = segment_score(row_of(meteor, hypothesis, references))
    assert 0.0 <= score <= 1.0


def test_lone_surrogates_are_words(meteor: Meteor) -> None:
    assert row_of(meteor, "\ud800 dog", ["dog \ud800"])[4:6].tolist() == [2, 2]


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycocoevalcap", None)
    with pytest.raises(UserError, match=r"pip install 'sightline-attention\[meteor\]'"):
        Meteor()


def test_stems_equal_the_jars() -> None:
    assert {word: stem(word) for word in CASES["stems"]} == CASES["stems"]


def test_normalised_text_equals_the_jars() -> None:
    pytest.importorskip("pycocoevalcap")
    abbreviations = open_index().abbreviations
    for text, words in CASES["normalised"]:
        assert words_of(text, abbreviations) == words, text


def test_java_hash_is_javas() -> None:
    assert java_hash("") == 0
    assert java_hash("hello") == 99162322
    assert java_hash("an") == java_hash("c0")
    assert java_hash("polygenelubricants") == -(2**31)
    assert java_hash("😀") == 1772899  # two UTF-16 units

"""The benchmarks of translation: their measures, where the answers are known otherwise."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sightline
from sightline.data.manifest import Example, read_manifest
from sightline.metrics.alignment import GoldAlignment
from toy_language import sentences, train_toy, write_manifest


@pytest.fixture(scope="module")
def quality() -> ModuleType:
    return importlib.import_module("benchmarks.translation_quality")


@pytest.fixture(scope="module")
def alignment() -> ModuleType:
    return importlib.import_module("benchmarks.alignment")


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hardly trained translator in `run`, its manifest in toy.jsonl."""
    folder = tmp_path_factory.mktemp("toy")
    write_manifest(folder / "toy.jsonl", train=60, dev=4, test=20)
    train_toy(folder, steps=2)
    return folder


# ---- quality -----------------------------------------------------------------------------------


def made_up(count: int) -> list[Example]:
    """Sentences of 4 to 23 words, each translated by itself."""
    texts = [" ".join(f"w{n * k % 97}" for k in range(1, 5 + n % 20)) for n in range(1, count + 1)]
    return [Example(str(n), "test", (t,), "source", source=t) for n, t in enumerate(texts)]


def worse_when_long(text: str) -> str:
    """Every third word from the tenth on is wrong."""
    return " ".join("no" if k > 6 and k % 3 == 0 else w for k, w in enumerate(text.split()))


def test_the_gap_is_given_by_length_and_grows_where_it_does(quality: ModuleType) -> None:
    import sacrebleu

    examples = made_up(400)
    right = {e.id: e.targets[0] for e in examples}
    wrong = {e.id: worse_when_long(e.targets[0]) for e in examples}
    gap = quality.gap_by_length(examples, right, wrong)
    assert sum(gap.sizes) == 400
    assert gap.classes[0][0] == 0
    assert gap.classes[-1][1] == math.inf
    for (low, high), two in zip(gap.classes, gap.scores[1], strict=True):
        inside = [e for e in examples if low < len(e.targets[0].split()) <= high]
        expected = sacrebleu.corpus_bleu(
            [wrong[e.id] for e in inside], [[e.targets[0] for e in inside]]
        )
        assert two == pytest.approx(expected.score)
    assert gap.scores[0] == pytest.approx(100)
    for trend in (gap.points, gap.share):
        assert 0 < trend.interval[0] < trend.slope < trend.interval[1]


def test_no_gap_does_not_grow(quality: ModuleType) -> None:
    examples = made_up(100)
    wrong = {e.id: worse_when_long(e.targets[0]) for e in examples}
    gap = quality.gap_by_length(examples, wrong, wrong)
    assert gap.points == gap.share == quality.Trend(0, (0, 0))


def test_models_are_compared_on_the_test_split_and_drawn(
    quality: ModuleType, toy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    figure, manifest, run = toy / "lengths.png", str(toy / "toy.jsonl"), str(toy / "run")
    arguments = ["", manifest, f"one={run}", run, "--ensemble", "--figure", str(figure)]
    monkeypatch.setattr("sys.argv", arguments)
    quality.main()
    printed = capsys.readouterr().out
    held_out = [e for e in read_manifest(manifest, medium="source") if e.split == "test"]
    assert printed.startswith(f"{len(held_out)} sentences, the test split")
    assert "tok:13a" in printed
    assert "case:mixed" in printed
    # an ensemble of a model and itself is that model
    assert quality.translations({"one": run}, held_out, True)["together"] == {
        e.id: d.text
        for e, d in zip(
            held_out, sightline.load(run).describe([e.source for e in held_out]), strict=True
        )
    }
    assert figure.stat().st_size > 5000


# ---- alignment ---------------------------------------------------------------------------------


def test_agreement_is_precision_recall_and_the_error_of_both(alignment: ModuleType) -> None:
    gold = [GoldAlignment(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)}))]
    scores = alignment.agreement([{(0, 0), (2, 1), (2, 0), (1, 0)}], gold)
    assert (scores.precision, scores.recall) == (2 / 4, 1 / 2)
    assert scores.error == pytest.approx(1 - (1 + 2) / (4 + 2))


def test_the_gold_alignments_are_read_as_published(
    alignment: ModuleType, shared_data: Path
) -> None:
    folder = shared_data / "gold_alignments" / "de-en"
    pairs, gold = alignment.read_gold(folder)
    assert len(pairs) == len(gold) == 508
    assert sum(len(each.sure) for each in gold) == 9613
    assert sum(len(each.possible) for each in gold) == 10534
    for (german, english), each in zip(pairs, gold, strict=True):
        assert max(s for s, _ in each.possible) < len(german.split())
        assert max(t for _, t in each.possible) < len(english.split())
    published = [
        {(int(s), int(t)) for s, t in (link.split("-") for link in line.split())}
        for line in (folder / "deen.out").read_text().splitlines()
    ]
    assert alignment.agreement(published, gold).error == pytest.approx(0.174, abs=5e-4)


def test_the_chance_of_hits_is_the_binomial_one(alignment: ModuleType) -> None:
    expected = sum(math.comb(9, k) * 0.2**k * 0.8 ** (9 - k) for k in range(4, 10))
    assert alignment.at_least(4, [0.2] * 9) == pytest.approx(expected)
    # of two with chances of their own: 1 − both miss
    assert alignment.at_least(1, [0.5, 0.1]) == pytest.approx(1 - 0.5 * 0.9)
    assert alignment.at_least(0, [0.3]) == 1


def test_copied_words_stand_once_on_both_sides(alignment: ModuleType) -> None:
    copied = alignment.copied_words(
        [
            ("Ein Ball fliegt nach Boston.", "In Boston, a ball flies."),
            ("Ball und Ball in Rom", "ball in Rom"),  # twice on one side; `in` is short
        ]
    )
    places = [(word.pair, word.source, word.target, word.exact) for word in copied]
    assert places == [(0, 4, 1, True), (0, 1, 3, False), (1, 4, 2, True)]


def test_words_are_unseen_if_the_training_text_lacks_them(alignment: ModuleType) -> None:
    assert alignment.unseen(["Der Hund, die Katze ."], ["Der Hund.", "Katze?"]) == 1 / 4


def test_a_model_and_one_backwards_give_links_in_one_order(
    alignment: ModuleType, toy: Path
) -> None:
    """The same model both ways, with a pair's sides exchanged: the links are exchanged."""
    model = sightline.load(toy / "run")
    pairs = [(" ".join(s), " ".join(t)) for s, t, _ in sentences(3, 7)]
    exchanged = [(target, source) for source, target in pairs]
    forth = alignment.systems_of(model, None, exchanged)["posterior"]
    systems = alignment.systems_of(model, model, pairs)
    assert systems["posterior, backwards"] == [{(s, t) for t, s in links} for links in forth]
    for (source, target), links in zip(pairs, systems["attention"], strict=True):
        assert [t for _, t in sorted(links, key=lambda link: link[1])] == list(
            range(len(target.split()))
        )
        assert all(s < len(source.split()) for s, _ in links)

"""Bracket scores against PYEVALB, and by hand."""

import random

import pytest

from sightline.data.trees import Tree, read_trees
from sightline.errors import DataError
from sightline.metrics import score

LABELS = ["S", "NP", "VP", "PP", "ADVP", "PRT", "SBAR"]
TAGS = ["NN", "VB", "IN", ",", ".", "``", "''", ":", "DT", "$"]


def random_tree(rng, words, depth=0):
    """Over these (tag, word) pairs, with unary chains and punctuation of its own brackets."""
    if len(words) == 1 and rng.random() < 0.7:
        return Tree(words[0][0], word=words[0][1])
    cuts = sorted(rng.sample(range(1, len(words)), min(len(words) - 1, rng.randint(0, 3))))
    if depth > 8:
        cuts = range(1, len(words))
    parts = [words[a:b] for a, b in zip([0, *cuts], [*cuts, len(words)], strict=True)]
    deeper = depth + 1 if len(parts) > 1 else depth + 3
    if deeper > 9:
        return Tree(rng.choice(LABELS), tuple(Tree(tag, word=word) for tag, word in words))
    return Tree(rng.choice(LABELS), tuple(random_tree(rng, part, deeper) for part in parts))


def pairs(count, seed=0, tags=TAGS):
    """Trees over the same tagged words, some of them alike."""
    rng = random.Random(seed)
    for _ in range(count):
        words = [(rng.choice(tags), f"w{i}") for i in range(rng.randint(2, 12))]
        words.append(("NN", "last"))
        gold = Tree("S", (random_tree(rng, words),))
        other = gold if rng.random() < 0.3 else Tree("S", (random_tree(rng, words),))
        yield other.brackets(), gold.brackets()


def ours(found, gold):
    numbers = {str(i): text for i, text in enumerate(found)}
    references = {str(i): [text] for i, text in enumerate(gold)}
    return score(numbers, references, ["brackets"], intervals=False)


def test_brackets_are_those_of_evalb():
    """What evalb.c prints for these trees with COLLINS.prm."""
    scores = ours(*zip(*pairs(500, seed=3), strict=True))["corpus"]
    keys = ("bracket_recall", "bracket_precision", "bracket_f1", "bracket_exact", "tag_accuracy")
    assert [round(100 * scores[key], 2) for key in keys] == [49.92, 49.21, 49.56, 34.20, 100.00]


def test_brackets_are_those_of_pyevalb():
    """Which has no parameter file, and counts a label once where it stands on itself."""
    pyevalb = pytest.importorskip("PYEVALB.scorer")
    create = pytest.importorskip("PYEVALB.parser").create_from_bracket_string
    some = [
        (found, gold)
        for found, gold in pairs(900, tags=["NN", "VB", "IN", "DT"])
        if not any(repeats(text) or "PRT" in text for text in (found, gold))
    ]
    assert len(some) > 50
    per_item = ours(*zip(*some, strict=True))["per_item"]
    for item, (found, gold) in zip(per_item.values(), some, strict=True):
        result = pyevalb.Scorer().score_trees(create(gold), create(found))
        assert item["bracket_recall"] == pytest.approx(result.recall)
        assert item["bracket_precision"] == pytest.approx(result.prec)
        assert item["tag_accuracy"] == pytest.approx(result.tag_accracy)  # its spelling


def repeats(text):
    """Whether a phrase holds nothing but one of the same label and words."""
    found = [(p.label, a, b) for p, a, b in read_trees(text)[0].phrases()]
    return len(found) > len(set(found))


def test_by_hand():
    gold = "(TOP (S (NP (DT a) (NN dog)) (VP (VBZ runs) (PRT (RP off))) (. .)))"
    found = "(TOP (S (NP (DT a) (NN dog)) (VP (VBZ runs) (ADVP (RB off)) (. .))))"
    scores = ours([found], [gold])["corpus"]
    # S, NP, VP and ADVP = PRT; without the full stop the VPs are the same
    assert scores["bracket_f1"] == 1
    assert scores["bracket_exact"] == 1
    assert scores["tag_accuracy"] == pytest.approx(3 / 4)


def test_what_is_no_tree_over_the_words_has_no_brackets():
    gold = "(S (NP (DT a) (NN dog)))"
    for text in ("", "(S (NP (DT a", "(S (NP (DT a) (NN cat)))", "a dog", f"{gold} {gold}"):
        scores = ours([text], [gold])["corpus"]
        assert scores["bracket_f1"] == scores["bracket_recall"] == 0
    with pytest.raises(DataError, match=r"item '0'.*is not closed"):
        ours([gold], ["(S (NP"])

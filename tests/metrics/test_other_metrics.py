"""Error rates, perplexity, alignment error rate, and sacrebleu's metrics behind our base class."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import UserError
from sightline.metrics import Corpus, score
from sightline.metrics.alignment import AlignmentErrorRate, GoldAlignment, read_alignment
from sightline.metrics.error_rate import edits
from sightline.metrics.perplexity import Perplexity

TOKENS = st.lists(st.sampled_from("abc"), max_size=7)


def plain_edits(first, second):
    if not first or not second:
        return len(first) + len(second)
    return min(
        plain_edits(first[1:], second) + 1,
        plain_edits(first, second[1:]) + 1,
        plain_edits(first[1:], second[1:]) + (first[0] != second[0]),
    )


@given(TOKENS, TOKENS)
def test_edits_are_the_fewest(first, second):
    assert edits(first, second) == plain_edits(first, second)


def test_word_error_rate_is_edits_per_reference_word():
    result = score(
        {1: "the cat sat", 2: "a b c d"}, {1: ["the cat sat down"], 2: ["x y", "a b c"]}, ["wer"]
    )
    assert result["corpus"]["wer"] == pytest.approx((1 + 1) / (4 + 3))
    assert result["per_item"][2]["wer"] == pytest.approx(1 / 3)
    assert score({1: "x"}, {1: [""]}, ["per"])["corpus"]["per"] == 1


def test_perplexity_of_equal_choices_is_their_number():
    metric = Perplexity()
    statistics = metric.statistics([[math.log(1 / 8)] * 5, [math.log(1 / 8)] * 2])
    assert metric.corpus_scores(statistics)[0] == pytest.approx(8)
    statistics = metric.statistics([[math.log(0.5)], [math.log(0.25), 0.0]])
    assert metric.item_scores(statistics)[:, 0] == pytest.approx([2, 2])
    assert metric.corpus_scores(metric.statistics([[-math.inf]]))[0] == math.inf
    for wrong in (0.1, math.nan):
        with pytest.raises(UserError, match="item 1"):
            metric.statistics([[-1.0], [wrong]])


def test_alignment_error_rate_by_hand():
    gold = read_alignment("1-1 2-2 3p2")
    assert gold == GoldAlignment(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)}))
    metric = AlignmentErrorRate()
    statistics = metric.statistics([([(0, 0), (2, 1), (3, 3)], gold), ([], read_alignment(""))])
    # |A∩S| = 1, |A∩P| = 2, |A| = 3, |S| = 2
    assert metric.item_scores(statistics)[:, 0] == pytest.approx([1 - 3 / 5, 0])
    for wrong in ("1:1", "0-1", "1-", "p"):
        with pytest.raises(UserError, match=r"file\.gold, line 3"):
            read_alignment(wrong, where="file.gold, line 3")


def test_alignment_error_rate_of_a_published_system(shared_data):
    folder = shared_data / "gold_alignments" / "awesome-align" / "examples"
    gold = [read_alignment(line) for line in (folder / "enfr.gold").open(encoding="utf-8")]
    lines = (folder / "enfr.awesome-align.out").open(encoding="utf-8")
    links = [read_alignment(line, first=0).sure for line in lines]
    metric = AlignmentErrorRate()
    rate = metric.corpus_scores(metric.statistics(list(zip(links, gold, strict=True))))[0]
    assert rate == pytest.approx(0.0407, abs=5e-5)


def test_translation_scores_are_sacrebleus():
    import sacrebleu

    hypotheses = ["The dog bit the man.", "It wasn't surprising.", "The man had bitten the dog."]
    references = [
        ["The dog bit the man.", "The dog had bit the man."],
        ["It was not surprising.", "No one was surprised."],
        ["The man bit him first.", "The man had bitten the dog."],
    ]
    streams = [list(stream) for stream in zip(*references, strict=True)]
    result = score(dict(enumerate(hypotheses)), dict(enumerate(references)), ["sacrebleu", "chrf"])
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    assert result["corpus"]["sacrebleu"] == bleu.corpus_score(hypotheses, streams).score
    assert result["corpus"]["chrf"] == pytest.approx(chrf.corpus_score(hypotheses, streams).score)
    assert result["signatures"]["sacrebleu"] == str(bleu.get_signature())
    ragged = score({1: "a b c d", 2: "c d"}, {1: ["a b c d", "x"], 2: ["c d"]}, ["sacrebleu"])
    assert ragged["corpus"]["sacrebleu"] == pytest.approx(100)


def test_metrics_import_without_heavy_packages():
    import subprocess
    import sys

    code = "import sys, sightline.metrics; print([m for m in %r if m in sys.modules])"
    heavy = ["torch", "sacrebleu", "pycocoevalcap", "onnxruntime", "PIL", "rich", "typer"]
    run = subprocess.run([sys.executable, "-c", code % heavy], capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr


def test_a_corpus_lines_up_by_id():
    corpus = Corpus.of({"b": "x", "a": ["y"]}, {"a": "1", "b": ["2", "3"]})
    assert corpus.references == (("2", "3"), ("1",))
    assert corpus.hypotheses == ("x", "y")
    np.testing.assert_array_equal(next(corpus.ngrams()).owners, [0, 0, 1])

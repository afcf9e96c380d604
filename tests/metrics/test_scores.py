"""The scores against pycocoevalcap's, against plain definitions, and on odd input."""

import gzip
import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sightline.errors import UserError
from sightline.metrics import Bleu, Cider, Corpus, DocumentFrequencies, compare, score
from sightline.metrics.bootstrap import draws
from sightline.metrics.rouge import rouge_l

NAMES = {"ROUGE_L": "rouge_l", "CIDEr": "cider"} | {f"Bleu_{n}": f"bleu_{n}" for n in (1, 2, 3, 4)}
FAST = ["bleu", "rouge_l", "cider"]


@pytest.fixture(scope="module")
def goldens(shared_data):
    with gzip.open(shared_data / "cocoeval" / "goldens.json.gz") as file:
        return json.load(file)["sets"]


@pytest.mark.parametrize(
    "name", ["fakecap", "flickr8k_test_shuffled", "odd_inputs_nonempty", "single_image"]
)
def test_scores_equal_the_goldens_from_raw_text(goldens, name):
    images = goldens[name]["images"]
    result = score(
        {image["image_id"]: image["hyp_raw"] for image in images},
        {image["image_id"]: image["refs_raw"] for image in images},
        FAST,
        intervals=False,
    )
    for theirs, ours in NAMES.items():
        assert result["corpus"][ours] == pytest.approx(goldens[name]["corpus"][theirs], abs=1e-9)
        for image in images:
            mine = result["per_item"][image["image_id"]][ours]
            assert mine == pytest.approx(image["scores"][theirs], abs=1e-9), image["image_id"]


# Plain definitions, word by word, to compare with on random text.


def grams(text, n):
    words = text.split()
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def plain_bleu(items, n, penalty=True):
    correct, guessed, mine, theirs = [0] * n, [0] * n, 0, 0
    for hypothesis, references in items:
        length = len(hypothesis.split())
        mine += length
        theirs += min((abs(len(r.split()) - length), len(r.split())) for r in references)[1]
        for k in range(n):
            counts = grams(hypothesis, k + 1)
            guessed[k] += sum(counts.values())
            for gram, count in counts.items():
                correct[k] += min(count, max(grams(r, k + 1)[gram] for r in references))
    value = math.prod((c + 1e-15) / (g + 1e-9) for c, g in zip(correct, guessed, strict=True))
    ratio = (mine + 1e-15) / (theirs + 1e-9)
    return value ** (1 / n) * (math.exp(1 - 1 / ratio) if ratio < 1 and penalty else 1)


def plain_cider(items, item, plain=False):
    documents = [{g for r in refs for n in (1, 2, 3, 4) for g in grams(r, n)} for _, refs in items]

    def vector(text, n):
        idf = {
            g: math.log(len(items) / max(1, sum(g in d for d in documents))) for g in grams(text, n)
        }
        return {gram: count * idf[gram] for gram, count in grams(text, n).items()}

    def length(text):
        return sum(grams(text, 2).values())

    hypothesis, references = items[item]
    total = 0.0
    for reference in references:
        for n in (1, 2, 3, 4):
            a, b = vector(hypothesis, n), vector(reference, n)
            dot = sum((a[g] if plain else min(a[g], b[g])) * b[g] for g in a if g in b)
            norms = math.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
            gap = 0 if plain else length(hypothesis) - length(reference)
            total += dot / norms * math.exp(-(gap**2) / 72) if norms else 0.0
    return 10 * total / 4 / len(references)


def plain_rouge(hypothesis, references):
    def common(a, b):
        table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                best = max(table[i][j + 1], table[i + 1][j])
                table[i + 1][j + 1] = table[i][j] + 1 if x == y else best
        return table[-1][-1]

    words = hypothesis.split(" ")
    lengths = [(common(words, r.split(" ")), len(r.split(" "))) for r in references]
    precision = max(shared / len(words) for shared, _ in lengths)
    recall = max(shared / length for shared, length in lengths)
    both = precision * recall
    return 2.44 * both / (recall + 1.44 * precision) if both else 0.0


SENTENCE = st.lists(st.sampled_from(["a", "dog", "cat", "runs", "the"]), max_size=9).map(" ".join)
ITEMS = st.lists(
    st.tuples(SENTENCE, st.lists(SENTENCE, min_size=1, max_size=3)), min_size=1, max_size=5
)


@given(ITEMS)
@settings(max_examples=150, deadline=None)
def test_scores_follow_their_definitions(items):
    result = score(
        {i: hypothesis for i, (hypothesis, _) in enumerate(items)},
        {i: references for i, (_, references) in enumerate(items)},
        ["bleu", "bleu_nobp", "rouge_l", "cider", "cider_plain"],
        intervals=False,
    )
    for n in (1, 2, 3, 4):
        assert result["corpus"][f"bleu_{n}"] == pytest.approx(plain_bleu(items, n), abs=1e-9)
        without = plain_bleu(items, n, penalty=False)
        assert result["corpus"][f"bleu_{n}_nobp"] == pytest.approx(without, abs=1e-9)
    for i, (hypothesis, references) in enumerate(items):
        scores = result["per_item"][i]
        assert scores["bleu_2"] == pytest.approx(plain_bleu([items[i]], 2), abs=1e-9)
        assert scores["rouge_l"] == pytest.approx(plain_rouge(hypothesis, references), abs=1e-9)
        assert scores["cider"] == pytest.approx(plain_cider(items, i), abs=1e-9)
        assert scores["cider_plain"] == pytest.approx(plain_cider(items, i, True), abs=1e-9)


@given(ITEMS)
@settings(max_examples=100, deadline=None)
def test_scores_equal_pycocoevalcaps_own_classes(items):
    pytest.importorskip("pycocoevalcap")
    from pycocoevalcap.bleu.bleu import Bleu as TheirBleu
    from pycocoevalcap.cider.cider import Cider as TheirCider
    from pycocoevalcap.rouge.rouge import Rouge as TheirRouge

    assume(any(text for _, references in items for text in references))  # or their CIDEr fails
    hypotheses = {i: [hypothesis] for i, (hypothesis, _) in enumerate(items)}
    references = {i: texts for i, (_, texts) in enumerate(items)}
    result = score(hypotheses, references, FAST, intervals=False)
    corpus, per_item = TheirBleu(4).compute_score(references, hypotheses, verbose=0)
    theirs = {f"bleu_{n}": (corpus[n - 1], per_item[n - 1]) for n in (1, 2, 3, 4)}
    theirs["rouge_l"] = TheirRouge().compute_score(references, hypotheses)
    theirs["cider"] = TheirCider().compute_score(references, hypotheses)
    for key, (whole, parts) in theirs.items():
        assert result["corpus"][key] == pytest.approx(whole, abs=1e-9)
        mine = [scores[key] for scores in result["per_item"].values()]
        assert mine == pytest.approx(list(parts), abs=1e-9)


def test_the_lectures_example_scores_two_sevenths():
    corpus = Corpus.of({1: "the the the the the the the"}, {1: ["The cat is on the mat."]})
    statistics = Bleu(brevity_penalty=False).statistics(corpus)
    assert Bleu(brevity_penalty=False).scores(statistics)[0, 0] == pytest.approx(2 / 7)


def test_rouge_is_exact_on_long_texts():
    words = np.random.default_rng(0).integers(0, 30, size=(2, 300))
    first, second = (" ".join(map(str, row)) for row in words)
    assert rouge_l(first, [second]) == pytest.approx(plain_rouge(first, [second]))


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_any_text_scores_a_number_in_range(pairs):
    result = score(
        {i: a for i, (a, _) in enumerate(pairs)}, {i: [b] for i, (_, b) in enumerate(pairs)}, FAST
    )
    for values in [result["corpus"], *result["per_item"].values()]:
        for key, value in values.items():
            assert 0 <= value <= (10 if key == "cider" else 1) * (1 + 1e-9), (key, value)


def test_document_frequencies_can_be_saved(tmp_path):
    references = {1: ["a dog runs", "a dog"], 2: ["the cat runs on"], 3: ["a cat"]}
    hypotheses = {1: "a dog runs", 2: "the cat on", 3: "cat cat"}
    own = score(hypotheses, references, ["cider"])["corpus"]
    for name in ("df.json", "df.json.gz"):
        DocumentFrequencies.of(references).save(tmp_path / name)
        known = DocumentFrequencies.load(tmp_path / name)
        assert known.documents == 3
        assert known.frequencies["a dog"] == 1
        assert known.frequencies["runs"] == 2
        assert score(hypotheses, references, ["cider"], document_frequencies=known)["corpus"] == own
    one = score({1: "a dog runs"}, {1: references[1]}, ["cider"], document_frequencies=known)
    assert one["per_item"][1] == score(hypotheses, references, ["cider"])["per_item"][1]
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(UserError, match=r"bad\.json"):
        DocumentFrequencies.load(tmp_path / "bad.json")


# Intervals and comparisons.


def corpus_of(size, seed=0):
    rng = np.random.default_rng(seed)
    words = ["a", "the", "dog", "cat", "man", "runs", "sits", "on", "in", "red", "ball", "field"]

    def text():
        return " ".join(rng.choice(words, size=rng.integers(4, 12)))

    return {i: text() for i in range(size)}, {i: [text() for _ in range(3)] for i in range(size)}


def test_intervals_are_those_of_resampled_corpora():
    """A resample is a corpus that has each item as often as it was drawn."""
    hypotheses, references = corpus_of(12)
    result = score(hypotheses, references, ["bleu"], resamples=40, seed=7)
    values = []
    for row in np.concatenate(list(draws(12, 40, 7))).astype(int):
        drawn = np.repeat(np.arange(12), row)
        again = {n: hypotheses[i] for n, i in enumerate(drawn)}
        texts = {n: references[i] for n, i in enumerate(drawn)}
        values.append(score(again, texts, ["bleu"], intervals=False)["corpus"]["bleu_2"])
    assert result["intervals"]["bleu_2"] == pytest.approx(np.percentile(values, [2.5, 97.5]))


def test_intervals_shrink_with_more_items_and_repeat():
    widths = []
    for size in (50, 800):
        hypotheses, references = corpus_of(size)
        result = score(hypotheses, references, FAST)
        assert result == score(hypotheses, references, FAST)
        for key, (low, high) in result["intervals"].items():
            assert low <= result["corpus"][key] <= high or key.startswith("bleu")
        low, high = result["intervals"]["cider"]
        widths.append(high - low)
    assert widths[1] < widths[0] / 2


def test_draws_in_blocks_count_every_item(monkeypatch):
    from sightline.metrics import bootstrap

    monkeypatch.setattr(bootstrap, "_CELLS", 35)
    blocks = list(draws(10, 11))
    assert [len(block) for block in blocks] == [3, 3, 3, 2]
    assert all((block.sum(axis=1) == 10).all() for block in blocks)


def test_a_better_system_differs_from_a_worse_and_not_from_itself():
    worse, references = corpus_of(300)
    better = {i: (references[i][0] if i % 3 == 0 else text) for i, text in worse.items()}
    result = compare(better, dict(reversed(worse.items())), references, FAST)
    for key, (low, high) in result["intervals"].items():
        assert 0 < low < result["difference"][key] < high
        assert result["difference"][key] == pytest.approx(
            result["first"][key] - result["second"][key]
        )
        assert result["p"][key] < 0.01
    same = compare(worse, worse, references, FAST)
    assert set(same["difference"].values()) == {0.0}
    assert set(same["p"].values()) == {1.0}


# Odd input.


def test_an_empty_hypothesis_scores_what_the_reference_scores():
    """Its scorers give 0, but 1 for ROUGE-L of nothing against nothing: one empty token each."""
    hypotheses = {"empty": "", "stops": "...", "both": "", "dog": "a dog"}
    references = {"empty": ["a dog"], "stops": ["a dog"], "both": ["!"], "dog": ["a dog", ""]}
    result = score(hypotheses, references, FAST)
    for item in ("empty", "stops"):
        assert all(value == pytest.approx(0) for value in result["per_item"][item].values())
    assert result["per_item"]["both"]["rouge_l"] == pytest.approx(1)
    assert result["per_item"]["dog"]["bleu_2"] == pytest.approx(1)


def test_one_picture_has_no_cider():
    assert score({1: "a dog"}, {1: ["a dog"]}, ["cider"])["corpus"]["cider"] == 0


@pytest.mark.parametrize(
    ("hypotheses", "references", "said"),
    [
        ({}, {}, "no hypothesis"),
        (["a"], {0: ["a"]}, "hypotheses must be a dictionary by id, not a list"),
        ({"x7": "a"}, {}, "'x7' has a hypothesis but no references"),
        ({"x7": "a"}, {"x7": []}, "'x7' has no references"),
        ({"x7": "a"}, {"x7": ["a"], "y8": ["b"]}, "'y8' has references but no hypothesis"),
        ({"x7": None}, {"x7": ["a"]}, "'x7': the hypothesis must be one text, not NoneType"),
        ({"x7": ["a", "b"]}, {"x7": ["a"]}, "'x7': .* a list of 2"),
        ({"x7": "a"}, {"x7": ["a", 3]}, "'x7': the references must be texts"),
        ({"x7": "a"}, {"x7": None}, "'x7': the references must be texts"),
    ],
)
def test_errors_name_the_item(hypotheses, references, said):
    with pytest.raises(UserError, match=said):
        score(hypotheses, references, FAST)


def test_a_wrong_metric_is_an_error_that_suggests_one():
    with pytest.raises(UserError, match="did you mean 'rouge_l'"):
        score({1: "a"}, {1: ["a"]}, ["rouge-l"])


def test_single_scores_can_be_asked_for():
    result = score({1: "a dog"}, {1: "a dog"}, ["bleu_2", "cider_d"])
    assert list(result["corpus"]) == ["bleu_2", "cider_d"]
    assert list(result["per_item"][1]) == list(result["signatures"]) == ["bleu_2", "cider_d"]


def test_without_meteors_tables_the_rest_is_scored(monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    from sightline.metrics.meteor import index

    monkeypatch.setattr(index, "find_spec", lambda n: None if "pycoco" in n else find(n))
    result = score({1: "a dog"}, {1: ["a dog"]})
    assert "meteor" not in result["corpus"]
    assert "cider" in result["corpus"]
    assert len(result["notes"]) == 1
    assert "pip install" in result["notes"][0]
    with pytest.raises(UserError, match="pip install"):
        score({1: "a dog"}, {1: ["a dog"]}, ["meteor"])


def test_cider_of_the_class_is_the_score_of_the_function():
    hypotheses, references = corpus_of(6)
    metric = Cider()
    statistics = metric.statistics(Corpus.of(hypotheses, references))
    assert score(hypotheses, references, ["cider"])["corpus"]["cider"] == pytest.approx(
        float(metric.corpus_scores(statistics)[0])
    )
    assert "CIDEr-D" in metric.signature

"""Metrics on many lines: in blocks, with the same scores, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest

from sightline import metrics
from sightline.metrics import base, translation

WORDS = [f"w{n}" for n in range(40)] + ["fig.", "b.", "don't", "1/2", "(x)"]
NAMES = ["bleu", "rouge_l", "cider", "cider_plain", "wer", "sacrebleu", "chrf"]

PEAK = """
import resource, sys
from random import Random
from sightline import metrics

draw, lines, limit = Random(1), int(sys.argv[1]), int(sys.argv[2])
words = [f"w{int(1000 * draw.random() ** 3)}" for _ in range(20_000)]
texts = [" ".join(draw.choices(words, k=12)) for _ in range(lines)]
near = [text.replace("w1", "w2", 1) for text in texts]
def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

before = megabytes()
found = metrics.score(
    dict(enumerate(texts)), dict(enumerate([text] for text in near)), sys.argv[3].split(","),
    intervals=False,
)
assert len(found["per_item"]) == lines
print(megabytes() - before)
assert megabytes() - before < limit
"""


def corpus(items: int) -> tuple[dict[int, str], dict[int, list[str]]]:
    draw = Random(items)

    def text() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randrange(12)))

    hypotheses = {item: text() for item in range(items)}
    references = {
        item: [text() for _ in range(draw.randrange(1, 4))] + [hypotheses[item]] * (item % 7 == 0)
        for item in range(items)
    }
    references[5] = [text() for _ in range(30)]  # more than a block
    return hypotheses, references


@pytest.mark.parametrize("block", [1, 7, 64, 400])
def test_blocks_change_no_digit(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus(150)
    whole = metrics.score(*texts, NAMES, resamples=20)
    monkeypatch.setattr(base, "BLOCK", block)
    monkeypatch.setattr(translation, "_ITEMS", block)
    assert metrics.score(*texts, NAMES, resamples=20) == whole


def test_blocks_change_no_document_frequency(monkeypatch: pytest.MonkeyPatch) -> None:
    hypotheses, references = corpus(60)
    whole = metrics.DocumentFrequencies.of(references)
    scored = metrics.score(hypotheses, references, ["cider"], document_frequencies=whole)
    monkeypatch.setattr(base, "BLOCK", 20)
    assert metrics.DocumentFrequencies.of(references) == whole
    assert metrics.score(hypotheses, references, ["cider"], document_frequencies=whole) == scored


def test_texts_without_words_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = dict.fromkeys(range(5), ""), {item: ["", "."] for item in range(5)}
    whole = metrics.score(*texts, NAMES, resamples=5)
    monkeypatch.setattr(base, "BLOCK", 2)
    assert metrics.score(*texts, NAMES, resamples=5) == whole


@pytest.mark.parametrize(
    ("lines", "limit", "names"),
    [
        (60_000, 250, "bleu,cider"),
        pytest.param(1_000_000, 1800, "bleu,rouge_l,cider", marks=pytest.mark.slow),
    ],
)
@pytest.mark.timeout(1200)
def test_memory_is_bounded(lines: int, limit: int, names: str) -> None:
    command = [sys.executable, "-c", PEAK, str(lines), str(limit), names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

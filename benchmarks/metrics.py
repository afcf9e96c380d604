"""Caption metrics: ours beside pycocoevalcap's (where it and Java are found), the same captions.

    python -m benchmarks.metrics [captions.json.gz]

The captions are the golden set `fakecap` (1,000 pictures of COCO with five references) of the
development data, or synthetic ones where these are absent. Each time is the best of three, in
seconds; pycocoevalcap runs once.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import shutil
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.data import data_path
from benchmarks.machine import describe

Captions = tuple[dict[Any, str], dict[Any, list[str]]]


def captions(path: Path) -> tuple[str, Captions]:
    """A name, hypotheses and references."""
    if path.is_file():
        with gzip.open(path) as file:
            images = json.load(file)["sets"]["fakecap"]["images"]
        hypotheses = {image["image_id"]: image["hyp_raw"] for image in images}
        return "fakecap", (hypotheses, {i["image_id"]: i["refs_raw"] for i in images})
    rng = random.Random(0)
    words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ["", "n", "rs", "ll"]]

    def text() -> str:
        return " ".join(rng.choices(words, k=rng.randint(6, 14))).capitalize() + "."

    return "synthetic", (
        {i: text() for i in range(1000)},
        {i: [text() for _ in range(5)] for i in range(1000)},
    )


def ours(data: Captions) -> dict[str, Callable[[], object]]:
    """The parts that the limits of the project speak of."""
    from sightline.metrics import score
    from sightline.metrics.ptb import tokenize_lines

    hypotheses, references = data
    lines = [*hypotheses.values(), *(text for texts in references.values() for text in texts)]
    fast = ["bleu", "rouge_l", "cider"]
    parts: dict[str, Callable[[], object]] = {
        "tokenise": lambda: tokenize_lines(lines),
        "tokenise, BLEU, ROUGE-L, CIDEr": lambda: score(*data, fast, intervals=False),
    }
    if find_spec("pycocoevalcap"):
        parts["… and METEOR"] = lambda: score(*data, intervals=False)
        parts["… and 95 % intervals"] = lambda: score(*data)
    return parts


def theirs(data: Captions) -> dict[str, Callable[[], object]]:
    """The same parts by pycocoevalcap."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.meteor.meteor import Meteor
    from pycocoevalcap.rouge.rouge import Rouge
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    def tokenise() -> tuple[dict, dict]:
        hypotheses, references = data
        tokenizer = PTBTokenizer()
        one = tokenizer.tokenize({i: [{"caption": text}] for i, text in hypotheses.items()})
        many = {i: [{"caption": text} for text in texts] for i, texts in references.items()}
        return tokenizer.tokenize(many), one

    def run(scorers: list[Any]) -> None:
        references, hypotheses = tokenise()
        for scorer in scorers:
            with contextlib.redirect_stdout(io.StringIO()):
                scorer.compute_score(references, hypotheses)

    return {
        "tokenise": tokenise,
        "tokenise, BLEU, ROUGE-L, CIDEr": lambda: run([Bleu(4), Rouge(), Cider()]),
        "… and METEOR": lambda: run([Bleu(4), Rouge(), Cider(), Meteor()]),
    }


def seconds(part: Callable[[], object], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        part()
        best = min(best, time.perf_counter() - began)
    return best


def main() -> None:
    folder = data_path()
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "cocoeval" / "goldens.json.gz"
    name, data = captions(path)
    print(describe())
    print(f"{name}: {len(data[0]):,} captions, {sum(map(len, data[1].values())):,} references")
    found = find_spec("pycocoevalcap") is not None and shutil.which("java") is not None
    other = theirs(data) if found else {}
    if not found:
        print("pycocoevalcap or Java is not installed: only our times")
    print(f"{'':34} {'first':>8} {'best':>8} {'pycocoevalcap':>14} {'ratio':>7}")
    for label, part in ours(data).items():
        first, best = seconds(part, 1), seconds(part, 3)
        line = f"{label:34} {first:8.3f} {best:8.3f}"
        if label in other:
            old = seconds(other[label], 1)
            line += f" {old:14.2f} {old / best:6.0f}×"
        print(line)


if __name__ == "__main__":
    main()

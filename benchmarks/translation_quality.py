"""Translators side by side: BLEU, chrF, an ensemble of them, and quality against length.

    python -m benchmarks.translation_quality MANIFEST [NAME=]RUN … [--ensemble] [--figure FILE]

On the manifest's test split. The first model is compared with each other one by the paired
bootstrap. Of the first two (an attentional model and the simple encoder-decoder) the gap is printed
by classes of source lengths, and whether it grows with the length, in BLEU and as a share of the
first one's. `sightline evaluate RUN` prints the scores of one model.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sightline
from sightline.data.manifest import Example, read_split
from sightline.figures.lengths import draw_quality_by_length, length_classes
from sightline.metrics import bootstrap, compare, score
from sightline.metrics.base import Corpus
from sightline.metrics.translation import SacreBleu
from sightline.tasks.translate.parts import ensemble

METRICS = ["sacrebleu", "chrf"]
Texts = dict[str, str]  # by the example's id
Floats = NDArray[np.float64]


def translations(
    runs: Mapping[str, str], examples: Sequence[Example], together: bool
) -> dict[str, Texts]:
    """What each model writes, and their ensemble if `together`."""
    models = {name: sightline.load(run) for name, run in runs.items()}
    if together:
        models["together"] = ensemble(*models.values())
    sources = [str(example.source) for example in examples]
    return {
        name: {e.id: d.text for e, d in zip(examples, model.describe(sources), strict=True)}
        for name, model in models.items()
    }


@dataclass(frozen=True)
class Trend:
    """By how much something grows with each word, by least squares."""

    slope: float
    interval: tuple[float, float]  # 95 %, sentences resampled


@dataclass(frozen=True)
class Gap:
    """BLEU of two systems in classes of source lengths (words), and the gap's growth."""

    classes: list[tuple[float, float]]  # (longer than, at most)
    sizes: list[int]
    lengths: Floats  # (C,): mean length
    scores: Floats  # (2, C)
    points: Trend  # of the gap in BLEU
    share: Trend  # of the gap as a share of the first one's BLEU


def gap_by_length(examples: Sequence[Example], first: Texts, second: Texts) -> Gap:
    lengths = np.array([len(str(example.source).split()) for example in examples])
    edges = length_classes(lengths.tolist())
    references = {e.id: e.targets for e in examples}
    metric = SacreBleu()
    rows = [metric.statistics(Corpus.of(texts, references)) for texts in (first, second)]
    classes = list(itertools.pairwise(edges))
    inside = [(lengths > low) & (lengths <= high) for low, high in classes]
    means = np.array([lengths[mask].mean() for mask in inside])

    def scores(counts: Floats) -> Floats:
        """(b, N) times that each sentence counts → (2, b, C) BLEU."""
        by_class = [
            [metric.scores(counts[:, mask] @ each[mask])[:, 0] for mask in inside] for each in rows
        ]
        return np.stack([np.stack(columns, axis=1) for columns in by_class])

    def slopes(values: Floats) -> Floats:
        """(2, b, C) BLEU → (2, b): of the gap in points, and as a share of the first."""
        away = means - means.mean()
        gap = values[0] - values[1]
        return np.stack([gap, gap / np.maximum(values[0], 1e-9)]) @ away / (away @ away)

    once = scores(np.ones((1, len(lengths))))
    sizes = [int(mask.sum()) for mask in inside]
    if len(classes) == 1:
        unknown = Trend(math.nan, (math.nan, math.nan))
        return Gap(classes, sizes, means, once[:, 0], unknown, unknown)
    drawn = np.concatenate([slopes(scores(c)) for c in bootstrap.draws(len(lengths))], axis=1)
    trends = []
    for slope, some in zip(slopes(once)[:, 0], drawn, strict=True):
        low, high = bootstrap.interval(some)
        trends.append(Trend(float(slope), (float(low), float(high))))
    return Gap(classes, sizes, means, once[:, 0], *trends)


def draw(examples: Sequence[Example], written: Mapping[str, Texts], path: Path) -> None:
    """BLEU against source length, a curve for each system."""
    systems = {
        name: [(len(str(e.source).split()), texts[e.id], e.targets[0]) for e in examples]
        for name, texts in written.items()
    }
    draw_quality_by_length(systems, path)


# ---- the report --------------------------------------------------------------------------------


def report_scores(examples: Sequence[Example], written: Mapping[str, Texts]) -> None:
    references = {e.id: e.targets for e in examples}
    width = max(map(len, written))
    print(f"{'':{width}}  sacreBLEU (95 %)         chrF (95 %)            first − this, BLEU")
    first = next(iter(written))
    for name, texts in written.items():
        scores = score(texts, references, METRICS)
        cells = []
        for key in METRICS:
            low, high = scores["intervals"][key]
            cells.append(f"{scores['corpus'][key]:6.2f} ({low:.1f} to {high:.1f})")
        against = ""
        if name != first:
            both = compare(written[first], texts, references, ["sacrebleu"])
            low, high = both["intervals"]["sacrebleu"]
            difference, p = both["difference"]["sacrebleu"], both["p"]["sacrebleu"]
            shown = f"p = {p:.3f}" if p else f"p < {1 / bootstrap.RESAMPLES}"
            against = f"{difference:+.2f} ({low:+.1f} to {high:+.1f}), {shown}"
        print(f"{name:{width}}  {cells[0]:<23}  {cells[1]:<23}{against}".rstrip())
    for signature in scores["signatures"].values():
        print(signature)


def report_lengths(gap: Gap) -> None:
    titles = f"{'first':>7} {'second':>7} {'gap':>7} {'of first':>9}"
    print(f"\n{'source words':>12} {'sentences':>10} {titles}")
    for (low, high), size, one, two in zip(gap.classes, gap.sizes, *gap.scores, strict=True):
        label = f"over {low:.0f}" if high == math.inf else f"{low + 1:.0f} to {high:.0f}"
        label = f"{high:.0f}" if high == low + 1 else label
        part = (one - two) / max(one, 1e-9)
        print(f"{label:>12} {size:>10} {one:7.2f} {two:7.2f} {one - two:+7.2f} {part:9.1%}")
    low, high = gap.points.interval
    print(f"a word more, and the gap grows by {gap.points.slope:+.2f} BLEU", end="")
    print(f" (95 %: {low:+.2f} to {high:+.2f})")
    low, high = gap.share.interval
    print(f"and by {gap.share.slope:+.2%} of the first one's BLEU ({low:+.2%} to {high:+.2%})")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.translation_quality")
    parser.add_argument("manifest", type=Path)
    parser.add_argument("runs", nargs="+", metavar="[NAME=]RUN")
    parser.add_argument("--ensemble", action="store_true", help="also all of them together")
    parser.add_argument("--figure", type=Path, help="draw quality against length (.png)")
    given = parser.parse_args()
    examples = read_split(given.manifest, "test", "source")
    named = (run.rpartition("=") for run in given.runs)
    written = translations({name or run: run for name, _, run in named}, examples, given.ensemble)
    print(f"{len(examples)} sentences, the test split of {given.manifest}\n")
    report_scores(examples, written)
    if len(given.runs) > 1:
        first, second, *_ = written.values()
        report_lengths(gap_by_length(examples, first, second))
    if given.figure:
        draw(examples, written, given.figure)
        print(f"wrote {given.figure}")


if __name__ == "__main__":
    main()

"""Quality against sentence length: where a model without attention falls behind (D §IV-A)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sightline.errors import UserError
from sightline.figures.chart import COLOURS, Curve, chart

Sentence = tuple[int, str, str]  # the source's words, what the model wrote, the reference
CLASSES = 6
FEWEST = 20  # sentences in a class; fewer give a BLEU that means nothing


def length_classes(lengths: Sequence[int]) -> list[float]:
    """The edges of classes (edge, next edge] of about equal size, from 0 to infinity."""
    classes = max(1, min(CLASSES, len(lengths) // FEWEST))
    inner = np.quantile(lengths, np.linspace(0, 1, classes + 1)[1:-1], method="nearest")
    return [0.0, *np.unique(inner).tolist(), math.inf]


def quality_by_length(
    sentences: Sequence[Sentence], edges: Sequence[float]
) -> list[tuple[float, float, int]]:
    """For each class of lengths (edge, next edge] its mean length, BLEU and size."""
    from sightline.metrics.base import Corpus
    from sightline.metrics.translation import SacreBleu

    lengths = np.array([length for length, _, _ in sentences])
    metric = SacreBleu()
    corpus = Corpus(
        tuple(range(len(sentences))),
        tuple(hypothesis for _, hypothesis, _ in sentences),
        tuple((reference,) for _, _, reference in sentences),
    )
    rows = metric.statistics(corpus)  # (N, S)
    classes = []
    for low, high in itertools.pairwise(edges):
        inside = (lengths > low) & (lengths <= high)
        if inside.any():
            score = float(metric.corpus_scores(rows[inside])[0])
            classes.append((float(lengths[inside].mean()), score, int(inside.sum())))
    return classes


def draw_quality_by_length(systems: Mapping[str, Sequence[Sentence]], path: Path | str) -> None:
    """BLEU by source length, one curve per system, over classes of about equal size."""
    if not systems or not all(systems.values()):
        raise UserError("quality by length needs sentences of at least one system")
    edges = length_classes([row[0] for row in min(systems.values(), key=len)])
    points = {name: quality_by_length(rows, edges) for name, rows in systems.items()}
    curves = [
        Curve(line, name, COLOURS[number % len(COLOURS)], dots=line)
        for number, (name, rows) in enumerate(points.items())
        if (line := [(length, bleu) for length, bleu, _ in rows])
    ]
    chart(
        curves,
        x_label="words of the source sentence",
        y_label="sacreBLEU of the sentences of about that length",
        from_zero=True,
    ).save(path)

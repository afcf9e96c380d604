"""Caption metrics equal to the COCO caption evaluation, without Java, and their relatives.

Examples:
    >>> from sightline.metrics import score
    >>> result = score({1: "a dog runs"}, {1: ["a dog is running", "the dog runs"]}, ["bleu"])
    >>> round(result["corpus"]["bleu_1"], 3)
    1.0
"""

from sightline.metrics.base import Corpus, Metric, ScoreInfo
from sightline.metrics.bleu import Bleu
from sightline.metrics.cider import Cider, DocumentFrequencies
from sightline.metrics.ptb import tokenize
from sightline.metrics.rouge import RougeL
from sightline.metrics.scoring import Comparison, Scores, compare, info, register, score

__all__ = [
    "Bleu",
    "Cider",
    "Comparison",
    "Corpus",
    "DocumentFrequencies",
    "Metric",
    "RougeL",
    "ScoreInfo",
    "Scores",
    "compare",
    "info",
    "register",
    "score",
    "tokenize",
]

"""The benchmark against people's judgements: its statistic, and the published correlations."""

import importlib
from itertools import combinations

import numpy as np
import pytest

from sightline.metrics import score


@pytest.fixture(scope="module")
def benchmark():
    return importlib.import_module("benchmarks.human_judgements")


def test_tau_c_counts_pairs(benchmark):
    rng = np.random.default_rng(1)
    scores, ratings = rng.integers(0, 9, 60) / 8, rng.integers(1, 5, 60)
    surplus = sum(
        np.sign(scores[i] - scores[j]) * np.sign(int(ratings[i]) - int(ratings[j]))
        for i, j in combinations(range(60), 2)
    )
    assert benchmark.kendall_tau_c(scores, ratings) == pytest.approx(2 * surplus / (3600 * 3 / 4))
    assert benchmark.kendall_tau_c(ratings * 1.0, ratings) > 0.9


def test_correlations_are_the_published_ones(benchmark, shared_data):
    hypotheses, references, ratings = benchmark.judgements(shared_data / "flickr8k")
    assert len(ratings) == 3 * 5664
    result = score(hypotheses, references, ["bleu", "rouge_l", "cider"], intervals=False)
    for key, published in benchmark.PUBLISHED.items():
        if key != "meteor":  # `python -m benchmarks.human_judgements` shows it too
            values = np.array([scores[key] for scores in result["per_item"].values()])
            tau = 100 * benchmark.kendall_tau_c(values, ratings)
            assert tau == pytest.approx(published, abs=0.05), key

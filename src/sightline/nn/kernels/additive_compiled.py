"""Additive attention's scores and gradients in compiled loops, additive.c: `scorer` takes these.

A pass of PyTorch's over a tile of the tanh layer does one operation; a score takes three passes and
its gradients six. Compiled, each is one pass over the keys, and nothing is kept between: 2.5 × as
fast, which is a fifth of a training step. The gradient of the keys is computed once, after all
steps, where a key stays in the cache for all of its queries.

The C compiler of the machine is run once per process, 0.2 s; without one, tiles give the same.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from sightline.nn.kernels.additive import LARGEST, Scorer

SOURCE = Path(__file__).with_name("additive.c")
# -fopenmp: the library's threads are PyTorch's own, whose OpenMP the process already has
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
TYPES = {torch.float32: "float", torch.float64: "double"}
TENSORS = {"score": 6, "queries_gradient": 6, "keys_gradient": 8}  # that each function takes


def scorer(keys: Tensor, score: Tensor, each: int, many: bool) -> Scorer | CompiledScorer:
    """For keys (B, M, A) and v (A,): what gives the scores of one step, or of many.

    K = `each` neighbouring rows attend to each example.
    """
    by_exp = many and bool(torch.stack(keys.aminmax()).abs().max() < LARGEST)
    even = keys.shape[2] % 2 == 0  # additive.c takes numbers two at a time
    library = compiled(keys.dtype) if by_exp and even else None
    if library is None:
        return Scorer(keys, score, each, by_exp)
    return CompiledScorer(library, keys, score, each)


@cache
def compiled(dtype: torch.dtype) -> ctypes.CDLL | None:
    """The functions of additive.c for numbers of this type; none where they cannot be had."""
    if dtype not in TYPES:
        return None
    compiler = os.environ.get("CC", "cc")
    try:
        with tempfile.TemporaryDirectory() as folder:  # once loaded, the file is not needed
            made = Path(folder) / "additive.so"
            command = [compiler, *FLAGS, f"-DREAL={TYPES[dtype]}", str(SOURCE), "-o", str(made)]
            subprocess.run(command, check=True, capture_output=True)
            library = ctypes.CDLL(str(made))
        for name, tensors in TENSORS.items():
            function = getattr(library, name)
            function.argtypes = [ctypes.c_void_p] * tensors + [ctypes.c_int64] * 3
            function.restype = None
    except (OSError, subprocess.SubprocessError, AttributeError):
        return None
    return library


class Grouping:
    """Which of B examples each of n rows attends to."""

    def __init__(self, owners: Tensor, examples: int) -> None:
        self.owners = owners  # (n,)
        self.rows = owners.argsort(stable=True)  # those of one example next to each other
        counts = torch.bincount(owners, minlength=examples)
        self.starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])  # (B + 1,)


class CompiledScorer:
    """As `Scorer`, where it is `by_exp`."""

    def __init__(self, library: ctypes.CDLL, keys: Tensor, score: Tensor, each: int) -> None:
        self.library = library
        self.keys = (2 * keys.contiguous()).exp_()
        self.score = score
        self.factor, self.constant = -2 * score, score.sum()  # v (1 - 2s)
        self.all = Grouping(torch.arange(len(keys)).repeat_interleave(each), len(keys))

    def __call__(self, queries: Tensor, live: Tensor | None = None) -> Tensor:
        """(n, A) → (n, M), for all N rows or for the live ones."""
        scores = queries.new_empty(len(queries), self.keys.shape[1])
        self.run("score", (2 * queries).exp_(), self.grouping(live), self.factor, scores)
        return scores.add_(self.constant)

    def grouping(self, live: Tensor | None) -> Grouping:
        return self.all if live is None else Grouping(self.all.owners[live], len(self.keys))

    def run(self, function: str, exp_queries: Tensor, grouping: Grouping, *others: Tensor) -> None:
        given = (self.keys, exp_queries, grouping.starts, grouping.rows, *others)
        assert all(tensor.is_contiguous() for tensor in given)
        getattr(self.library, function)(*(x.data_ptr() for x in given), *self.keys.shape)

    def backward(self) -> CompiledBackward:
        return CompiledBackward(self)


class CompiledBackward:
    """As `ScorerBackward`."""

    def __init__(self, scorer: CompiledScorer) -> None:
        self.of = scorer
        self.slope = 4 * scorer.score  # v tanh', where tanh' = 4 (s - s²)
        self.steps: list[tuple[Tensor, Tensor, Tensor]] = []  # exp(2q), their examples, d_scores

    def __call__(self, queries: Tensor, d_scores: Tensor, live: Tensor | None = None) -> Tensor:
        """(n, A), (n, M) → the queries' gradient (n, A)."""
        exp_queries, d_scores = (2 * queries).exp_(), d_scores.contiguous()
        grouping = self.of.grouping(live)
        self.steps.append((exp_queries, grouping.owners, d_scores))
        d_queries = torch.zeros_like(exp_queries)
        self.of.run("queries_gradient", exp_queries, grouping, d_scores, d_queries)
        return d_queries.mul_(self.slope)

    def finish(self) -> tuple[Tensor, Tensor]:
        """The gradients of keys (B, M, A) and of v (A,)."""
        exp_queries, owners, d_scores = (torch.cat(part) for part in zip(*self.steps, strict=True))
        d_keys, seen = torch.empty_like(self.of.keys), torch.zeros_like(self.of.keys[:, 0])
        grouping = Grouping(owners, len(d_keys))
        self.of.run("keys_gradient", exp_queries, grouping, d_scores, self.slope, d_keys, seen)
        return d_keys, d_scores.sum() - 2 * seen.sum(0)

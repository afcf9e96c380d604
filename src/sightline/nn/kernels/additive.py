"""The scores of additive attention, e = v · tanh(key + query), and their gradients, tile by tile.

The tanh layer of all rows, (N, M, A), is far larger than the processor's cache, and a new one is
needed at every step. Here it exists one tile at a time and is computed again in the backward pass;
what is left of the traffic through memory is to read the keys and to add to their gradient.

Tiles are small, so that calls count as much as numbers do: views are made once for all steps.

A pass of PyTorch's over a tile does one operation; a score takes three passes and its gradients
six. In compiled loops, additive.c, each is one pass over the keys: 2.5 × as fast, which is a fifth
of a training step. The C compiler of the machine is run once per process, 0.2 s; without one,
tiles give the same.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

# Numbers in a tile of the tanh layer, per thread: with as many of the keys and of their gradient it
# fits a core's second-level cache (1.5 of 2 MB). Measured: twice as large is no faster.
TILE = 131_072

# With keys within this, exp(2 key) · exp(2 query) serves for every query: where a factor overflows
# or vanishes in float32, beyond 43, tanh has long been 1 or -1.
LARGEST = 30.0

SOURCE = Path(__file__).with_name("additive.c")
# -fopenmp: the library's threads are PyTorch's own, whose OpenMP the process already has
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
TYPES = {torch.float32: "float", torch.float64: "double"}
SECONDS = 30.0  # for a compiler that takes 0.2; after that, tiles
# What each function of additive.c takes, by axes: B examples of M places, size A; R rows; S = B + 1
GIVEN = {"keys": "BMA", "queries": "RA", "starts": "S", "rows": "R"}
ARGUMENTS = {
    "score": {**GIVEN, "v": "A", "scores": "RM"},
    "queries_gradient": {**GIVEN, "d_scores": "RM", "d_queries": "RA"},
    "keys_gradient": {**GIVEN, "d_scores": "RM", "slope": "A", "d_keys": "BMA", "seen": "BA"},
}

# for each tile: parts of what examples have, and for each of its rows parts of what rows have
Work = list[tuple[tuple[Tensor, ...], list[tuple[Tensor, ...]]]]


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
            _run(command)
            library = ctypes.CDLL(str(made))
        for name, arguments in ARGUMENTS.items():
            function = getattr(library, name)
            function.argtypes = [ctypes.c_void_p] * len(arguments) + [ctypes.c_int64] * 3
            function.restype = None
    except (OSError, subprocess.SubprocessError, AttributeError):
        return None
    return library


def _run(command: list[str]) -> None:
    """Run a compiler; a SubprocessError if it fails or does not finish in time."""
    quiet = subprocess.DEVNULL  # no pipe, which a process that it leaves behind could keep open
    with subprocess.Popen(
        command, stdin=quiet, stdout=quiet, stderr=quiet, process_group=0
    ) as process:
        try:
            code = process.wait(SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # with the compiler's own children
            raise
    if code:
        raise subprocess.CalledProcessError(code, command)


class Scorer:
    """The scores of any number of steps that read the same keys.

    K neighbouring rows attend to each of B examples, N = B · K. With `by_exp`, for keys within
    `LARGEST`, their exponentials are taken once, and no step takes any but the queries':
    tanh(k + q) = 1 - 2s with s = 1 / (1 + exp(2k) exp(2q)).
    """

    def __init__(self, keys: Tensor, score: Tensor, each: int, by_exp: bool) -> None:
        groups, positions, size = keys.shape
        self.score = score  # (A,): v
        self.room = max(1, TILE * torch.get_num_threads() // (positions * size))  # examples
        self.by_exp = by_exp
        self.keys = (2 * keys).exp_() if by_exp else keys  # (B, M, A)
        self.query = keys.new_zeros(each, groups, 1, size)  # q, or exp(2q)
        self.scores = keys.new_empty(each, groups, positions)
        self.one = keys.new_ones(())
        self.tile = keys.new_empty(min(groups, self.room), positions, size)
        self.work = self.by_tile((self.keys,), (self.query, self.scores))

    def by_tile(self, examples: tuple[Tensor, ...], rows: tuple[Tensor, ...]) -> Work:
        """For each tile its examples' part of (B, …), and for each of the K rows that of (K, B, …).

        The tile itself comes first among the examples' parts.
        """
        whole = [self.tile[: len(part)] for part in examples[0].split(self.room)]
        parts = zip(whole, *(x.split(self.room) for x in examples), strict=True)
        cut = ([part.unbind() for part in x.split(self.room, 1)] for x in rows)
        of_rows = (list(zip(*some, strict=True)) for some in zip(*cut, strict=True))
        return list(zip(parts, of_rows, strict=True))

    def __call__(self, queries: Tensor, live: Tensor | None = None) -> Tensor:
        """(n, A) → (n, M), for all N rows or for the live ones."""
        places = self.put(queries, live)
        weight = -2 * self.score if self.by_exp else self.score
        for (tile, key), rows in self.live_tiles(self.work, places):
            layer = tile.view(-1, tile.shape[2])
            for query, out in rows:  # the same keys, while in the cache
                self.fill(tile, key, query)
                torch.mv(layer, weight, out=out.view(-1))
        scores = self.scores.flatten(0, 1).index_select(0, places)
        return scores.add_(self.score.sum()) if self.by_exp else scores

    def put(self, queries: Tensor, live: Tensor | None) -> Tensor:
        """Puts the queries where the tiles find them; gives their places (n,) among (K · B)."""
        each, groups = self.scores.shape[:2]
        rows = torch.arange(each * groups) if live is None else live
        places = rows % each * groups + rows // each
        query = (2 * queries).exp_() if self.by_exp else queries
        self.query.flatten(0, 2).index_copy_(0, places, query)
        return places

    def live_tiles(self, work: Work, places: Tensor) -> Work:
        """Without the rows of a tile where none of its examples has a live one."""
        each, groups = self.scores.shape[:2]
        if len(places) == each * groups:
            return work
        alive = torch.zeros(each * groups, dtype=torch.bool).index_fill_(0, places, True)
        by_tile = (part.any(1).tolist() for part in alive.view(each, groups).split(self.room, 1))
        return [
            (examples, [row for row, used in zip(rows, some, strict=True) if used])
            for (examples, rows), some in zip(work, by_tile, strict=True)
        ]

    def fill(self, tile: Tensor, key: Tensor, query: Tensor) -> None:
        """The tile becomes s, or tanh(k + q)."""
        if self.by_exp:
            torch.addcmul(self.one, key, query, out=tile).reciprocal_()
        else:
            torch.add(key, query, out=tile).tanh_()

    def backward(self) -> ScorerBackward:
        return ScorerBackward(self)


class ScorerBackward:
    """The gradients of a scorer's steps: of the queries, and summed over steps of keys and v."""

    def __init__(self, scorer: Scorer) -> None:
        self.of = scorer
        self.d_keys = torch.zeros_like(scorer.keys)  # lacks the factor `slope` as yet
        self.d_scores = scorer.scores.new_empty(*scorer.scores.shape, 1)  # (K, B, M, 1)
        self.d_query = torch.empty_like(scorer.query)  # (K, B, 1, A)
        self.seen = torch.zeros_like(scorer.query)  # (K, B, 1, A): Σ d_e · tile, of all steps
        self.given = scorer.score.new_zeros(())  # Σ d_e, of all steps
        # v tanh', where tanh' = 1 - tanh² = 4 (s - s²)
        self.slope = scorer.score * 4 if scorer.by_exp else scorer.score
        over_places = self.d_scores.transpose(2, 3)  # (K, B, 1, M)
        rows = (scorer.query, self.d_scores, over_places, self.d_query, self.seen)
        self.work = scorer.by_tile((scorer.keys, self.d_keys), rows)

    def __call__(self, queries: Tensor, d_scores: Tensor, live: Tensor | None = None) -> Tensor:
        """(n, A), (n, M) → the queries' gradient (n, A)."""
        scorer = self.of
        places = scorer.put(queries, live)
        self.d_scores.zero_()  # others in a tile with a live row have no gradient
        self.d_scores[..., 0].flatten(0, 1).index_copy_(0, places, d_scores)
        for (tile, key, d_key), rows in scorer.live_tiles(self.work, places):
            constant = tile if scorer.by_exp else scorer.one
            for query, d_out, over_places, d_query, seen in rows:
                scorer.fill(tile, key, query)
                seen.baddbmm_(over_places, tile)
                torch.addcmul(constant, tile, tile, value=-1, out=tile)
                torch.bmm(over_places, tile, out=d_query)
                d_key.addcmul_(tile, d_out)
        self.given += d_scores.sum()
        return self.d_query.flatten(0, 2).index_select(0, places) * self.slope

    def finish(self) -> tuple[Tensor, Tensor]:
        """The gradients of keys (B, M, A) and of v (A,)."""
        d_score = self.seen.sum((0, 1, 2))
        if self.of.by_exp:
            d_score = self.given - 2 * d_score
        return self.d_keys.mul_(self.slope), d_score


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
        examples, places, size = self.keys.shape
        rows = len(grouping.rows)
        sizes = {"B": examples, "M": places, "A": size, "R": rows, "S": examples + 1}
        if size % 2:
            raise ValueError(f"{function}: keys of an even size, not {size}")
        for tensor, (name, axes) in zip(given, ARGUMENTS[function].items(), strict=True):
            shape = tuple(sizes[axis] for axis in axes)
            dtype = torch.int64 if name in ("starts", "rows") else self.keys.dtype
            right = tensor.shape == shape and tensor.dtype == dtype and tensor.device.type == "cpu"
            if not (right and tensor.is_contiguous()):
                has = f"{tuple(tensor.shape)} {tensor.dtype} {tensor.device} {tensor.stride()}"
                raise ValueError(f"{function}: {name} must be {shape} {dtype}, not {has}")
        getattr(self.library, function)(*(x.data_ptr() for x in given), *self.keys.shape)

    def backward(self) -> CompiledBackward:
        return CompiledBackward(self)


class CompiledBackward:
    """As `ScorerBackward`. The gradient of the keys is computed once, after all steps, where a key
    stays in the cache for all of its queries.
    """

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

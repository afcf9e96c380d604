"""The scores of additive attention, e = v · tanh(key + query), and their gradients, tile by tile.

The tanh layer of all rows, (N, M, A), is far larger than the processor's cache, and a new one is
needed at every step. Here it exists one tile at a time and is computed again in the backward pass;
what is left of the traffic through memory is to read the keys and to add to their gradient.

Tiles are small, so that calls count as much as numbers do: views are made once for all steps.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Numbers in a tile of the tanh layer, per thread: with as many of the keys and of their gradient it
# fits a core's second-level cache (1.5 of 2 MB). Measured: twice as large is no faster.
TILE = 131_072

# With keys within this, exp(2 key) · exp(2 query) serves for every query: where a factor overflows
# or vanishes in float32, beyond 43, tanh has long been 1 or -1.
LARGEST = 30.0

# for each tile: parts of what examples have, and for each of its rows parts of what rows have
Work = list[tuple[tuple[Tensor, ...], list[tuple[Tensor, ...]]]]


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

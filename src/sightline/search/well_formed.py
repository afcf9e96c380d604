"""WellFormed: a constraint under which a search writes trees over exactly the words given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.search.constraints import Constraint, Mask, Rows
from sightline.search.steppers import require

OPENS, CLOSES, LEAF, NEVER = 1, -1, 0, 2


@dataclass(frozen=True)
class WellFormed(Constraint):
    """One tree per output: brackets that open, close by their own label and are never empty.

    Example b has words[b] leaves. An output can always be ended within `longest` tokens, the end
    token included: brackets are opened only while there is room to close them.
    """

    kinds: NDArray[np.int8]  # (V,): whether a token opens a bracket, closes one, or is a leaf
    labels: NDArray[np.int64]  # (V,): the label of a bracket
    words: Sequence[int]  # (B,)
    longest: int

    def check(self, examples: int, vocab_size: int) -> None:
        require(
            len(self.words) == examples and len(self.kinds) == vocab_size,
            f"trees over {len(self.words)} sentences and {len(self.kinds)} tokens for "
            f"{examples} examples and {vocab_size} tokens",
        )
        require(
            max(self.words) + 3 <= self.longest,
            f"a tree over {max(self.words)} words needs at least {max(self.words) + 3} tokens, "
            f"not {self.longest}; raise the length",
        )

    def allowed(self, rows: Rows) -> Mask | None:
        written = rows.written
        count, t = written.shape
        kinds = self.kinds[written]  # (N, t)
        depths = kinds.cumsum(1, dtype=np.int16)  # (N, t): open brackets after each token
        depth = depths[:, -1] if t else np.zeros(count, np.int64)
        leaves = np.asarray(self.words)[rows.example] - (kinds == LEAF).sum(1)
        opened = kinds[:, -1] == OPENS if t else np.zeros(count, dtype=bool)
        need = leaves + depth + 1  # tokens to the end, if nothing more is opened
        may_open = (leaves > 0) & ((depth > 0) | (t == 0)) & (t + need + 2 <= self.longest)
        may_write = (depth > 0) & (leaves > 0)
        may_close = (depth > 0) & ~opened & ((depth > 1) | (leaves == 0))
        allowed: Mask = (may_open[:, None] & (self.kinds == OPENS)) | (
            may_write[:, None] & (self.kinds == LEAF)
        )
        if may_close.any():
            # the innermost open bracket is the last that opened at this depth
            inner = (kinds == OPENS) & (depths == depth[:, None])  # (N, t)
            at = t - 1 - inner[:, ::-1].argmax(1)
            label = self.labels[written[np.arange(count), at]]  # (N,)
            closing = (self.kinds == CLOSES) & (self.labels == label[:, None])
            allowed |= may_close[:, None] & closing
        if rows.end is not None:
            allowed[:, rows.end] = (depth == 0) & (t > 0)
        return allowed

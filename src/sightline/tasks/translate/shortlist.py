"""Shortlists (Jean et al. 2015): each sentence is written in the tokens that it may need.

These are the commonest tokens of the vocabulary, the translations that the lexicon has for the
sentence's own tokens, and these tokens themselves, for names. The output layer of a batch holds
what any of its sentences may need; each sentence still chooses among its own alone, so that a
batch equals its singles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sightline.data.vocabulary import SPECIALS, Vocabulary
from sightline.errors import UserError
from sightline.tasks.translate.alignments import Lexicon


def candidates(
    sources: Sequence[Sequence[str]], common: int, lexicon: Lexicon, vocab: Vocabulary
) -> tuple[list[int], NDArray[np.bool_]]:
    """The tokens (C,) that the sentences may need, ascending, and which of them each may (B, C)."""
    if not lexicon:
        raise UserError(
            "a shortlist needs the model's lexicon; make it with `sightline align SRC TGT "
            "--model RUN --save-lexicon` on the training text"
        )
    always = range(min(len(vocab), len(SPECIALS) + common))
    own = [
        {
            vocab.ids[word]
            for token in tokens
            for word in (token, *lexicon.get(token, ()))
            if word in vocab.ids
        }
        for tokens in sources
    ]
    tokens = sorted({*always, *(token for some in own for token in some)})
    place = {token: i for i, token in enumerate(tokens)}
    allowed = np.zeros((len(sources), len(tokens)), dtype=bool)
    allowed[:, : len(always)] = True
    for row, some in enumerate(own):
        allowed[row, [place[token] for token in some]] = True
    return tokens, allowed

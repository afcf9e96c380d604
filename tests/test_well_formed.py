"""Whatever a model thinks, a search under WellFormed writes trees over its words."""

import numpy as np
import pytest
from tests.table_stepper import TableStepper, named

from sightline import search
from sightline.data.trees import build
from sightline.data.vocabulary import END, SPECIALS
from sightline.search.constraints import constrain
from sightline.search.steppers import SearchError
from sightline.search.well_formed import CLOSES, LEAF, NEVER, OPENS, WellFormed

NAMES = (*SPECIALS, "(S", ")S", "(NP", ")NP", "DT", "NN")
KINDS = np.array([*[NEVER] * 4, OPENS, CLOSES, OPENS, CLOSES, LEAF, LEAF])
LABELS = np.array([0, 0, 0, 0, 4, 4, 6, 6, 0, 0])
WORDS = [1, 2, 3, 5, 4, 7]


def written(longest, **options):
    stepper = TableStepper(vocab_size=len(NAMES), end=END, sharpness=2.0, **options)
    constrained = constrain(stepper, WellFormed(KINDS, LABELS, WORDS, longest))
    contexts = named(range(len(WORDS)))
    return constrained, contexts


def is_tree(tokens, words):
    """Checked by a stack, and by reading the tree back."""
    names = [NAMES[token] for token in tokens]
    assert names.pop() == "<end>"
    stack, leaves = [], 0
    for place, name in enumerate(names):
        assert stack or place == 0
        if name[0] == "(":
            stack.append(name[1:])
        elif name[0] == ")":
            assert names[place - 1][0] != "("
            assert stack.pop() == name[1:]
        else:
            leaves += 1
    assert not stack
    assert leaves == words
    return build(names, [f"w{i}" for i in range(words)]).tokens() == names


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("longest", [10, 14, 40])
def test_beams_write_trees(seed, size, longest):
    stepper, contexts = written(longest, seed=seed, end_bias=2.0)
    options = search.BeamOptions(max_length=longest, size=size, n_best=size)
    for words, found in zip(WORDS, search.finish(search.beam(stepper, contexts, options)),
                            strict=True):  # fmt: skip
        assert found
        for hypothesis in found:
            assert hypothesis.finished
            assert is_tree(hypothesis.tokens, words)
            assert np.isfinite(hypothesis.score)


def test_samples_are_trees():
    stepper, contexts = written(20, seed=9)
    results = search.finish(search.sample(stepper, contexts, max_length=20, temperature=3.0))
    for words, (hypothesis,) in zip(WORDS, results, strict=True):
        assert is_tree(hypothesis.tokens, words)


def test_too_short_a_length_is_refused():
    stepper, contexts = written(9)
    with pytest.raises(SearchError, match="a tree over 7 words needs at least 10 tokens"):
        stepper.start(contexts)
    with pytest.raises(SearchError, match="6 sentences"):
        stepper.start(named([1]))

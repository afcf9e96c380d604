"""Steppers made of steppers: ensembles, language-model fusion, subsets of a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sightline.errors import UserError
from sightline.search import BeamOptions, beam, finish, rescore, sample
from sightline.search.constraints import Prefix, constrain
from sightline.search.steppers import (
    Ensemble,
    Fusion,
    Started,
    Stepper,
    Subset,
    posterior_attention,
)
from sightline.types import ContextSet
from table_stepper import TableStepper, named, same

ROWS = np.array([0, 0, 2, 2])  # two rows of examples 0 and 2, none of 1


def after(stepper: Stepper, names: list[int], tokens: list[int]) -> tuple[NDArray[Any], Any]:
    """Log-probabilities and attention of ROWS after `tokens`, with a select on the way."""
    state = stepper.start(named(names))
    result = stepper.step(state, np.full(len(names), stepper.begin))
    state = stepper.select(result.state, ROWS)
    for token in tokens:
        result = stepper.step(state, np.full(len(ROWS), token))
        state = result.state
    assert len(state) == len(ROWS)
    return result.log_probs, result.attention


def test_an_ensemble_of_one_equals_itself() -> None:
    table = TableStepper(seed=1, impossible=0.3)
    for ours, theirs in zip(
        after(Ensemble([table]), [1, 2, 3], [2, 3]), after(table, [1, 2, 3], [2, 3]), strict=True
    ):
        assert np.array_equal(ours, theirs)
    options = BeamOptions(size=3, n_best=3, max_length=5)
    found = finish(beam(Ensemble([table]), named([1, 2]), options))
    assert [[h.tokens for h in e] for e in found] == [
        [h.tokens for h in e] for e in finish(beam(table, named([1, 2]), options))
    ]


@pytest.mark.parametrize("weights", [None, [3.0, 1.0]])
def test_an_ensemble_of_two_is_the_mean_probability(weights: list[float] | None) -> None:
    one, two = TableStepper(seed=1, impossible=0.4), TableStepper(seed=2, impossible=0.4)
    log_probs, attention = after(Ensemble([one, two], weights), [1, 2, 3], [2, 3])
    share = 0.5 if weights is None else 0.75
    for row, name in enumerate([1, 1, 3, 3]):
        p = np.exp(one.prefix_log_probs(name, [2, 3]).astype(float))
        q = np.exp(two.prefix_log_probs(name, [2, 3]).astype(float))
        np.testing.assert_allclose(np.exp(log_probs[row]), share * p + (1 - share) * q, rtol=1e-5)
        looked = share * one.prefix_attention(name, [2, 3])
        looked = looked + (1 - share) * two.prefix_attention(name, [2, 3])
        np.testing.assert_allclose(attention[row], looked, rtol=1e-5)
    assert log_probs.dtype == attention.dtype == np.float32
    assert np.isneginf(log_probs).any()  # impossible for both


def test_an_ensemble_keeps_very_small_probabilities() -> None:
    """exp(−150) is zero in float32; its logarithm must survive."""
    tables = [TableStepper(seed=seed, end_bias=-150.0) for seed in (1, 2)]
    log_probs, _ = after(Ensemble(tables), [1, 2, 3], [2])
    values = [t.prefix_log_probs(1, [2])[0].astype(float) for t in tables]
    assert log_probs[0, 0] == pytest.approx(np.logaddexp(*values) - np.log(2), rel=1e-5)


def test_attention_of_different_shapes_is_not_averaged() -> None:
    tables = [TableStepper(places=3), TableStepper(places=4)]
    assert after(Ensemble(tables), [1, 2, 3], [2])[1] is None
    tables = [TableStepper(places=3), TableStepper(attends=False)]
    assert after(Ensemble(tables), [1, 2, 3], [2])[1] is None


@pytest.mark.parametrize("mapped", [False, True])
def test_fusion_equals_the_sum_by_hand(mapped: bool) -> None:
    """With a map: the model's tokens 4 and 5 are unknown (1) to a language model of 4 tokens."""
    table = TableStepper(vocab_size=6, seed=1)
    if mapped:
        language_model = TableStepper(vocab_size=4, seed=2, begin=2, end=3)
        token_map = [1, 1, 0, 2, 1, 1]  # the end (0) is set by Fusion itself
        expected_map = [3, 1, 0, 2, 1, 1]
    else:
        language_model, token_map = TableStepper(vocab_size=6, seed=2), None
        expected_map = list(range(6))
    fusion = Fusion(table, language_model, 0.3, token_map)
    log_probs, attention = after(fusion, [7, 8, 9], [4, 3])
    lm = language_model.prefix_log_probs(0, [expected_map[4], expected_map[3]])[expected_map]
    for row, name in enumerate([7, 7, 9, 9]):
        expected = table.prefix_log_probs(name, [4, 3]) + np.float32(0.3) * lm
        np.testing.assert_allclose(log_probs[row], expected, rtol=1e-6)
        assert np.array_equal(attention[row], table.prefix_attention(name, [4, 3]))
    options = BeamOptions(size=3, n_best=3, max_length=4)
    for name, hypotheses in zip([7, 8], finish(beam(fusion, named([7, 8]), options)), strict=True):
        for h in hypotheses:  # the hypothesis carries the fused scores
            for t, token in enumerate(h.tokens):
                lm_tokens = [expected_map[earlier] for earlier in h.tokens[:t]]
                own = table.prefix_log_probs(name, h.tokens[:t])[token]
                lm = language_model.prefix_log_probs(0, lm_tokens)[expected_map[token]]
                assert h.log_probs[t] == pytest.approx(own + 0.3 * lm, rel=1e-6)


def test_a_weight_of_zero_leaves_the_model_alone() -> None:
    table, language_model = TableStepper(seed=1), TableStepper(seed=2, impossible=0.5)
    ours, _ = after(Fusion(table, language_model, 0.0), [1, 2, 3], [2])
    assert np.array_equal(ours, after(table, [1, 2, 3], [2])[0])


def test_compositions_compose() -> None:
    tables = [TableStepper(vocab_size=6, seed=seed) for seed in (1, 2)]
    fused = Fusion(Ensemble(tables), TableStepper(vocab_size=6, seed=3), 0.2)
    names, prefixes = [1, 2, 3], [[2], [], [3, 4]]
    options = BeamOptions(size=4, n_best=2, max_length=6, length_penalty=1.0)
    batch = finish(beam(constrain(fused, Prefix(prefixes)), named(names), options))
    for name, prefix, hypotheses in zip(names, prefixes, batch, strict=True):
        (single,) = finish(beam(constrain(fused, Prefix([prefix])), named([name]), options))
        assert [h.tokens for h in single] == [h.tokens for h in hypotheses]
        for h in hypotheses:
            assert list(h.tokens[: len(prefix)]) == prefix
            again = rescore(fused, named([name]), [h.tokens])[0]
            assert np.array_equal(h.log_probs, again.log_probs)
            assert np.array_equal(h.attention, again.attention)
    forced = constrain(fused, Prefix(prefixes))
    drawn = finish(sample(forced, named(names), max_length=5, samples=2))
    assert [len(e) for e in drawn] == [2, 2, 2]


def members(*names: list[int]) -> ContextSet:
    """A context set in which each model of an ensemble has its own."""
    return replace(named(names[0]), members=tuple(named(own) for own in names))


def test_each_model_of_an_ensemble_reads_its_own_context() -> None:
    one, two = TableStepper(seed=1), TableStepper(seed=2)
    result = Ensemble([one, two]).step(
        Ensemble([one, two]).start(members([1, 2], [3, 4])), np.array([1, 1])
    )
    for row, (first, second) in enumerate([(1, 3), (2, 4)]):
        p = np.exp(one.prefix_log_probs(first, [])) + np.exp(two.prefix_log_probs(second, []))
        np.testing.assert_allclose(np.exp(result.log_probs[row]), p / 2, rtol=1e-5)


class Knowing(TableStepper):
    """Its posterior is the example's name everywhere."""

    def posterior(
        self, context: ContextSet, tokens: Sequence[Sequence[int]]
    ) -> list[NDArray[np.float32]]:
        names = context.values.ravel()
        pairs = zip(names, tokens, strict=True)
        return [np.full((len(row), self.places), name, np.float32) for name, row in pairs]


def test_the_posterior_of_an_ensemble_is_the_mean_of_its_models() -> None:
    both = Ensemble([Knowing(seed=1), Knowing(seed=2)], [3, 1])
    (posterior,) = posterior_attention(both, members([4], [8]), [[2, 3]]) or []
    assert np.array_equal(posterior, np.full((2, 3), 5.0))
    (posterior,) = posterior_attention(both, named([4]), [[2, 3]]) or []
    assert np.array_equal(posterior, np.full((2, 3), 4.0))
    assert posterior_attention(TableStepper(), named([1]), [[2]]) is None
    mixed = Ensemble([Knowing(), TableStepper()])
    assert posterior_attention(mixed, named([1]), [[2]]) is None


def test_a_search_can_begin_from_a_state() -> None:
    table = TableStepper(vocab_size=7, seed=4)
    options = BeamOptions(size=3, n_best=3, max_length=5)
    begun = Started(table, table.start(named([5, 6])))
    for context in (named([5, 6]), ContextSet.empty(2)):
        for ours, theirs in zip(
            finish(beam(begun, context, options)),
            finish(beam(table, named([5, 6]), options)),
            strict=True,
        ):
            assert same(ours, theirs)


def test_a_subset_keeps_the_probabilities_of_its_tokens() -> None:
    table = TableStepper(vocab_size=9, seed=5, end=7)
    tokens = [1, 3, 6, 7]
    small = Subset(table, tokens)
    assert (small.vocab_size, small.begin, small.end) == (4, 0, 3)
    log_probs, attention = after(small, [1, 2, 3], [2, 1])
    for row, name in enumerate([1, 1, 3, 3]):
        assert np.array_equal(log_probs[row], table.prefix_log_probs(name, [6, 3])[tokens])
        assert np.array_equal(attention[row], table.prefix_attention(name, [6, 3]))
    assert Subset(TableStepper(end=None), [1, 2]).end is None


def test_parts_that_do_not_fit_are_refused() -> None:
    small, large = TableStepper(vocab_size=4), TableStepper(vocab_size=5)
    for wrong in (
        lambda: Ensemble([]),
        lambda: Ensemble([small, large]),
        lambda: Ensemble([small, TableStepper(vocab_size=4, end=2)]),
        lambda: Ensemble([small, small], [1.0]),
        lambda: Ensemble([small, small], [0.0, 0.0]),
        lambda: Ensemble([small, small], [1.0, -1.0]),
        lambda: Fusion(small, large, 0.1),
        lambda: Fusion(small, large, -0.1, [0, 1, 2, 3]),
        lambda: Fusion(small, large, 0.1, [0, 1, 2]),
        lambda: Fusion(small, large, 0.1, [0, 1, 2, 5]),
        lambda: Ensemble([small, small]).start(members([1], [2], [3])),
        lambda: Subset(small, [0, 2]),
        lambda: Subset(small, [1, 2]),
    ):
        with pytest.raises(UserError):
            wrong()

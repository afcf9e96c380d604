"""Constraints against brute force: each one is also written down here as a rule in plain Python."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sightline.errors import UserError
from sightline.search import BeamOptions, beam, finish, greedy, rescore, sample
from sightline.search.constraints import (
    FEW,
    Banned,
    Constrained,
    Constraint,
    Mask,
    MinLength,
    NoRepeatedNgrams,
    Prefix,
    Rows,
    Shortlist,
    constrain,
)
from sightline.search.steppers import Ensemble, Fusion, State, StepResult, Subset
from table_stepper import LeadingTable, TableStepper, enumerate_all, named, run, same

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10_000)
Rule = Callable[[int, tuple[int, ...], int], bool]  # (example, tokens so far, next): allowed?

NAMES = [11, 12, 13]
PREFIXES: list[list[int]] = [[2, 4, 3], [], [3]]
CHOICES = np.array([[1, 1, 1, 0, 1], [1, 1, 0, 1, 1], [1, 1, 1, 1, 1]], dtype=bool)  # (3, 5)


@dataclass(frozen=True)
class EachOnce(Constraint):
    """A tour over the first cities[b] tokens from 2: each city once, and the end only after all."""

    cities: Sequence[int]

    def allowed(self, rows: Rows) -> Mask | None:
        counts = np.array(self.cities)[rows.example]  # (N,)
        token = np.arange(rows.vocab_size)
        allowed = (token >= 2) & (token < 2 + counts[:, None])
        np.put_along_axis(allowed, rows.written, False, axis=1)
        assert rows.end is not None
        allowed[:, rows.end] = rows.written.shape[1] >= counts
        return allowed


@dataclass(frozen=True)
class Brackets(Constraint):
    """Well-formed: 2 opens, 3 closes, what is open must be closed before the end."""

    def allowed(self, rows: Rows) -> Mask | None:
        depth = (rows.written == 2).sum(1) - (rows.written == 3).sum(1)  # (N,)
        allowed = np.ones((len(depth), rows.vocab_size), dtype=bool)
        allowed[:, 3] = depth > 0
        assert rows.end is not None
        allowed[:, rows.end] = depth == 0
        return allowed


@dataclass(frozen=True)
class Case:
    """A constraint for some of the examples, and the same as rules."""

    make: Callable[[slice], Constraint | tuple[Constraint, ...]]
    rule: Rule = lambda example, written, token: True  # what keeps the model's own log-probs
    listed: Rule = lambda example, written, token: True  # what is renormalised

    def constraints(self, some: slice) -> tuple[Constraint, ...]:
        made = self.make(some)
        return made if isinstance(made, tuple) else (made,)


def no_repeated(n: int) -> Rule:
    def rule(example: int, written: tuple[int, ...], token: int) -> bool:
        tokens = (*written, token)
        ngrams = [tokens[i : i + n] for i in range(len(tokens) - n + 1)]
        return len(ngrams) == len(set(ngrams))

    return rule


def follows_prefix(example: int, written: tuple[int, ...], token: int) -> bool:
    prefix = PREFIXES[example]
    return len(written) >= len(prefix) or prefix[len(written)] == token


def tour(example: int, written: tuple[int, ...], token: int) -> bool:
    cities = set(range(2, 2 + [3, 1, 2][example]))
    return token in cities - set(written) or (token == 0 and cities <= set(written))


def well_formed(example: int, written: tuple[int, ...], token: int) -> bool:
    depth = written.count(2) - written.count(3)
    return {0: depth == 0, 3: depth > 0}.get(token, True)


CASES = {
    "prefix": Case(lambda some: Prefix(PREFIXES[some]), follows_prefix),
    "min_length": Case(lambda some: MinLength(3), lambda e, w, t: t != 0 or len(w) >= 2),
    "no_token_twice": Case(lambda some: NoRepeatedNgrams(1), no_repeated(1)),
    "no_bigram_twice": Case(lambda some: NoRepeatedNgrams(2), no_repeated(2)),
    "banned": Case(lambda some: Banned([1, 3]), listed=lambda e, w, t: t not in (1, 3)),
    "shortlist": Case(
        lambda some: Shortlist(CHOICES[some]), listed=lambda e, w, t: bool(CHOICES[e, t])
    ),
    "all": Case(
        lambda some: (MinLength(3), Prefix(PREFIXES[some]), Banned([1]), NoRepeatedNgrams(2)),
        lambda e, w, t: (
            follows_prefix(e, w, t) and (t != 0 or len(w) >= 2) and no_repeated(2)(e, w, t)
        ),
        lambda e, w, t: t != 1,
    ),
    "tour": Case(lambda some: EachOnce([3, 1, 2][some]), tour),
    "brackets": Case(lambda some: Brackets(), well_formed),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
EVERY = slice(None)


def reference(
    table: TableStepper, case: Case, example: int
) -> Callable[[tuple[int, ...]], NDArray[Any]]:
    """The next token's log-probabilities under the rules of a case."""

    def log_probs(tokens: tuple[int, ...]) -> NDArray[Any]:
        values = table.prefix_log_probs(NAMES[example], tokens).astype(float)
        listed = [case.listed(example, tokens, token) for token in range(table.vocab_size)]
        if not all(listed):
            values = np.where(listed, values, -np.inf)
            if (total := np.exp(values).sum()) > 0:
                values = values - np.log(total)
        free = [case.rule(example, tokens, token) for token in range(table.vocab_size)]
        return np.where(free, values, -np.inf)

    return log_probs


@every_case
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_that_holds_everything_equals_exhaustive_search_of_what_is_allowed(
    case: Case, groups: int, penalty: float
) -> None:
    for seed in range(3):
        table = TableStepper(seed=seed, sharpness=2.0, impossible=0.2 * (seed == 2))
        found = run(
            constrain(table, *case.constraints(EVERY)), NAMES,
            size=700 * groups, n_best=700 * groups,
            max_length=4, length_penalty=penalty, groups=groups,
        )  # fmt: skip
        for example, hypotheses in enumerate(found):
            expected = enumerate_all(
                table, NAMES[example], 4, penalty, reference(table, case, example)
            )
            if not expected:  # a dead end: nothing of any length is allowed
                assert not any(h.finished for h in hypotheses)
                continue
            assert [(h.finished, h.tokens) for h in hypotheses] == [(e, t) for e, _, t in expected]
            np.testing.assert_allclose(
                [h.score for h in hypotheses], [s for _, s, _ in expected], rtol=1e-5, atol=1e-6
            )


@every_case
@few
@given(
    seed=seeds,
    groups=st.sampled_from([1, 2]),
    kind=st.sampled_from([TableStepper, LeadingTable]),
    impossible=st.sampled_from([0.0, 0.3]),
)
def test_batch_equals_singles(
    case: Case, seed: int, groups: int, kind: type[TableStepper], impossible: float
) -> None:
    table = kind(seed=seed, end_bias=1.0, impossible=impossible)
    options = BeamOptions(
        size=4, n_best=4, max_length=6, length_penalty=0.7, groups=groups, keep_tree=True
    )
    *_, batch = beam(constrain(table, *case.constraints(EVERY)), named(NAMES), options)
    drawn = finish(
        sample(constrain(table, *case.constraints(EVERY)), named(NAMES), max_length=6, samples=2)
    )
    assert batch.tree is not None
    for i, name in enumerate(NAMES):
        alone = constrain(table, *case.constraints(slice(i, i + 1)))
        *_, single = beam(alone, named([name]), options)
        assert single.tree is not None
        assert same(batch.hypotheses[i], single.hypotheses[0])
        assert batch.tree[i] == single.tree[0]
        sampled = finish(sample(alone, named([name]), max_length=6, samples=2, indices=[i]))
        assert same(drawn[i], sampled[0])


@every_case
@few
@given(seed=seeds, impossible=st.sampled_from([0.0, 0.3]))
def test_every_search_keeps_the_rules_and_the_log_probs(
    case: Case, seed: int, impossible: float
) -> None:
    """Log-probs are the model's own, or renormalised where the constraint says so."""
    table = TableStepper(seed=seed, end_bias=1.0, impossible=impossible)
    stepper = constrain(table, *case.constraints(EVERY))
    searches = [
        beam(stepper, named(NAMES), BeamOptions(size=4, n_best=4, max_length=5)),
        beam(stepper, named(NAMES), BeamOptions(size=4, n_best=4, max_length=5, groups=2)),
        greedy(stepper, named(NAMES), max_length=5),
        sample(stepper, named(NAMES), max_length=5, samples=3, top_p=0.9),
    ]
    for search in searches:
        for example, hypotheses in enumerate(finish(search)):
            log_probs = reference(table, case, example)
            assert hypotheses
            for h in hypotheses:
                expected = [log_probs(h.tokens[:t])[token] for t, token in enumerate(h.tokens)]
                assert np.isfinite(expected).all()
                np.testing.assert_allclose(h.log_probs, expected, rtol=1e-5, atol=1e-6)
                if not any(part.renormalised for part in case.constraints(EVERY)):
                    again = rescore(table, named([NAMES[example]]), [h.tokens])[0]
                    assert np.array_equal(h.log_probs, again.log_probs)
                    if h.tokens:
                        assert np.array_equal(h.attention, again.attention)


@every_case
@few
@given(seed=seeds)
def test_a_beam_of_one_equals_greedy(case: Case, seed: int) -> None:
    stepper = constrain(TableStepper(seed=seed, impossible=0.2), *case.constraints(EVERY))
    by_greedy = finish(greedy(stepper, named(NAMES), max_length=6))
    for ours, theirs in zip(run(stepper, NAMES, size=1, max_length=6), by_greedy, strict=True):
        assert same(ours, theirs)


@every_case
@few
@given(seed=seeds, diversity=st.sampled_from([0.5, 3.0]))
def test_the_first_group_equals_the_plain_beam_of_its_size(
    case: Case, seed: int, diversity: float
) -> None:
    stepper = constrain(TableStepper(seed=seed, end_bias=0.5), *case.constraints(EVERY))
    plain = run(stepper, NAMES, size=2, n_best=2, max_length=5)
    diverse = run(stepper, NAMES, size=6, n_best=6, max_length=5, groups=3, diversity=diversity)
    for ours, theirs in zip(plain, diverse, strict=True):
        by_tokens = {h.tokens: h for h in theirs}
        assert same(ours, [by_tokens[h.tokens] for h in ours])


# ---- the likeliest tokens alone ----------------------------------------------------------------


@dataclass
class Counting(LeadingTable):
    """Remembers what it was called for: a number of likeliest tokens, or None for all of them."""

    calls: list[int | None] = field(default_factory=list)

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        self.calls.append(None)
        return super().step(state, tokens)

    def leading(self, state: State, tokens: NDArray[np.int64], count: int) -> StepResult:
        result = super().leading(state, tokens, count)
        self.calls[-1] = count
        return result


class TiedTable(LeadingTable):
    """Log-probabilities in steps of 1, full of ties."""

    def look_up(self, key: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
        log_probs, attention = super().look_up(key)
        return np.round(log_probs), attention


@every_case
@few
@given(seed=seeds, vocab=st.sampled_from([5, 40]), size=st.integers(1, 3), tied=st.booleans())
def test_dropping_what_is_forbidden_from_the_likeliest_is_exact(
    case: Case, seed: int, vocab: int, size: int, tied: bool
) -> None:
    table = (TiedTable if tied else LeadingTable)(vocab_size=vocab, seed=seed, impossible=0.3)
    constraints = [
        Shortlist(np.tile(each.choices, vocab // 5)) if isinstance(each, Shortlist) else each
        for each in case.constraints(EVERY)
    ]
    stepper = constrain(table, *constraints)
    assert isinstance(stepper, Constrained)
    whole = copy.copy(stepper)
    whole.leading = None  # type: ignore[assignment, method-assign]
    options = {"size": size, "n_best": size, "max_length": 6}
    for ours, theirs in zip(
        run(stepper, NAMES, **options), run(whole, NAMES, **options), strict=True
    ):
        assert same(ours, theirs)
    state = stepper.select(stepper.start(named(NAMES)), np.repeat(np.arange(3), 2))
    for token in (1, 2, 4):
        fed = np.full(len(state), token)
        result, leading = stepper.step(state, fed), stepper.leading(state, fed, 2 * size)
        if leading.tokens is not None:
            order = np.argsort(-result.log_probs, axis=1, kind="stable")[:, : 2 * size]
            possible = np.take_along_axis(result.log_probs, order, axis=1) > -np.inf
            assert leading.tokens.shape == order.shape
            assert np.array_equal(leading.tokens[possible], order[possible])
            best = np.take_along_axis(result.log_probs, order, axis=1)
            assert np.array_equal(leading.log_probs[possible], best[possible])
        state = result.state


def test_no_more_of_the_likeliest_are_computed_than_may_be_dropped() -> None:
    def calls(*constraints: Constraint, max_length: int = 5) -> list[int | None]:
        table = Counting(vocab_size=200, seed=1, end_bias=-50.0)
        run(constrain(table, *constraints), [1], size=3, max_length=max_length)
        return table.calls

    assert calls() == [6] * 5
    assert calls(MinLength(4)) == [7, 7, 7, 6, 6]
    assert calls(NoRepeatedNgrams(1)) == [6, 7, 8, 9, 10]
    assert calls(NoRepeatedNgrams(3)) == [6] * 5
    assert calls(Prefix([[5, 6]])) == [None, None, 6, 6, 6]
    assert calls(MinLength(3), NoRepeatedNgrams(1)) == [7, 8, 8, 9, 10]
    many = calls(NoRepeatedNgrams(1), max_length=FEW + 3)
    assert many[FEW] == 6 + FEW
    assert many[FEW + 1 :] == [None] * 2


# ---- what is left out of a softmax -------------------------------------------------------------


class Leaving(LeadingTable):
    """Leaves tokens out of its softmax by itself."""

    left_out: tuple[int, ...] = ()

    def without(self, tokens: Sequence[int]) -> Leaving:
        other = copy.copy(self)
        other.left_out, other.table = (*self.left_out, *tokens), {}
        return other

    def look_up(self, key: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
        log_probs, attention = super().look_up(key)
        log_probs = log_probs.astype(float)
        log_probs[list(self.left_out)] = -np.inf
        return (log_probs - np.log(np.exp(log_probs).sum())).astype(np.float32), attention


def after(stepper: Any, tokens: Sequence[int]) -> NDArray[np.float32]:
    state = stepper.start(named(NAMES))
    for token in (stepper.begin, *tokens):
        result = stepper.step(state, np.full(len(NAMES), token))
        state = result.state
    log_probs: NDArray[np.float32] = result.log_probs
    return log_probs


def test_a_stepper_that_leaves_tokens_out_by_itself_does() -> None:
    own, table = Leaving(vocab_size=7, seed=3), TableStepper(vocab_size=7, seed=3)
    banned = constrain(own, Banned([1, 4]), Banned([5]))
    assert isinstance(banned, Leaving)
    assert banned.left_out == (1, 4, 5)
    renormalised = constrain(table, Banned([1, 4, 5]))
    np.testing.assert_allclose(after(banned, [2, 3]), after(renormalised, [2, 3]), rtol=1e-5)
    both = constrain(own, Prefix([[2], [], [3]]), Banned([1]))
    assert isinstance(both, Constrained)
    assert isinstance(both.stepper, Leaving)
    assert constrain(own) is own


def test_what_is_left_out_sums_to_nothing_and_the_rest_to_one() -> None:
    for constraint in (Banned([2, 3]), Shortlist(CHOICES)):
        p = np.exp(after(constrain(TableStepper(seed=2), constraint), [4]).astype(float))
        np.testing.assert_allclose(p.sum(1), 1.0, rtol=1e-6)
        assert (p == 0).any(1)[:2].all()


@pytest.mark.parametrize("kind", [TableStepper, Leaving])
def test_tokens_are_left_out_of_every_softmax_of_a_composition(kind: type[TableStepper]) -> None:
    one, two, lm = (kind(vocab_size=5, seed=seed) for seed in (1, 2, 3))
    banned = Banned([3])
    alone = [after(constrain(model, banned), [2]).astype(float) for model in (one, two)]
    both = after(constrain(Ensemble([one, two], [3, 1]), banned), [2])
    mean = 0.75 * np.exp(alone[0]) + 0.25 * np.exp(alone[1])
    np.testing.assert_allclose(np.exp(both), mean, rtol=1e-5)
    fused = after(constrain(Fusion(one, lm, 0.3, [0, 1, 2, 4, 3]), banned), [2])
    lm_log_probs = lm.prefix_log_probs(0, [2])[[0, 1, 2, 4, 3]]
    np.testing.assert_allclose(fused, alone[0] + 0.3 * lm_log_probs, rtol=1e-5)


@pytest.mark.parametrize("kind", [TableStepper, Leaving])
def test_a_subset_without_a_token_has_the_probabilities_of_the_whole_without_it(
    kind: type[TableStepper],
) -> None:
    table, tokens = kind(vocab_size=6, seed=1), [0, 1, 3, 5]
    small = constrain(Subset(table, tokens), Banned([2]))  # its 2 is 3, its 3 is 5
    assert isinstance(small, Subset)
    whole = after(constrain(table, Banned([3])), [5])
    assert np.array_equal(after(small, [3]), whole[:, tokens])
    listed = constrain(Subset(table, tokens), Banned([2]), Shortlist(np.ones((3, 4), dtype=bool)))
    p = np.exp(after(listed, [3]).astype(float))
    expected = np.exp(whole[:, tokens].astype(float))
    np.testing.assert_allclose(p, expected / expected.sum(1, keepdims=True), rtol=1e-5)


def test_the_order_of_constraints_does_not_matter() -> None:
    table, parts = TableStepper(seed=4), (Banned([2]), Prefix([[3], [], [4]]))
    at_once = after(constrain(table, *parts), [])
    for stepper in (
        constrain(table, *parts[::-1]),
        constrain(constrain(table, parts[1]), parts[0]),
        constrain(constrain(table, parts[0]), parts[1]),
        Constrained(table, *parts),
    ):
        assert np.array_equal(after(stepper, []), at_once)
    assert at_once[0, 3] < -0.01  # the forced token has the model's log-probability, not 0


def test_a_row_with_nothing_left_is_impossible_and_not_nan() -> None:
    table = TableStepper(seed=1)
    table.table[(11, 1)] = np.log(np.array([0, 0, 1, 0, 0]) + 1e-300).astype(np.float32), np.ones(3)
    table.table[(11, 1)][0][[0, 1, 3, 4]] = -np.inf
    log_probs = after(constrain(table, Banned([2])), [])
    assert np.isneginf(log_probs[0]).all()
    np.testing.assert_allclose(np.exp(log_probs[1:]).sum(1), 1.0, rtol=1e-6)
    (nothing,), *others = run(constrain(table, Banned([2])), NAMES, max_length=3)
    assert nothing.tokens == ()
    assert all(others)


# ---- rules of single constraints ---------------------------------------------------------------


def test_where_nothing_can_follow_the_result_is_what_was_written() -> None:
    table = TableStepper(vocab_size=3, end=None)
    (found,) = run(constrain(table, NoRepeatedNgrams(1)), [1], size=4, n_best=4, max_length=9)
    assert found
    assert all(sorted(h.tokens) == [0, 1, 2] and not h.finished for h in found)


def test_without_an_end_token_there_is_no_minimum_length() -> None:
    table = TableStepper(end=None, seed=2)
    ours, theirs = (
        run(constrain(table, MinLength(3)), [1], max_length=4),
        run(table, [1], max_length=4),
    )
    assert same(ours[0], theirs[0])


def test_a_minimum_beyond_max_length_gives_partial_hypotheses() -> None:
    (found,) = run(constrain(TableStepper(end_bias=3.0), MinLength(9)), [1], max_length=4)
    assert [(len(h.tokens), h.finished) for h in found] == [(4, False)]


def test_prefixes_follow_their_examples_through_a_selection() -> None:
    table = TableStepper(vocab_size=6, seed=3)
    forced = constrain(table, Prefix([[2, 4], [5, 5, 5], []]))
    result = forced.step(forced.start(named([1, 2, 3])), np.full(3, forced.begin))
    state = forced.select(result.state, np.array([0, 0, 2, 2]))
    assert len(state) == 4
    log_probs = forced.step(state, np.full(4, 2)).log_probs
    for row, name in enumerate([1, 1, 3, 3]):
        free = table.prefix_log_probs(name, [2])
        if name == 3:
            assert np.array_equal(log_probs[row], free)
        else:
            assert np.flatnonzero(log_probs[row] > -np.inf).tolist() == [4]
            assert log_probs[row, 4] == free[4]


def test_a_prefix_longer_than_max_length_is_cut() -> None:
    stepper = constrain(TableStepper(vocab_size=7, seed=1), Prefix([[2, 3, 4, 5, 6, 2]]))
    ((cut,),) = run(stepper, [1], max_length=4)
    assert cut.tokens == (2, 3, 4, 5)


def test_constraints_that_do_not_fit_are_refused() -> None:
    small = TableStepper(vocab_size=4)
    with pytest.raises(
        UserError, match="prefix 0 has the token id 4; the vocabulary's ids are 0 t"
    ):
        constrain(small, Prefix([[4]])).start(named([1]))
    with pytest.raises(UserError, match="2 prefixes for 1 examples; give one for each"):
        constrain(small, Prefix([[1], [2]])).start(named([1]))
    for wrong in (
        lambda: MinLength(-1),
        lambda: NoRepeatedNgrams(0),
        lambda: constrain(small, Banned([-1])).start(named([1])),
        lambda: constrain(small, Shortlist(CHOICES)).start(named(NAMES)),
        lambda: constrain(small, MinLength(2), Prefix([[9]])).start(named([1])),
    ):
        with pytest.raises(UserError):
            wrong()


def test_an_empty_batch_gives_an_empty_list() -> None:
    assert run(constrain(TableStepper(), Prefix([]), MinLength(2)), [], max_length=5) == []

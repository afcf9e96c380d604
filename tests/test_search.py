"""What the searches promise, against brute force over tables of random probabilities."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sightline.errors import UserError
from sightline.search import BeamOptions, beam, finish, greedy, rescore, sample
from sightline.search import candidates as search_candidates
from sightline.search.steppers import State, Stepper, StepResult
from sightline.types import ContextSet
from table_stepper import LeadingTable, TableStepper, enumerate_all, named, run, same

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10_000)


# ---- beam --------------------------------------------------------------------------------------


@few
@given(
    seed=seeds,
    penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    impossible=st.sampled_from([0.0, 0.4]),
    n_best=st.sampled_from([1, 4, 100]),
)
def test_a_beam_that_holds_everything_equals_exhaustive_search(
    seed: int, penalty: float, impossible: float, n_best: int
) -> None:
    table = TableStepper(vocab_size=4, seed=seed, impossible=impossible, sharpness=2.0)
    expected = enumerate_all(table, 7, max_length=4, penalty=penalty)[:n_best]
    (found,) = run(table, [7], size=150, max_length=4, length_penalty=penalty, n_best=n_best)
    assert [(h.finished, h.tokens) for h in found] == [(e, t) for e, _, t in expected]
    np.testing.assert_allclose([h.score for h in found], [s for _, s, _ in expected])


def slow_beam(
    table: TableStepper, name: int, size: int, max_length: int, penalty: float
) -> list[tuple[tuple[int, ...], float]]:
    """The rules of the beam in plain Python, without any early stop but `size` finished ones."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for step in range(1, max_length + 1):
        extended = [
            (total + float(log_prob), (*tokens, token))
            for total, tokens in live
            for token, log_prob in enumerate(table.prefix_log_probs(name, tokens))
        ]
        extended.sort(key=lambda pair: -pair[0])
        for total, tokens in extended[:size]:
            if tokens[-1] == table.end:
                finished.append((total / step**penalty, tokens))
        live = [pair for pair in extended if pair[1][-1] != table.end][:size]
        if len(finished) >= size:
            break
    finished.sort(key=lambda pair: -pair[0])
    partial = [(total / step**penalty, tokens) for total, tokens in live]
    return [(tokens, score) for score, tokens in (finished + partial)[:size]]


@few
@given(
    seed=seeds,
    size=st.integers(1, 6),
    vocab=st.sampled_from([2, 3, 7, 70, 150]),
    penalty=st.sampled_from([0.0, 1.0]),
    n_best=st.integers(1, 6),
)
def test_the_beam_equals_its_rules_in_plain_python(
    seed: int, size: int, vocab: int, penalty: float, n_best: int
) -> None:
    """Also that stopping once the result is certain changes nothing."""
    table = TableStepper(vocab_size=vocab, seed=seed, sharpness=3.0, end_bias=2.0)
    n_best = min(n_best, size)
    (found,) = run(table, [3], size=size, max_length=6, length_penalty=penalty, n_best=n_best)
    expected = slow_beam(table, 3, size, 6, penalty)[:n_best]
    assert [h.tokens for h in found] == [tokens for tokens, _ in expected]
    np.testing.assert_allclose([h.score for h in found], [score for _, score in expected])


def test_a_finished_hypothesis_waits_for_a_longer_one_that_can_have_a_better_mean() -> None:
    table = TableStepper(vocab_size=3, end=0, begin=1, attends=False)
    with np.errstate(divide="ignore"):
        likely_end, go_on, end = (
            np.log(np.array(p, np.float32)) for p in ([0.6, 0, 0.4], [0, 0, 1], [1, 0, 0])
        )
    for length, log_probs in enumerate([likely_end, go_on, go_on, end]):
        table.table[(5, 1, *[2] * length)] = log_probs, np.zeros(3, np.float32)
    (short,) = run(table, [5], size=2, max_length=4, length_penalty=0.0)
    (long,) = run(table, [5], size=2, max_length=4, length_penalty=1.0)
    assert [h.tokens for h in short + long] == [(0,), (2, 2, 2, 0)]
    assert long[0].score == pytest.approx(np.log(0.4) / 4)


@few
@given(seed=seeds)
def test_a_beam_of_one_equals_greedy(seed: int) -> None:
    table = TableStepper(vocab_size=6, seed=seed, impossible=0.2, end_bias=1.0)
    names = [4, 5, 6, 7]
    by_beam = run(table, names, size=1, max_length=8)
    by_greedy = finish(greedy(table, named(names), max_length=8))
    for ours, theirs in zip(by_beam, by_greedy, strict=True):
        assert same(ours, theirs)


def test_greedy_follows_the_argmax() -> None:
    table = TableStepper(vocab_size=9, seed=3)
    ((found,),) = finish(greedy(table, named([2]), max_length=12))
    for t, token in enumerate(found.tokens):
        assert token == table.prefix_log_probs(2, found.tokens[:t]).argmax()


@few
@given(seed=seeds, groups=st.sampled_from([1, 2, 4]))
def test_batch_equals_singles(seed: int, groups: int) -> None:
    table = TableStepper(vocab_size=8, seed=seed, end_bias=1.5, sharpness=1.5, impossible=0.3)
    names = [11, 12, 13, 14, 15]
    options = BeamOptions(
        size=4, max_length=7, n_best=4, length_penalty=0.7, groups=groups, keep_tree=True
    )
    *_, batch = beam(table, named(names), options)
    assert batch.tree is not None
    steps = set()
    for i, name in enumerate(names):
        *_, single = beam(table, named([name]), options)
        assert single.tree is not None
        assert same(batch.hypotheses[i], single.hypotheses[0])
        assert batch.tree[i] == single.tree[0]
        steps.add(single.step)
    assert batch.step == max(steps)


def test_examples_settle_at_different_steps() -> None:
    """So that the test of batches above is known to drop rows on the way."""
    table = TableStepper(vocab_size=8, end_bias=1.5, sharpness=1.5)
    options = BeamOptions(size=2, max_length=30)
    steps = {list(beam(table, named([name]), options))[-1].step for name in range(10)}
    assert len(steps) > 2


@dataclass
class Tied:
    """Uniform over its tokens whatever came before; the end token is impossible."""

    vocab_size: int
    begin: int = 0
    end: int | None = 0

    def start(self, context: ContextSet) -> State:
        return np.arange(len(context))

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        log_probs = np.full((len(tokens), self.vocab_size), -np.log(self.vocab_size), np.float32)
        log_probs[:, 0] = -np.inf
        return StepResult(log_probs, None, state)

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        return np.zeros(len(rows))


@pytest.mark.parametrize("vocab_size", [4, 100, 5000])
def test_ties_go_to_the_lower_token(vocab_size: int) -> None:
    found = run(Tied(vocab_size), [0, 0], size=3, n_best=3, max_length=2)
    for hypotheses in found:
        assert [h.tokens for h in hypotheses] == [(1, 1), (1, 2), (1, 3)]


@pytest.mark.parametrize("vocab_size", [3, 63, 65, 2048, 2049, 8000])
def test_the_best_are_found_in_any_size_of_vocabulary(vocab_size: int) -> None:
    table = TableStepper(vocab_size=vocab_size, seed=vocab_size, end=None)
    (found,) = run(table, [5], size=3, n_best=3, max_length=1)
    log_probs = table.prefix_log_probs(5, ())
    best = np.argsort(-log_probs, kind="stable")[:3]
    assert [h.tokens for h in found] == [(token,) for token in best]
    assert [h.score for h in found] == [float(log_probs[token]) for token in best]


@few
@given(seed=seeds, groups=st.sampled_from([1, 3]), penalty=st.sampled_from([0.0, 1.0]))
def test_rescoring_gives_the_same_log_probs_and_attention(
    seed: int, groups: int, penalty: float
) -> None:
    table = TableStepper(vocab_size=7, seed=seed, end_bias=1.0)
    names = [1, 2, 3]
    found = run(table, names, size=6, n_best=6, max_length=6, groups=groups, length_penalty=penalty)
    for h in itertools.chain(*found):
        assert h.score == pytest.approx(h.log_prob / len(h.tokens) ** penalty)
    drawn = finish(sample(table, named(names), max_length=6, samples=4, top_k=5, temperature=0.7))
    for name, hypotheses in zip(names * 2, found + drawn, strict=True):
        again = rescore(table, named([name] * len(hypotheses)), [h.tokens for h in hypotheses])
        for ours, forced in zip(hypotheses, again, strict=True):
            assert np.array_equal(ours.log_probs, forced.log_probs)
            assert np.array_equal(ours.attention, forced.attention)
            assert ours.finished == forced.finished == (ours.tokens[-1] == table.end)
            for t in range(len(ours.tokens)):  # and straight from the table
                assert ours.attention is not None
                row = table.prefix_attention(name, ours.tokens[:t])
                assert np.array_equal(ours.attention[t], row)
                log_prob = table.prefix_log_probs(name, ours.tokens[:t])[ours.tokens[t]]
                assert ours.log_probs[t] == log_prob


def test_rescore_takes_sequences_of_different_lengths_and_none() -> None:
    table = TableStepper(attends=False)
    found = rescore(table, named([1, 2, 3]), [[2, 3, 0], [], [4]])
    assert [h.finished for h in found] == [True, False, False]
    assert [len(h.log_probs) for h in found] == [3, 0, 1]
    assert found[2].score == table.prefix_log_probs(3, ())[4]
    assert found[0].attention is None


def test_without_an_end_the_best_partial_hypotheses_come_back() -> None:
    never = TableStepper(end_bias=-np.inf, seed=1)
    (found,) = run(never, [1], size=3, n_best=3, max_length=4)
    assert len(found) == 3
    assert not any(h.finished for h in found)
    assert all(len(h.tokens) == 4 for h in found)
    endless = TableStepper(end=None, seed=1)
    (found,) = run(endless, [1], size=700, n_best=5, max_length=4)
    expected = enumerate_all(endless, 1, max_length=4, penalty=0.0)[:5]
    assert [h.tokens for h in found] == [tokens for _, _, tokens in expected]
    ((text,),) = finish(sample(endless, named([1]), max_length=50))
    assert len(text.tokens) == 50
    assert not text.finished


def test_finished_hypotheses_come_before_partial_ones() -> None:
    table = TableStepper(vocab_size=6, seed=5, end_bias=-1.5)
    mixed = 0
    for name in range(20):
        (found,) = run(table, [name], size=4, n_best=4, max_length=5)
        flags = [h.finished for h in found]
        assert flags == sorted(flags, reverse=True)
        mixed += 0 < sum(flags) < 4
    assert mixed > 3


@pytest.mark.parametrize("max_length", [1, 3, 9])
def test_no_output_is_longer_than_max_length(max_length: int) -> None:
    table = TableStepper(vocab_size=5, seed=2, end_bias=3.0)
    names = list(range(8))
    searches = [
        beam(table, named(names), BeamOptions(size=3, n_best=3, max_length=max_length)),
        greedy(table, named(names), max_length=max_length),
        sample(table, named(names), samples=3, max_length=max_length),
    ]
    for search in searches:
        for hypotheses in finish(search):
            for h in hypotheses:
                assert len(h.tokens) <= max_length
                assert 0 not in h.tokens[:-1]
                assert h.finished or len(h.tokens) == max_length


def test_where_nothing_can_follow_the_result_is_what_was_written() -> None:
    impossible = Tied(vocab_size=1)
    for search in (
        beam(impossible, named([0]), BeamOptions(max_length=3)),
        greedy(impossible, named([0]), max_length=3),
    ):
        ((nothing,),) = finish(search)
        assert nothing.tokens == ()
        assert not nothing.finished


def test_impossible_candidates_never_appear() -> None:
    table = TableStepper(vocab_size=5, seed=8, impossible=0.7)
    found = run(table, list(range(10)), size=8, n_best=8, max_length=4)
    drawn = finish(sample(table, named(range(10)), max_length=4, samples=8))
    for hypotheses in found + drawn:
        assert hypotheses
        assert all(np.isfinite(h.log_probs).all() for h in hypotheses)


@dataclass
class Broken(Tied):
    """NaN for one row of the second step."""

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        result = super().step(state, tokens)
        if (tokens != self.begin).all():
            result.log_probs[-1, -1] = np.nan
        return result


def test_nan_from_a_model_is_an_error_that_says_so() -> None:
    for search in (
        beam(Broken(4), named([0, 0]), BeamOptions(max_length=3)),
        greedy(Broken(4), named([0, 0]), max_length=3),
        sample(Broken(4), named([0, 0]), max_length=3),
    ):
        with pytest.raises(UserError, match="NaN"):
            finish(search)


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 0}, {"n_best": 6}, {"n_best": 0}, {"groups": 2}, {"groups": 0},
        {"max_length": 0}, {"length_penalty": -1.0}, {"diversity": -0.5},
        {"length_penalty": float("nan")},
    ],
)  # fmt: skip
def test_beam_options_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        BeamOptions(**{"max_length": 10} | wrong)


def test_an_empty_batch_gives_an_empty_list() -> None:
    assert run(TableStepper(), [], max_length=5) == []
    assert finish(greedy(TableStepper(), named([]), max_length=5)) == []


# ---- diverse groups ----------------------------------------------------------------------------


@few
@given(
    seed=seeds,
    diversity=st.sampled_from([0.0, 0.5, 3.0]),
    end_bias=st.sampled_from([1.0, -1.5]),
)
@example(seed=348, diversity=0.5, end_bias=-1.5)  # other groups' partial ones score better
def test_the_first_group_equals_the_plain_beam_of_its_size(
    seed: int, diversity: float, end_bias: float
) -> None:
    table = TableStepper(vocab_size=7, seed=seed, end_bias=end_bias)
    (plain,) = run(table, [1], size=2, n_best=2, max_length=6)
    (diverse,) = run(table, [1], size=6, n_best=6, max_length=6, groups=3, diversity=diversity)
    by_tokens = {h.tokens: h for h in diverse}
    assert same(plain, [by_tokens[h.tokens] for h in plain])
    if diversity == 0:  # then every group is that beam, and each hypothesis comes back once
        assert set(by_tokens) == {h.tokens for h in plain}
    assert len(by_tokens) == len(diverse)


def test_diversity_gives_more_first_tokens() -> None:
    table = TableStepper(vocab_size=10, seed=4, sharpness=2.0, end=None)
    names = list(range(20))

    def first_tokens(diversity: float) -> float:
        found = run(table, names, size=6, n_best=6, max_length=5, groups=6, diversity=diversity)
        return float(np.mean([len({h.tokens[0] for h in example}) for example in found]))

    assert first_tokens(0.0) == 1
    assert 1 < first_tokens(0.7) < first_tokens(100.0)
    assert first_tokens(100.0) == 6


def test_a_later_group_pays_for_tokens_already_used() -> None:
    table = TableStepper(vocab_size=6, seed=6, end=None)
    (found,) = run(table, [1], size=3, n_best=3, max_length=1, groups=3, diversity=0.4)
    log_probs, uses, expected = table.prefix_log_probs(1, ()), np.zeros(6), set()
    for _ in range(3):
        token = int((log_probs - np.float32(0.4) * uses).argmax())
        uses[token] += 1
        expected.add(((token,), float(log_probs[token])))
    assert {(h.tokens, h.score) for h in found} == expected


# ---- snapshots and the tree --------------------------------------------------------------------


def test_snapshots_come_at_every_step_and_can_be_read_late() -> None:
    table = TableStepper(vocab_size=6, seed=1, end_bias=0.5)
    names = [1, 2, 3]
    for search in (
        lambda: beam(table, named(names), BeamOptions(size=3, n_best=3, max_length=6)),
        lambda: sample(table, named(names), samples=3, max_length=6),
    ):
        at_once = [(s.step, s.done, s.hypotheses) for s in search()]
        late = list(search())
        assert [s.step for s in late] == list(range(1, len(late) + 1))
        assert [s.done for s in late] == [False] * (len(late) - 1) + [True]
        for (step, _, hypotheses), snapshot in zip(at_once, late, strict=True):
            for ours, theirs in zip(hypotheses, snapshot.hypotheses, strict=True):
                assert same(ours, theirs)
                assert all(len(h.tokens) == step or h.finished for h in ours)
        assert late[-1].tree is None


def test_a_search_under_way_ranks_finished_and_partial_together() -> None:
    table = TableStepper(vocab_size=6, seed=1, end_bias=1.0)
    first = next(beam(table, named([2]), BeamOptions(size=4, n_best=4, max_length=6)))
    log_probs = table.prefix_log_probs(2, ())
    assert not first.done
    assert [h.tokens[0] for h in first.hypotheses[0]] == list(np.argsort(-log_probs)[:4])


@few
@given(seed=seeds, groups=st.sampled_from([1, 2]))
def test_the_tree_holds_exactly_the_paths_of_the_hypotheses(seed: int, groups: int) -> None:
    table = TableStepper(vocab_size=7, seed=seed, end_bias=1.0)
    options = BeamOptions(
        size=4, n_best=4, max_length=5, groups=groups, length_penalty=1.0, keep_tree=True
    )
    *_, last = beam(table, named([1, 2]), options)
    assert last.tree is not None
    for name, nodes, hypotheses in zip([1, 2], last.tree, last.hypotheses, strict=True):
        json.dumps([vars(node) for node in nodes])
        paths: list[tuple[int, ...]] = []
        for i, node in enumerate(nodes):
            before = () if node.parent is None else paths[node.parent]
            paths.append((*before, node.token))
            assert node.id == i
            assert len(paths[-1]) == node.step
            assert node.parent is None or nodes[node.parent].kept
            assert node.log_prob == table.prefix_log_probs(name, before)[node.token]
            assert node.score == pytest.approx(rescore(table, named([name]), [paths[-1]])[0].score)
            assert not (node.kept and node.finished)
            assert not node.finished or node.token == table.end
        leaf_steps = max(node.step for node in nodes)
        ended = {p for p, node in zip(paths, nodes, strict=True) if node.finished}
        open_ = {p for p, n in zip(paths, nodes, strict=True) if n.kept and n.step == leaf_steps}
        assert {h.tokens for h in hypotheses if h.finished} <= ended
        assert {h.tokens for h in hypotheses if not h.finished} <= open_
        per_step = [sum(n.step == step for n in nodes) for step in range(1, leaf_steps + 1)]
        assert max(per_step) <= 2 * options.size
        if groups == 1 and len(ended) <= 4:  # nothing was pushed out of the finished ones
            assert {h.tokens for h in hypotheses if h.finished} == ended


# ---- sampling ----------------------------------------------------------------------------------


def frequencies(table: Stepper, count: int, **options: Any) -> NDArray[np.float64]:
    (drawn,) = finish(sample(table, named([1]), max_length=1, samples=count, **options))
    return np.bincount([h.tokens[0] for h in drawn], minlength=table.vocab_size) / count


@pytest.mark.parametrize(
    "options",
    [
        {}, {"temperature": 0.5}, {"temperature": 2.0}, {"top_k": 3}, {"top_p": 0.6},
        {"temperature": 1.5, "top_k": 4, "top_p": 0.8}, {"top_k": 1}, {"top_p": 1e-9},
    ],
)  # fmt: skip
def test_frequencies_match_the_probabilities(options: dict[str, Any]) -> None:
    table = TableStepper(vocab_size=6, seed=12)
    p = np.exp(table.prefix_log_probs(1, ()).astype(float) / options.get("temperature", 1.0))
    p /= p.sum()
    kept: list[int] = []  # the definitions, one token at a time
    ranking = sorted(range(6), key=lambda token: -p[token])[: options.get("top_k", 6)]
    mass = p[ranking].sum()
    for token in ranking:
        if kept and p[kept].sum() / mass >= options.get("top_p", 1.0):
            break
        kept.append(token)
    expected = np.zeros(6)
    expected[kept] = p[kept] / p[kept].sum()
    count = 4000
    found = frequencies(table, count, seed=3, **options)
    assert not found[expected == 0].any()
    chi_square = count * ((found - expected)[kept] ** 2 / expected[kept]).sum()
    assert chi_square < 20.5  # the 0.1 % point for 5 degrees of freedom


def test_the_nucleus_is_the_smallest_set_that_reaches_top_p() -> None:
    table = TableStepper(vocab_size=6, seed=12)
    p = np.exp(table.prefix_log_probs(1, ()).astype(float))
    ranking = np.argsort(-p)
    reached = p[ranking].cumsum()
    for size, total in enumerate(reached[:-1], start=1):
        for top_p, kept in ((total - 1e-4, size), (total + 1e-4, size + 1)):
            found = frequencies(table, 300, top_p=top_p)
            assert set(np.flatnonzero(found)) == set(ranking[:kept])


def test_whole_sequences_are_drawn_with_their_probabilities() -> None:
    table = TableStepper(vocab_size=3, seed=2)
    outputs = {tokens: np.exp(s) for _, s, tokens in enumerate_all(table, 1, 3, 0.0)}
    count = 5000
    (drawn,) = finish(sample(table, named([1]), max_length=3, samples=count, seed=1))
    found = dict.fromkeys(outputs, 0)
    for h in drawn:
        found[h.tokens] += 1
    chi_square = sum((found[t] - count * p) ** 2 / (count * p) for t, p in outputs.items())
    assert len(outputs) == 15
    assert chi_square < 36.2  # the 0.1 % point for 14 degrees of freedom


def test_draws_depend_only_on_seed_and_index() -> None:
    table = TableStepper(vocab_size=8, seed=3, end_bias=0.5)
    options: dict[str, Any] = {"max_length": 12, "samples": 3, "seed": 5}
    batch = finish(sample(table, named([21, 22, 23]), **options))
    for i, name in enumerate([21, 22, 23]):
        (single,) = finish(sample(table, named([name]), indices=[i], **options))
        assert same(batch[i], single)
    fewer = finish(sample(table, named([21, 22, 23]), **options | {"samples": 1, "max_length": 30}))
    assert [e[0].tokens[:12] for e in fewer] == [e[0].tokens for e in batch]
    other = finish(sample(table, named([21, 22, 23]), **options | {"seed": 6}))
    assert [[h.tokens for h in e] for e in other] != [[h.tokens for h in e] for e in batch]
    twice = finish(sample(table, named([21, 21]), **options))
    assert [h.tokens for h in twice[0]] != [h.tokens for h in twice[1]]


def test_temperature_zero_and_top_one_are_greedy() -> None:
    table = TableStepper(vocab_size=8, seed=3)
    expected = finish(greedy(table, named([1, 2]), max_length=9))
    for options in ({"temperature": 0.0}, {"top_k": 1}, {"temperature": 1e-6}):
        found = finish(sample(table, named([1, 2]), max_length=9, **options))
        assert all(same(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    "wrong",
    [{"temperature": -1}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.1}, {"samples": 0},
     {"seed": -1}, {"max_length": 0}, {"indices": [1, 2]}],
)  # fmt: skip
def test_sampling_options_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        finish(sample(TableStepper(), named([1]), **{"max_length": 3} | wrong))


# ---- steppers that give their likeliest tokens --------------------------------------------------


@few
@given(
    seed=seeds,
    vocab=st.sampled_from([5, 11, 40]),
    size=st.integers(1, 6),
    end=st.sampled_from([0, None]),
    impossible=st.sampled_from([0.0, 0.7]),
    others=st.sampled_from([{}, {"groups": 2, "size": 4}]),
)
def test_the_likeliest_tokens_are_all_that_a_beam_needs(
    seed: int, vocab: int, size: int, end: int | None, impossible: float, others: dict[str, Any]
) -> None:
    table = {"seed": seed, "vocab_size": vocab, "end": end, "impossible": impossible}
    options = {"size": size, "max_length": 6, "length_penalty": 1.0, **others}
    options["n_best"] = options["size"]
    found = run(LeadingTable(**table, end_bias=1.0), [1, 2, 3], **options)
    wanted = run(TableStepper(**table, end_bias=1.0), [1, 2, 3], **options)
    assert all(same(*both) for both in zip(found, wanted, strict=True))


@pytest.mark.parametrize("examples", [1, 7])
@pytest.mark.parametrize("vocab", [700, 1003])
def test_the_best_of_many_values_are_those_of_a_full_sort(examples: int, vocab: int) -> None:
    rng = np.random.default_rng(vocab)
    rows, count = 4, 10
    log_probs = -rng.integers(0, 90, (examples, rows, vocab)).astype(np.float32)  # full of ties
    log_probs[rng.random(log_probs.shape) < 0.3] = -np.inf
    scores = -rng.integers(0, 9, (examples, rows)).astype(np.float64)
    scores[:, 1] = -np.inf
    totals, places = search_candidates.best(log_probs, scores, count)
    everything = (log_probs + scores[..., None]).reshape(examples, -1)
    order = np.argsort(-everything, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(totals, np.take_along_axis(everything, order, axis=1))

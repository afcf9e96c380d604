"""Naming: the word that an encoder is sure of is likelier until it is written, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sightline.config import SearchConfig
from sightline.data.vocabulary import SPECIALS, Vocabulary
from sightline.search import BeamOptions, beam, finish, rescore
from sightline.search.constraints import Banned, constrain
from sightline.search.naming import Naming
from sightline.tasks.caption.parts import CaptionCodec
from sightline.types import ContextSet
from table_stepper import LeadingTable, TableStepper, named

BONUS = 2.0
WORDS = [3, 0, 2]  # of the examples; 0: none


def sure_of(words: list[int], sure: float = 0.9) -> ContextSet:
    """Two positions per example: one that stands for nothing, and one for its word."""
    tokens = np.array([[0, word] for word in words])
    certainty = np.array([[0.0, sure if word else 0.0] for word in words], np.float32)
    context = named([11, 12, 13][: len(words)])
    return replace(context, tokens=tokens, sure=certainty)


def tilted(log_probs: np.ndarray, word: int, written: tuple[int, ...]) -> np.ndarray:
    """p'(v) ∝ p(v) e^(bonus · [v is the word]), while the word is not written."""
    if not word or word in written:
        return log_probs
    p = np.exp(log_probs.astype(np.float64))
    p[word] *= np.exp(BONUS)
    return np.log(p / p.sum())


def test_every_step_is_the_tilted_distribution_until_the_word_is_written():
    plain, sequences = TableStepper(), [[4, 3, 2, 4, 0], [3, 2, 0], [4, 2, 2, 0]]
    naming = Naming(plain, BONUS, least=0.5)
    got = rescore(naming, sure_of(WORDS), sequences)
    for number, (hypothesis, tokens) in enumerate(zip(got, sequences, strict=True)):
        key: tuple[int, ...] = ([11, 12, 13][number], plain.begin)
        for t, token in enumerate(tokens):
            expected = tilted(plain.look_up(key)[0], WORDS[number], tuple(tokens[:t]))
            assert hypothesis.log_probs[t] == pytest.approx(expected[token], abs=1e-5)
            assert np.exp(expected).sum() == pytest.approx(1, abs=1e-5)
            key = (*key, token)


@pytest.mark.parametrize("words", [[3, 2, 4], [0, 0, 0], [3, 0, 2]])
def test_a_batch_equals_its_singles_with_and_without_leading_tokens(words):
    options = BeamOptions(max_length=6, size=3, length_penalty=0.7)
    context = sure_of(words)
    together = finish(beam(Naming(TableStepper(), BONUS, 0.5), context, options))
    leading = finish(beam(Naming(LeadingTable(), BONUS, 0.5), context, options))
    for row in range(3):
        single = finish(beam(Naming(TableStepper(), BONUS, 0.5), context.select([row]), options))
        assert together[row][0].tokens == single[0][0].tokens == leading[row][0].tokens
        assert together[row][0].score == pytest.approx(single[0][0].score, abs=1e-5)
        assert together[row][0].score == pytest.approx(leading[row][0].score, abs=1e-5)


@pytest.mark.parametrize(
    "context", [sure_of(WORDS, 0.4), sure_of(WORDS).untagged(3), named([11, 12, 13])]
)
def test_an_encoder_that_is_not_sure_changes_nothing(context):
    options = BeamOptions(max_length=6, size=3)
    expected = finish(beam(TableStepper(), context, options))
    got = finish(beam(Naming(TableStepper(), BONUS, 0.5), context, options))
    assert [h[0].tokens for h in got] == [h[0].tokens for h in expected]
    assert [h[0].score for h in got] == [h[0].score for h in expected]


def test_banned_tokens_are_left_out_before_the_odds_are_raised():
    stepper = constrain(Naming(TableStepper(), BONUS, 0.5), Banned([4]))
    result = stepper.step(stepper.start(sure_of(WORDS)), np.ones(3, np.int64))
    assert np.exp(result.log_probs).sum(1) == pytest.approx(np.ones(3), abs=1e-5)
    assert (result.log_probs[:, 4] == -np.inf).all()


def test_each_word_has_its_own_certainty():
    least = np.full(5, 0.5, np.float32)
    least[WORDS[0]] = np.inf
    options = BeamOptions(max_length=6, size=3)
    plain = finish(beam(TableStepper(), sure_of(WORDS), options))
    alike = finish(beam(Naming(TableStepper(), BONUS, 0.5), sure_of(WORDS), options))
    got = finish(beam(Naming(TableStepper(), BONUS, least), sure_of(WORDS), options))
    for row, word in enumerate(WORDS):
        expected = plain if word == WORDS[0] else alike
        assert got[row][0].score == expected[row][0].score


def test_things_need_another_certainty_than_animals_and_common_words_are_never_named():
    vocab = Vocabulary("word", [*SPECIALS, "dog", "wolf", "piano", "a"])
    search = SearchConfig(sure=0.2, sure_of_things=0.7, common=5)
    least = dict(zip(vocab.tokens, CaptionCodec(vocab, search).sure_from, strict=True))
    assert least["wolf"] == pytest.approx(0.2)
    assert least["piano"] == pytest.approx(0.7)
    assert least["dog"] == np.inf

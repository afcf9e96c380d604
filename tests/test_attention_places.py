"""The benchmark of where attention looks: its measures, on models that look where we know."""

from __future__ import annotations

import importlib
import itertools
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import sightline
from sightline.config import SearchConfig
from sightline.data.vocabulary import BEGIN, END, SPECIALS, Vocabulary
from sightline.media.image import read_image
from sightline.media.preprocess import ImageSpec
from sightline.runtime.describer import Describer
from sightline.search.steppers import StepResult
from sightline.tasks.caption.parts import CaptionCodec, PictureReader
from sightline.tasks.caption.recipe import CaptionRecipe
from sightline.types import ContextSet, Inputs

RED, BLUE = (255, 0, 0), (0, 0, 255)
VOCAB = Vocabulary("word", (*SPECIALS, "a", "red", "blue", "dog", "bike"))
GRID = 4
SPEC = ImageSpec(16, "squeeze", scale=1 / 255)


@pytest.fixture(scope="module")
def places() -> ModuleType:
    return importlib.import_module("benchmarks.attention_places")


class Colours:
    """An encoder that gives each cell's colour."""

    def encode(self, inputs: Inputs) -> ContextSet:
        pixels = inputs["pictures"].values
        cells = pixels.reshape(-1, 3, GRID, 16 // GRID, GRID, 16 // GRID).mean(axis=(3, 5))
        values = cells.reshape(-1, 3, GRID * GRID).transpose(0, 2, 1)
        return ContextSet(values, np.ones(values.shape[:2], dtype=bool))


@dataclass(frozen=True)
class Painter:
    """Writes "a red dog" or "a blue bike" after its first cell, and after a colour looks at …"""

    looks_at: Literal["that colour", "the other colour", "the first cell"]
    vocab_size: int = len(VOCAB)
    begin: int = BEGIN
    end: int | None = END

    def start(self, context: ContextSet) -> Any:
        return context.values  # (B, M, 3)

    def select(self, state: Any, rows: NDArray[np.int64]) -> Any:
        return state[rows]

    def step(self, state: Any, tokens: NDArray[np.int64]) -> StepResult:
        attention = np.zeros(state.shape[:2], np.float32)
        log_probs = np.full((len(state), self.vocab_size), -50, np.float32)
        for row, token in enumerate(tokens):
            first = "red" if state[row, 0, 0] > state[row, 0, 2] else "blue"
            word = VOCAB.tokens[token]
            follows = {"a": first, "red": "dog", "blue": "bike", "<begin>": "a"}.get(word)
            log_probs[row, END if follows is None else VOCAB.ids[follows]] = 0
            colour = {"red": 0, "blue": 2}.get(word)
            if colour is None or self.looks_at == "the first cell":
                attention[row, 0] = 1
            else:
                channel = colour if self.looks_at == "that colour" else 2 - colour
                attention[row] = state[row, :, channel] + 1e-3
                attention[row] /= attention[row].sum()
        return StepResult(log_probs, attention, state)


def painter(looks_at: Any) -> Describer:
    reader, codec = PictureReader(SPEC, (GRID, GRID)), CaptionCodec(VOCAB, SearchConfig())
    recipe = CaptionRecipe(manifest="")
    return Describer("caption", recipe, reader, codec, Painter(looks_at), Colours())


def plain(colour: tuple[int, int, int]) -> NDArray[np.uint8]:
    return np.full((30, 40, 3), colour, np.uint8)


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize(
    ("looks_at", "given", "written"),
    # by itself it writes of the half that has the first cell, wherever it looks
    [("that colour", 1.0, 1.0), ("the other colour", 0.0, 0.0), ("the first cell", 0.5, 1.0)],
)
def test_halves_tell_a_model_that_looks_right_from_others(
    places: ModuleType, stacked: bool, looks_at: str, given: float, written: float
) -> None:
    words, captions = ({"dog"}, {"bike"}), ("a red dog", "a blue bike")
    pairs = [places.Pair((plain(RED), plain(BLUE)), words, captions, stacked)] * 3
    captioner = places.encoded(painter(looks_at), places.both_orders(pairs))
    of_given = places.look_while_given(captioner, pairs)
    of_written = places.look_while_writing(captioner, pairs)
    for results, right in ((of_given, given), (of_written, written)):
        assert sorted(result.word for result in results) == ["bike"] * 3 + ["dog"] * 3
        assert places.right_side(results) == (right, right, right)


def test_naming_both_cancels_a_place_that_is_always_looked_at(places: ModuleType) -> None:
    def caption(row: int, first: float, second: float) -> list[Any]:
        return [
            places.HalfResult(row // 2, row, 0, "dog", first),
            places.HalfResult(row // 2, row, 1, "bike", second),
        ]

    results = [*caption(0, 0.9, 0.1), *caption(1, 0.6, 0.5), places.HalfResult(1, 2, 0, "dog", 1.0)]
    # always the first's half; a little more for its own word; and one that names only one
    assert places.both_named(results) == pytest.approx([0.0, 0.1])


def test_a_word_belongs_to_a_picture_if_its_kind_is_not_in_the_other(places: ModuleType) -> None:
    mine = ["A dog in the snow .", "Two dogs run .", "A brown dog"]
    assert places.own_words(mine, ["A man on a bike ."]) == {"dog", "dogs"}  # snow only once
    assert places.own_words(mine, ["A puppy ."]) == set()
    assert places.own_words(["waves", "a wave"], ["people on the beach"]) == set()


def test_mass_inside_a_box_counts_cells_by_their_part(places: ModuleType) -> None:
    rng = np.random.default_rng(2)
    weights = rng.random((3, 5))
    fine = np.kron(weights, np.ones((20, 20))) / 400  # 60 x 100 points
    for x, y, width, height in itertools.product((0, 0.15), (0.1, 0.3), (0.35, 0.8), (0.05, 0.7)):
        rows = slice(round(60 * y), round(60 * (y + height)))
        columns = slice(round(100 * x), round(100 * (x + width)))
        exact = fine[rows, columns].sum()
        assert places.inside(weights, (x, y, width, height)) == pytest.approx(exact)
    anywhere = places.anywhere(weights, (0.0, 0.0, 0.4, 0.5)).reshape(places.STEPS, places.STEPS)
    assert anywhere[0, 0] == pytest.approx(places.inside(weights, (0.0, 0.0, 0.4, 0.5)))
    assert anywhere[-1, 0] == pytest.approx(places.inside(weights, (0.0, 0.5, 0.4, 0.5)))
    assert anywhere[20, 20] == pytest.approx(places.inside(weights, (0.3, 0.25, 0.4, 0.5)))


def test_the_permutation_test_sees_what_is_there_and_nothing_else(places: ModuleType) -> None:
    def results_of(box: tuple[float, float, float, float]) -> list[Any]:
        results = []
        for seed in range(8):
            weights = np.random.default_rng(seed).random((9, 9))
            weights[2:5, 3:6] += 3
            weights /= weights.sum()
            mass, chance = places.inside(weights, box), places.anywhere(weights, box)
            results.append(places.BoxResult("", "", box[2] * box[3], mass, 0.0, chance))
        return results

    assert places.permutation_p(results_of((1 / 3, 2 / 9, 1 / 3, 1 / 3)), 2_000) < 0.001
    assert places.permutation_p(results_of((0, 2 / 3, 1 / 3, 1 / 3)), 2_000) > 0.95
    assert places.sign_p(21, 23) == pytest.approx((253 + 23 + 1) / 2**23)


@pytest.mark.parametrize(
    ("spec", "box", "expected"),
    [
        (SPEC, (0.1, 0.2, 0.3, 0.4), (0.1, 0.2, 0.3, 0.4)),
        (ImageSpec(16, "crop"), (0.25, 0.0, 0.25, 0.5), (0, 0, 0.5, 0.5)),  # 175 × 175 pixels
    ],
)
def test_boxes_are_of_what_the_encoder_sees(
    places: ModuleType, spec: ImageSpec, box: Any, expected: Any
) -> None:
    picture = np.zeros((200, 400, 3), np.uint8)
    (layout,) = PictureReader(spec, (GRID, GRID)).read(picture)[0].layouts
    assert layout is not None
    assert places.as_seen(box, layout.box) == pytest.approx(expected)


def test_what_is_given_looks_as_what_is_written(places: ModuleType, shapes: Any) -> None:
    captioner = sightline.load(shapes[0] / "run")
    pictures = [read_image(shapes[0] / f"{number}.png") for number in (84, 85, 90)]
    written = captioner.describe(pictures, beam=1)
    texts = [description.text for description in written]
    given = places.given(places.encoded(captioner, pictures), texts)
    for one, other in zip(given, written, strict=True):
        assert one.tokens == other.tokens
        np.testing.assert_allclose(one.attention, other.attention, atol=2e-3)  # half precision
        assert sum(w.sum() for _, w in places.maps_of(one)) == pytest.approx(len(one.tokens))

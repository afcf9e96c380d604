"""Which captions count as naming an animal in `benchmarks.naming`."""

import pytest
from benchmarks.naming import names_it


@pytest.mark.parametrize(
    ("caption", "animal", "right"),
    [
        ("a wolf in the snow", "wolf", True),
        ("two wolves in the snow", "wolf", True),
        ("a dog in the snow", "wolf", False),
        ("a gorilla sits", "ape", True),
        ("a catamaran", "cat", False),
        ("a herd of cows", "cow", True),
    ],
)
def test_a_caption_names_an_animal_by_its_word_plural_or_kind(caption, animal, right):
    assert names_it(caption, animal) is right

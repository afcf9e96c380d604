"""Captions write no content word twice, unless they are told that they may."""

import numpy as np
import pytest

import sightline
from sightline import config
from sightline.config import SearchConfig
from sightline.data.vocabulary import SPECIALS, Vocabulary
from sightline.runtime.codec import Codec
from sightline.tasks.caption.recipe import CaptionRecipe
from small_models import pictures, save_captioner


@pytest.fixture(scope="module")
def captioner(tmp_path_factory):
    return sightline.load(save_captioner(tmp_path_factory.mktemp("model") / "captioner"))


def repeated(description):
    content = {"dog", "cat", "runs", "sits", "red", "grass", "sofa", "big"}
    words = [word for word in description.tokens if word in content]
    return len(set(words)) < len(words)


def test_content_words_are_those_that_are_no_function_words():
    codec = Codec(Vocabulary("word", [*SPECIALS, "a", "dog", "on", "the", "grass"]), SearchConfig())
    assert [codec.vocab.tokens[i] for i in codec.content_words] == ["dog", "grass"]
    a, dog, on, _, grass = range(len(SPECIALS), len(codec.vocab))
    assert not codec.repeats([a, dog, on, a, grass])
    assert codec.repeats([a, dog, on, a, dog])
    assert not codec.repeats([])


def test_no_content_word_is_written_twice(captioner):
    photos = list(pictures(12))
    free = captioner.describe(photos, words_once=False, n_best=3)
    once = captioner.describe(photos, words_once=True, n_best=3)
    assert any(repeated(each) for d in free for each in (d, *d.alternatives))
    assert not any(repeated(each) for d in once for each in (d, *d.alternatives))
    same = [(a, b) for a, b in zip(free, once, strict=True) if not repeated(a)]
    for without, with_constraint in same:  # a caption that was allowed is still the best
        assert with_constraint.text == without.text
        assert with_constraint.log_probs == pytest.approx(without.log_probs, abs=1e-6)


def test_a_batch_equals_its_singles(captioner):
    photos = list(pictures(5))
    together = captioner.describe(photos, words_once=True)
    for photo, description in zip(photos, together, strict=True):
        alone = captioner.describe(photo, words_once=True)
        assert alone.text == description.text
        assert np.allclose(alone.log_probs, description.log_probs, atol=1e-5)


def test_a_prefix_that_repeats_a_word_is_kept(captioner):
    photo = next(iter(pictures(1)))
    description = captioner.describe(photo, prefix="a dog on a dog", words_once=True)
    assert description.text.startswith("a dog on a dog")


def test_groups_of_a_beam_differ(captioner):
    photo = next(iter(pictures(1)))
    plain = captioner.describe(photo, beam=4, n_best=4)
    diverse = captioner.describe(photo, beam=4, groups=4, n_best=4)
    assert [d.text for d in plain.alternatives] != [d.text for d in diverse.alternatives]


def test_a_search_in_groups_is_streamed(captioner):
    """Groups may begin with the same words; the best path is found among them."""
    for photo in pictures(4):
        *steps, last = captioner.stream(photo, beam=4, groups=4, n_best=4)
        found = captioner.describe(photo, beam=4, groups=4, n_best=4)
        assert last.text == found.text
        nodes = {node.id: node for step in steps for node in step.nodes}
        for step in steps:
            words, at = [], step.best
            while at is not None:
                words.append(nodes[at].token)
                at = nodes[at].parent
            assert words[::-1][: len(step.tokens)] == list(step.tokens)


def test_the_command_allows_repeats_and_diverse_beams(run_cli, tmp_path):
    from sightline.samples import samples

    photo = str(samples()[4].path)
    once = run_cli("describe", photo, cwd=tmp_path).stdout
    free = run_cli("describe", photo, "--repeats", cwd=tmp_path).stdout
    assert once != free  # "a man is taking a picture on a picture"
    groups = ("--beam", "6", "--groups", "3", "--n-best", "3")
    diverse = run_cli("describe", photo, *groups, cwd=tmp_path).stdout
    assert len(set(diverse.splitlines())) == 3


def test_recipes_of_captioners_have_it_unless_they_say_otherwise():
    recipe = config.parse_text("manifest: a.jsonl\nsearch: {beam: 3}", CaptionRecipe)
    assert recipe.search.words_once

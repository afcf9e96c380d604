"""Sentences ↔ tokens: exact in any script, with words that alignments can count."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.config import VocabularyConfig
from sightline.data.sentences import (
    Sentences,
    clean,
    mark_words,
    sentence_starts,
    unmark_words,
)
from sightline.media.text import read_lines

TEXTS = [
    "Ein Hund, der „schläft“ (im Gras).",
    "l'homme-là a 3.5 km !",
    "你好，世界。これは test です",
    "مرحبا، بالعالم؟",
    "नमस्ते दुनिया।",
    "e\u0301te\u0301 😀👍🏽 zero\u200dwidth",
]


@pytest.mark.parametrize("text", TEXTS)
def test_words_and_signs_are_put_together_again_exactly(text):
    assert unmark_words(mark_words(clean(text))) == clean(text)


def test_signs_are_tokens_of_their_own_and_words_of_any_script_stay_whole():
    assert mark_words("Hund.") == "Hund ￭."
    assert mark_words("(im Gras)") == "(￭ im Gras ￭)"
    assert mark_words("l'homme") == "l ￭'￭ homme"
    assert mark_words("नमस्ते दुनिया") == "नमस्ते दुनिया"  # vowel signs are no letters to \w
    assert mark_words("你好") == "你 ￭好"


@given(st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_survives_every_kind_of_vocabulary(text):
    wanted = clean(text)
    for kind in ("word", "char", "bpe"):
        sentences = Sentences.learn(VocabularyConfig(kind, size=400), ["some other text"])
        tokens = sentences.split(text)
        assert bool(tokens) == bool(wanted)
        expected = wanted.replace("￭", "■") if kind == "word" else wanted
        assert sentences.text(tokens) == expected
        assert [word for word, _, _ in sentences.words(tokens)] == expected.split()


def test_clean_leaves_one_line_without_control_characters():
    assert clean(" a\tb\x00c\x1b\u2028d\x85e\r\n") == "a b c d e"
    assert clean("\ufeffe\u0301") == "é"
    assert clean("\ud800x") == "?x"


@pytest.mark.parametrize("kind", ["word", "char", "bpe"])
def test_a_long_text_is_cut_after_sentences_or_words_or_anywhere(kind):
    text = "One two three. Four five six seven eight nine ten."
    sentences = Sentences.learn(VocabularyConfig(kind, size=280), [text])
    tokens = sentences.split(text)
    for longest in (1, 2, 5, 20, 30, 1000):
        parts = sentences.parts(tokens, longest)
        assert [token for part in parts for token in part] == tokens
        assert max(map(len, parts)) <= longest
    whole = [sentences.text(part) for part in sentences.parts(tokens, len(tokens) - 1)]
    assert whole[0] == "One two three."
    assert sentences.parts([], 5) == []


@pytest.mark.parametrize("kind", ["word", "char", "bpe"])
def test_a_text_is_cut_into_its_sentences(kind):
    text = "A dog runs. Does a cat sleep? Yes!"
    sentences = Sentences.learn(VocabularyConfig(kind, size=300), [text])
    parts = sentences.parts(sentences.split(text), 100)
    assert [sentences.text(part) for part in parts] == [
        "A dog runs.",
        "Does a cat sleep?",
        "Yes!",
    ]
    assert [token for part in parts for token in part] == sentences.split(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Hi. How are you?", 2),
        ("Dr. Smith met J. Brown at St. Paul's. It was 5 p.m. We left.", 3),
        ("No. 5 is mine. No. I can't.", 3),
        ('"Stop!" he said. "I am tired." He sat down.', 3),
        ("hello. how are you? i am fine", 3),  # no capitals: they tell nothing
        ("It costs 3.50 euros, i.e. nothing.", 1),
        ("Wait ... what ?!", 1),
        ("You and I. We two.", 2),
        ("مرحبا. كيف حالك؟ بخير.", 3),
        ("", 0),
        ("...", 1),
    ],
)
def test_full_stops_of_titles_and_initials_end_no_sentence(text, count):
    assert len(sentence_starts(text.split())) + bool(text) == count


@pytest.mark.parametrize("language", ["en", "de", "fr", "cs"])
def test_multi30k_survives_its_vocabularies(shared_data, language):
    file = shared_data / "multi30k" / f"val.{language}.gz"
    if not file.is_file():
        pytest.skip(f"{file} is not here")
    lines = read_lines(file)
    for config in (VocabularyConfig("word", size=500), VocabularyConfig("bpe", size=600)):
        sentences = Sentences.learn(config, lines[:500])
        for line in lines:
            tokens = sentences.split(line)
            assert sentences.text(tokens) == clean(line)
            assert [word for word, _, _ in sentences.words(tokens)] == clean(line).split()

"""Vocabularies: what they keep, and that text comes back from ids as it went in."""

from __future__ import annotations

import json
import pickle
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE

from sightline.data.vocabulary import BEGIN, END, PAD, SPECIALS, UNKNOWN, Kind, Vocabulary
from sightline.errors import CheckpointError, UserError

CORPUS = [
    "the quick brown fox jumps over the lazy dog, and the dog sleeps.",
    "the fox_trot is no dance for dogs: (it is 1, 2, 3 steps)!",
    "naïve café — ein größeres Haus, ещё слово",
    "two  blanks, a\ttab and   three blanks ",
] * 5


KINDS: tuple[Kind, ...] = ("word", "char", "bpe")
BUILT = {kind: Vocabulary.build(kind, CORPUS, 400) for kind in KINDS}
bpe = BUILT["bpe"]
ALL = pytest.mark.parametrize("vocab", BUILT.values(), ids=BUILT)

# ------------------------------------------------------------------------------------ building


def test_the_most_frequent_come_first_and_ties_are_in_order() -> None:
    vocab = Vocabulary.build("word", ["b a a", "c b a d"])
    assert vocab.tokens == (*SPECIALS, "a", "b", "c", "d")
    assert [vocab.ids[t] for t in SPECIALS] == [PAD, BEGIN, END, UNKNOWN] == [0, 1, 2, 3]
    assert Vocabulary.build("char", ["bab", "c"]).tokens == (*SPECIALS, "b", "a", "c")


def test_size_counts_the_specials_and_min_count_drops_the_rare() -> None:
    texts = ["a a a b b c"]
    assert Vocabulary.build("word", texts, size=6).tokens == (*SPECIALS, "a", "b")
    assert Vocabulary.build("word", texts, min_count=2).tokens == (*SPECIALS, "a", "b")
    assert len(Vocabulary.build("char", texts, size=5)) == 5


@pytest.mark.parametrize("limits", [{"size": 4}, {"min_count": 9}])
def test_limits_that_leave_nothing_are_an_error(limits: dict[str, int]) -> None:
    with pytest.raises(UserError, match=r"within the limits .*relax them"):
        Vocabulary.build("word", ["a a a b"], **limits)


@pytest.mark.parametrize("size", [261, 270, 320, 400])
def test_a_bpe_vocabulary_never_exceeds_its_size(size: int) -> None:
    vocab = Vocabulary.build("bpe", CORPUS, size)
    assert len(vocab) <= size
    assert vocab.decode(vocab.encode(CORPUS[2])) == CORPUS[2]


def test_a_bpe_vocabulary_too_small_for_the_bytes_is_an_error() -> None:
    with pytest.raises(UserError, match="at least 261 tokens, not 100"):
        Vocabulary.build("bpe", CORPUS, 100)


def test_bpe_learns_the_same_each_time_and_min_count_bounds_merges() -> None:
    assert Vocabulary.build("bpe", CORPUS, 400) == bpe
    assert "▁the" in bpe.tokens
    assert Vocabulary.build("bpe", CORPUS, 400, min_count=1000).merges == ()


def test_bpe_learns_the_same_each_time_of_more_letters_than_it_has_room_for() -> None:
    text = ["".join(chr(0x4E00 + n) for n in range(500))]  # each as rare as the others
    learnt = {tuple(Vocabulary.build("bpe", text, 300).tokens) for _ in range(5)}
    assert len(learnt) == 1
    assert len(learnt.pop()) <= 300


# -------------------------------------------------------------------------------- text and ids


def test_words_and_characters_round_trip_and_the_unseen_is_unknown() -> None:
    words = Vocabulary.build("word", ["a cat sat"])
    assert words.decode(words.encode(" a  cat\tsat ")) == "a cat sat"
    assert words.decode(words.encode("a dog sat")) == "a <unk> sat"
    characters = Vocabulary.build("char", ["a cat sat\n"])
    assert characters.decode(characters.encode(" sat\n\ncat ")) == " sat\n\ncat "
    assert characters.encode("d") == [UNKNOWN]


@ALL
def test_control_tokens_leave_no_trace(vocab: Vocabulary) -> None:
    ids = vocab.encode("the dog")
    assert vocab.decode([BEGIN, *ids, END, PAD, PAD]) == "the dog"
    assert vocab.decode([]) == ""


@ALL
def test_text_cannot_spell_a_control_token(vocab: Vocabulary) -> None:
    ids = vocab.encode("a <end> b <pad> <begin> <unk> <0x41>")
    assert not {PAD, BEGIN, END} & set(ids)


ODD_TEXTS = [
    *("", " ", "  ", " a ", "a  b   c", "\t", "a\n\n b\r\n", "\x00\x1c", "a\u3000b\u2028c\x85d"),
    *(
        "▁",
        "▁▁ ▁a▁",
        "<0x41>",
        "<end>",
        "_a__b_",
        "é e\u0301",
        "日本語テキスト",
        "😀👩‍👩‍👧",
        "ＡＢ",
    ),
]


TEXTS = st.text(
    st.sampled_from("ab▁ \t\n_.é😀<>0x\u3000\x85") | st.characters(exclude_categories=["Cs"])
)


@pytest.mark.parametrize("text", ODD_TEXTS, ids=ascii)
def test_bpe_gives_odd_text_back(text: str) -> None:
    assert bpe.decode(bpe.encode(text)) == text


@given(TEXTS)
@example("the dog ▁ sleeps")
@settings(max_examples=200, deadline=None)
def test_bpe_gives_any_text_back(text: str) -> None:
    ids = bpe.encode(text)
    assert UNKNOWN not in ids
    assert bpe.decode(ids) == text


@ALL
@given(text=st.text(st.characters(categories=["Cs", "L", "Zs"]), max_size=20))
@settings(max_examples=40, deadline=None)
def test_half_a_surrogate_pair_does_no_harm(vocab: Vocabulary, text: str) -> None:
    vocab.decode(vocab.encode(text)).encode("utf-8", errors="surrogatepass")


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_of_broken_text_can_be_written(kind: Kind) -> None:
    vocab = Vocabulary.build(kind, ["a \ud800 b"], 300)
    assert json.loads(vocab.to_json().encode())["kind"] == kind


def test_bpe_merges_as_the_library_that_learnt_them() -> None:
    pieces = bpe.tokens[4 + 256 :]
    library = Tokenizer(BPE({piece: i for i, piece in enumerate(pieces)}, list(bpe.merges)))
    words = {word for text in CORPUS for word in text.split() if word.isalpha()}
    words |= {word[::-1] for word in words} | {"thethe", "oooo", "dogdogs"}
    for word in sorted(words):
        assert bpe.split(word) == library.encode("▁" + word).tokens


@ALL
def test_ten_thousand_words_are_encoded_in_well_under_a_second(vocab: Vocabulary) -> None:
    line = " ".join(f"{CORPUS[i % 4].split()[i % 5]}{i % 1000}" for i in range(10_000))
    began = time.process_time()
    ids = vocab.encode(line)
    encoded = time.process_time()
    vocab.word_spans(ids)
    print(f"{vocab.kind}: {encoded - began:.3f} s, spans {time.process_time() - encoded:.3f} s")
    assert time.process_time() - began < 1.0


def test_a_word_without_end_is_encoded_in_well_under_a_second() -> None:
    began = time.process_time()
    text = "abcdefghij" * 2000 + "=" * 20_000
    assert bpe.decode(bpe.encode(text)) == text
    assert time.process_time() - began < 1.0


# ---------------------------------------------------------------------------------------- spans


def check_spans(vocab: Vocabulary, ids: list[int]) -> None:
    """Each span decodes to its word, and spans are in order and apart."""
    words = vocab.decode(ids).split()
    spans = vocab.word_spans(ids)
    assert [vocab.decode(ids[start:stop]) for start, stop in spans] == words
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(start < stop for start, stop in spans)


@ALL
@pytest.mark.parametrize("text", [*CORPUS[:4], *ODD_TEXTS], ids=ascii)
def test_spans_are_the_words(vocab: Vocabulary, text: str) -> None:
    check_spans(vocab, vocab.encode(text))


@ALL
@given(text=TEXTS)
@settings(max_examples=100, deadline=None)
def test_spans_are_the_words_of_any_text(vocab: Vocabulary, text: str) -> None:
    check_spans(vocab, vocab.encode(text))


@ALL
def test_spans_leave_control_tokens_out(vocab: Vocabulary) -> None:
    ids = vocab.encode("the dog")
    inside = vocab.word_spans(ids)
    shifted = [(start + 1, stop + 1) for start, stop in inside]
    assert vocab.word_spans([BEGIN, *ids, END, PAD]) == shifted
    assert len(inside) == 2
    assert vocab.word_spans([]) == []


def test_an_unknown_word_has_a_span() -> None:
    vocab = Vocabulary.build("word", ["a b"])
    assert vocab.word_spans(vocab.encode("a zebra b")) == [(0, 1), (1, 2), (2, 3)]


# -------------------------------------------------------------------------------------- keeping


@ALL
def test_a_vocabulary_is_the_same_after_saving_and_pickling(
    vocab: Vocabulary, tmp_path: Path
) -> None:
    path = tmp_path / "vocab.json"
    path.write_text(vocab.to_json(), encoding="utf-8")
    loaded = Vocabulary.load(path)
    copied = pickle.loads(pickle.dumps(vocab))
    for other in (loaded, copied):
        assert other == vocab
        assert hash(other) == hash(vocab)
        assert other.encode("the größte 日 dog") == vocab.encode("the größte 日 dog")
    assert vocab != Vocabulary(vocab.kind, vocab.tokens[:-1], vocab.merges)


GOOD = {"kind": "char", "tokens": [*SPECIALS, "a"], "merges": []}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (json.dumps(GOOD)[:-20], "is damaged"),
        ("", "is damaged"),
        ("[]", "is damaged"),
        ("{}", "is damaged"),
        (json.dumps({**GOOD, "kind": "syllable"}), "'syllable' is not a kind of vocabulary"),
        (json.dumps({**GOOD, "tokens": ["a", "b"]}), "begins with <pad> <begin> <end> <unk>"),
        (json.dumps({**GOOD, "tokens": [*SPECIALS, "a", "a"]}), "the token 'a' occurs twice"),
        (json.dumps({**GOOD, "tokens": [*SPECIALS, 5]}), "every token must be text"),
        (json.dumps({**GOOD, "merges": [["a"]]}), "is damaged"),
    ],
)
def test_a_damaged_file_is_named(content: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "vocab.json"
    path.write_text(content)
    with pytest.raises(CheckpointError, match=reason) as caught:
        Vocabulary.load(path)
    assert str(caught.value).startswith(f"{path} is damaged")


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"vocab\.json is missing"):
        Vocabulary.load(tmp_path / "vocab.json")
    with pytest.raises(CheckpointError, match="cannot read"):
        Vocabulary.load(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\0")
    with pytest.raises(CheckpointError, match="is damaged"):
        Vocabulary.load(tmp_path / "binary")

"""Vocabularies: text ↔ token ids, by word, character or byte-pair encoding (BPE).

Ids 0 to 3 are always <pad>, <begin>, <end> and <unk>. A vocabulary is plain data
(`vocab.json`): encoding and decoding need no library, learning BPE merges needs `tokenizers`.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from sightline.errors import CheckpointError, UserError, install

PAD, BEGIN, END, UNKNOWN = 0, 1, 2, 3
SPECIALS = ("<pad>", "<begin>", "<end>", "<unk>")
Kind = Literal["word", "char", "bpe"]
VOCAB = "vocab.json"  # in a model's folder: the vocabulary of its output

SPACE = "▁"  # stands for a space inside a BPE token, so that decoding is exact
# Merges never cross a chunk: letters and digits, or punctuation, with the space before them, or one
# space. Chunks are short because merging takes time quadratic in their length.
_CHUNK = rf"{SPACE}?[^\W_]{{1,32}}|{SPACE}?(?:[^\w\s{SPACE}]|_){{1,32}}|[\s{SPACE}]"
_CHUNKS = re.compile(_CHUNK)
_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))  # for characters unseen in training
_BYTE_OF = {token: bytes([byte]) for byte, token in enumerate(_BYTES)}
_CONTINUES = frozenset(_BYTES[0x80:0xC0])  # UTF-8: inside a character, never its first byte


class Vocabulary:
    """An immutable list of tokens; create one with `Vocabulary.build` or `.load`."""

    def __init__(
        self, kind: Kind, tokens: Sequence[str], merges: Sequence[tuple[str, str]] = ()
    ) -> None:
        if kind not in get_args(Kind):
            raise ValueError(f"{kind!r} is not a kind of vocabulary")
        if tuple(tokens[:4]) != SPECIALS:
            raise ValueError(f"a vocabulary begins with {' '.join(SPECIALS)}")
        if not all(isinstance(token, str) for token in tokens):
            raise ValueError("every token must be text")
        self.kind: Kind = kind
        self.tokens = tuple(tokens)
        self.merges = tuple((left, right) for left, right in merges)
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        if len(self.ids) != len(self.tokens):
            twice = next(t for t, count in Counter(self.tokens).items() if count > 1)
            raise ValueError(f"the token {twice!r} occurs twice")
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        self._pieces = lru_cache(maxsize=50_000)(self._merge)

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.kind, self.tokens))

    def __reduce__(self) -> tuple[Any, ...]:  # the cache cannot be pickled
        return Vocabulary, (self.kind, self.tokens, self.merges)

    # -------------------------------------------------------------------------- text ↔ ids

    def split(self, text: str) -> list[str]:
        """The text as tokens, before unknown ones are replaced."""
        if self.kind == "char":
            return list(text)
        if self.kind == "word":
            return text.split()
        pieces: list[str] = []
        for part in _mark(text):  # split at the ▁ that the text itself contains
            pieces += _as_bytes(SPACE) if pieces else []
            pieces += [piece for chunk in _CHUNKS.findall(part) for piece in self._pieces(chunk)]
        return pieces

    def encode(self, text: str) -> list[int]:
        # max: a text that contains "<end>" or "<pad>" must not become the control token
        return [max(UNKNOWN, self.ids.get(token, UNKNOWN)) for token in self.split(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids without <pad>, <begin> and <end>."""
        return self.text(self.tokens[i] for i in ids)

    def text(self, tokens: Iterable[str]) -> str:
        """The same of tokens as `split` gives them, including those that are not in here."""
        control = SPECIALS[:UNKNOWN]
        text = self._join(token for token in tokens if token not in control)
        return text.removeprefix(" ") if self.kind == "bpe" else text

    def _join(self, tokens: Iterable[str]) -> str:
        if self.kind == "bpe":  # runs of byte tokens become the characters that they encode
            parts = [_BYTE_OF.get(token) or token.replace(SPACE, " ").encode() for token in tokens]
            return b"".join(parts).decode("utf-8", errors="replace")
        return (" " if self.kind == "word" else "").join(tokens)

    def word_spans(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """For each word of the decoded text, its tokens [start, stop); spaces are in no word."""
        if self.kind == "word":
            return [(i, i + 1) for i in range(len(ids)) if ids[i] >= UNKNOWN]
        spans: list[tuple[int, int]] = []
        in_word = False  # the next token may continue the last word
        for start, stop in self._characters(ids):
            text = self._join(self.tokens[i] for i in ids[start:stop] if i >= UNKNOWN)
            if not text:  # <pad>, <begin> or <end>
                continue
            if in_word and not text[0].isspace():
                spans[-1] = (spans[-1][0], stop)
            elif not text.isspace():
                spans.append((start, stop))
            in_word = not text.isspace()
        return spans

    def _characters(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """The shortest runs [start, stop) that are text: a token, or the bytes of a character."""
        tokens = [self.tokens[i] for i in ids]
        starts = [
            i
            for i, token in enumerate(tokens)
            if i == 0 or token not in _CONTINUES or tokens[i - 1] not in _BYTE_OF
        ]
        return list(itertools.pairwise([*starts, len(ids)]))

    def _merge(self, chunk: str) -> tuple[str, ...]:
        """Byte-pair encode one chunk: apply the earliest learnt merge until none applies."""
        pieces = list(chunk)
        while len(pieces) > 1:
            pairs = itertools.pairwise(pieces)
            ranked = [(self._ranks.get(pair, len(self._ranks)), i) for i, pair in enumerate(pairs)]
            rank, at = min(ranked)
            if rank == len(self._ranks):
                break
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
        return tuple(
            token
            for piece in pieces
            for token in ([piece] if piece in self.ids else _as_bytes(piece))
        )

    # -------------------------------------------------------------------- building and saving

    @staticmethod
    def build(
        kind: Kind, texts: Iterable[str], size: int = 10_000, min_count: int = 1
    ) -> Vocabulary:
        """The `size` most frequent tokens, specials included; none below `min_count` counts."""
        if kind == "bpe":
            return _learn_bpe(texts, size, min_count)
        counts: Counter[str] = Counter()
        for text in map(_valid, texts):
            counts.update(text if kind == "char" else text.split())
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        kept = [t for t in ranked if counts[t] >= min_count and t not in SPECIALS]
        kept = kept[: max(0, size - len(SPECIALS))]
        if not kept:
            limits = f"size {size}, min_count {min_count}"
            raise UserError(f"no token of the text is within the limits ({limits}); relax them")
        return Vocabulary(kind, (*SPECIALS, *kept))

    def extended(self, words: Iterable[str]) -> Vocabulary:
        """The same with further words at its end."""
        more = [word for word in words if word not in self.ids]
        return Vocabulary(self.kind, (*self.tokens, *more), self.merges)

    def to_json(self) -> str:
        content = {"kind": self.kind, "tokens": self.tokens, "merges": self.merges}
        return json.dumps(content, ensure_ascii=False)

    @staticmethod
    def load(path: Path) -> Vocabulary:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return Vocabulary(content["kind"], content["tokens"], content["merges"])
        except FileNotFoundError:
            raise CheckpointError(f"{path} is missing; the model folder is incomplete") from None
        except OSError as error:
            raise CheckpointError(f"cannot read {path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CheckpointError(f"{path} is damaged ({error}); copy the model again") from None


def _valid(text: str) -> str:
    """The text with ? for lone surrogates, which JSON can contain and UTF-8 cannot."""
    return text.encode("utf-8", errors="replace").decode()


def _mark(text: str) -> list[str]:
    """The text with ▁ before it and in place of spaces, split where it contains ▁ itself."""
    return [part.replace(" ", SPACE) for part in (" " + _valid(text)).split(SPACE)]


def _as_bytes(piece: str) -> list[str]:
    return [_BYTES[byte] for byte in piece.encode()]


def _learn_bpe(texts: Iterable[str], size: int, min_count: int) -> Vocabulary:
    try:
        from tokenizers import Regex, Tokenizer
        from tokenizers.models import BPE
        from tokenizers.pre_tokenizers import Split
        from tokenizers.trainers import BpeTrainer
    except ImportError:
        message = f"learning BPE needs `tokenizers`: {install('train')}"
        raise UserError(message) from None
    room = size - len(SPECIALS) - len(_BYTES)
    if room < 1:
        least = len(SPECIALS) + len(_BYTES) + 1
        raise UserError(f"a BPE vocabulary needs at least {least} tokens, not {size}")
    marked = [part for text in texts for part in _mark(text)]
    letters = Counter(character for part in marked for character in part)
    letters.pop(SPACE, None)
    ranked = sorted(letters, key=lambda letter: (-letters[letter], letter))
    alphabet = [SPACE, *ranked[: room - 1]]
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = Split(Regex(_CHUNK), behavior="isolated")
    trainer = BpeTrainer(
        vocab_size=room,
        min_frequency=min_count,
        # Given, because among equally rare letters the library's choice is arbitrary. ▁ is always
        # kept: it has no bytes to fall back on.
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(marked, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return Vocabulary("bpe", (*SPECIALS, *_BYTES, *pieces), merges)

"""Vocabularies: text ↔ token ids, by word, by character or by byte-pair pieces.

Ids 0 to 3 are always <pad>, <begin>, <end> and <unk>. A vocabulary is only data (`vocab.json`);
encoding and decoding need no library, learning BPE merges needs `tokenizers`.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from sightline.errors import CheckpointError, UserError

PAD, BEGIN, END, UNKNOWN = 0, 1, 2, 3
SPECIALS = ("<pad>", "<begin>", "<end>", "<unk>")
Kind = Literal["word", "char", "bpe"]

SPACE = "▁"  # stands for a blank inside a BPE piece, so that decoding is exact
_CHUNK = rf"{SPACE}?[^\W_]+|{SPACE}?(?:[^\w{SPACE}]|_)+|{SPACE}"  # merges never cross a chunk
_CHUNKS = re.compile(_CHUNK)
_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))  # for characters unseen in training


class Vocabulary:
    """A fixed list of tokens. Immutable; make one with `Vocabulary.build` or `.load`."""

    def __init__(
        self, kind: Kind, tokens: Sequence[str], merges: Sequence[tuple[str, str]] = ()
    ) -> None:
        if tuple(tokens[:4]) != SPECIALS:
            raise CheckpointError(f"a vocabulary begins with {' '.join(SPECIALS)}")
        self.kind: Kind = kind
        self.tokens = tuple(tokens)
        self.merges = tuple((left, right) for left, right in merges)
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        if len(self.ids) != len(self.tokens):
            twice = next(t for t, count in Counter(self.tokens).items() if count > 1)
            raise CheckpointError(f"the vocabulary holds the token {twice!r} twice")
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        self._pieces = lru_cache(maxsize=50_000)(self._merge)

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self.kind, self.tokens, self.merges) == (
            other.kind,
            other.tokens,
            other.merges,
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.tokens))

    # -------------------------------------------------------------------------- text ↔ ids

    def split(self, text: str) -> list[str]:
        """The text as tokens, before unknown ones are replaced."""
        if self.kind == "char":
            return list(text)
        if self.kind == "word":
            return text.split()
        pieces: list[str] = []
        for part in _mark(text):  # the text between marks that are the text's own
            pieces += _as_bytes(SPACE) if pieces else []
            pieces += [piece for chunk in _CHUNKS.findall(part) for piece in self._pieces(chunk)]
        return pieces

    def encode(self, text: str) -> list[int]:
        return [self.ids.get(token, UNKNOWN) for token in self.split(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids; <pad>, <begin> and <end> leave no trace."""
        tokens = [self.tokens[i] for i in ids if i == UNKNOWN or i >= len(SPECIALS)]
        if self.kind == "char":
            return "".join(tokens)
        if self.kind == "word":
            return " ".join(tokens)
        text = _join_bytes(tokens)
        return text[1:] if text.startswith(" ") else text

    def word_spans(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """For each word of the decoded text, its tokens [start, stop)."""
        starts = [i for i in range(len(ids)) if i == 0 or self._starts_word(ids, i)]
        spans = zip(starts, [*starts[1:], len(ids)], strict=True)
        if self.kind != "char":
            return list(spans)
        blank = [self.tokens[i].isspace() for i in ids]
        return [(start, stop) for start, stop in spans if not blank[start]]

    def _starts_word(self, ids: Sequence[int], position: int) -> bool:
        token, before = self.tokens[ids[position]], self.tokens[ids[position - 1]]
        if self.kind == "word" or token in SPECIALS or before in SPECIALS:
            return True
        if self.kind == "char":
            return token.isspace() != before.isspace() or token.isspace()
        return token.startswith(SPACE) and before != SPACE

    def _merge(self, chunk: str) -> tuple[str, ...]:
        """Byte-pair encode one chunk: apply the earliest-learnt merge until none is left."""
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

    # -------------------------------------------------------------------- making and keeping

    @staticmethod
    def build(
        kind: Kind, texts: Iterable[str], size: int = 10_000, min_count: int = 1
    ) -> Vocabulary:
        """The `size` most frequent tokens (specials included) that occur `min_count` times."""
        if kind == "bpe":
            return _learn_bpe(texts, size)
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(text if kind == "char" else text.split())
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        kept = [t for t in ranked if counts[t] >= min_count and t not in SPECIALS]
        return Vocabulary(kind, (*SPECIALS, *kept[: max(0, size - len(SPECIALS))]))

    def to_json(self) -> str:
        content = {"kind": self.kind, "tokens": self.tokens, "merges": self.merges}
        return json.dumps(content, ensure_ascii=False)

    @staticmethod
    def load(path: Path) -> Vocabulary:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return Vocabulary(content["kind"], content["tokens"], content["merges"])
        except FileNotFoundError:
            raise CheckpointError(f"{path} is missing; the model folder is not whole") from None
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path} is damaged ({error}); copy the model again") from None


def _mark(text: str) -> list[str]:
    """The text with a mark before it and in place of blanks, cut where it has marks of its own."""
    return [part.replace(" ", SPACE) for part in (" " + text).split(SPACE)]


def _as_bytes(piece: str) -> list[str]:
    return [_BYTES[byte] for byte in piece.encode("utf-8", errors="replace")]


def _join_bytes(tokens: Sequence[str]) -> str:
    """Concatenate pieces; runs of byte tokens become the characters they spell."""
    out: list[bytes] = []
    for token in tokens:
        is_byte = len(token) == 6 and token.startswith("<0x")
        out.append(bytes([int(token[3:5], 16)]) if is_byte else token.replace(SPACE, " ").encode())
    return b"".join(out).decode("utf-8", errors="replace")


def _learn_bpe(texts: Iterable[str], size: int) -> Vocabulary:
    try:
        from tokenizers import Regex, Tokenizer
        from tokenizers.models import BPE
        from tokenizers.pre_tokenizers import Split
        from tokenizers.trainers import BpeTrainer
    except ImportError:
        message = "learning BPE needs `tokenizers`: pip install 'sightline[train]'"
        raise UserError(message) from None
    room = size - len(SPECIALS) - len(_BYTES)
    if room < 1:
        least = len(SPECIALS) + len(_BYTES) + 1
        raise UserError(f"a BPE vocabulary needs at least {least} tokens, not {size}")
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = Split(Regex(_CHUNK), behavior="isolated")
    trainer = BpeTrainer(vocab_size=room, show_progress=False)
    marked = (part for text in texts for part in _mark(text))
    tokenizer.train_from_iterator(marked, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return Vocabulary("bpe", (*SPECIALS, *_BYTES, *pieces), merges)

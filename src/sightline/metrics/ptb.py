"""English text to tokens, exactly as the COCO caption evaluation does it, without Java.

The evaluation runs the Stanford PTBTokenizer (CoreNLP 3.4.1, `-preserveLines -lowerCase`) over
all captions and removes seventeen punctuation tokens. `ptb.lex` holds the tokeniser's rules;
here is what each of them does to the text it matched.

    >>> tokenize("The dog can't jump (yet), it's 2½ years old.")
    "the dog ca n't jump -lrb- yet -rrb- it 's 2 1/2 years old"
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path

from sightline.metrics.lexer import Lexer

# Tokens are lower-cased before they are compared, so the evaluation's "-LRB-" and its like never
# match and brackets stay in the text; they are left out of the set for that reason.
PUNCTUATION = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])

_LINE_ENDS = re.compile("[\n\r\v\f\u2028\u2029]")
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_SIGMA_WORD = re.compile(r"[\w'\u00ad\u2010-\u2015.-]+")

# Words of ASCII letters are tokens as they stand, but for these.
_CUTS = {
    word: (word[:3], word[3:]) for word in ("cannot", "gonna", "gotta", "lemme", "gimme", "wanna")
}
# What makes a line's pieces depend on one another: markup, control characters, digits that may go
# on after a space (telephone numbers, fractions) and, below, a dot before more text (it may end an
# abbreviation).
_ENTANGLED = re.compile(r"[<\x00-\x1f]|[0-9)] +[0-9]")
# A last word whose dot means another thing before some first words of the next line.
_LOOKS_ON = re.compile(r"(?:^|[^A-Za-z])(?:[A-Za-z]|ca|figs?|prop|nos?|art|bldg|pp|op)\. *$", re.I)

_PIECES: dict[str, tuple[str, ...]] = {}  # tokens by space-separated piece, the cache
_MOST_PIECES, _LONGEST_PIECE = 200_000, 50


def tokenize(text: str, following: str = "\n") -> str:
    """The tokens of one caption, separated by spaces.

    `following` is what comes after it, a line end and more: like the reference, the tokeniser
    looks at the next line when this one ends in "b." or "fig.".
    """
    line = _LINE_ENDS.sub(" ", text)
    if (
        not line.isascii()
        or -1 < line.find(".") < line.rstrip(" ").rfind(" ")
        or _ENTANGLED.search(line)
        or (following != "\n" and (not following or _LOOKS_ON.search(line)))
    ):
        return " ".join(_lex_line(line, following))
    tokens: list[str] = []
    for piece in line.split(" "):
        known = _PIECES.get(piece)
        tokens += _piece(piece) if known is None else known
    return " ".join(tokens)


def tokenize_lines(lines: Iterable[str]) -> list[str]:
    """The tokens of each caption of a corpus, each seen before the next as in the reference."""
    texts = list(lines)
    tokenized = [tokenize(text, f"\n{after}\n") for text, after in pairwise(texts[:-1])]
    # after the last line the file ends
    tokenized += [tokenize(text, f"\n{texts[-1]}") for text in texts[-2:-1]]
    return tokenized + [tokenize(text, "") for text in texts[-1:]]


def _piece(piece: str) -> tuple[str, ...]:
    """The tokens of an ASCII piece between two spaces."""
    if piece.isalpha():
        lower = piece.lower()
        tokens: tuple[str, ...] = _CUTS.get(lower) or (lower,)
    else:
        tokens = tuple(_lex_line(piece, "\n"))
    if len(piece) <= _LONGEST_PIECE:
        if len(_PIECES) >= _MOST_PIECES:
            _PIECES.clear()
        _PIECES[piece] = tokens
    return tokens


def _lex_line(line: str, following: str) -> list[str]:
    """The tokens of a line by the full rules, without the punctuation."""
    line = _LONE_SURROGATES.sub("\ufffd", line)  # the reference cannot read them at all
    astral = max(line, default="") > "\uffff"
    if astral:  # Java reads UTF-16: a character beyond U+FFFF is two
        line = "".join(chr(unit) for (unit,) in struct.iter_unpack("<H", line.encode("utf-16-le")))
    tokens = " ".join(_lex(line, _LINE_ENDS.sub("\n", following[:200])))
    if astral:
        tokens = tokens.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    # The evaluation strips the line and splits it at spaces only: a token may hold other blanks.
    lower = _lower_sigmas(tokens) if "\u03a3" in tokens else tokens.lower()
    words = lower.rstrip().split(" ")
    return [word for word in words if word and word not in PUNCTUATION]


def _lower_sigmas(text: str) -> str:
    """Lower case where a capital sigma is final (ς) by Java's notion of a word, not Python's."""
    letters = list(text)
    for word in _SIGMA_WORD.finditer(text):
        cased = [at for at in range(*word.span()) if text[at].lower() != text[at].upper()]
        for at in cased:
            if text[at] == "\u03a3":
                letters[at] = "\u03c2" if cased[0] < at == cased[-1] else "\u03c3"
    return "".join(letters).lower()


def _lex(line: str, context: str) -> list[str]:
    lexer, same = _lexer()
    text, end = line + context, len(line)
    scanned = text.translate(same)
    vain: set[tuple[int, int]] = set()
    tokens, at = [], 0
    while at < end:
        rule, stop = lexer.match(scanned, at, vain)
        name = lexer.rules[rule].name
        if name != "nothing":
            tokens.append(_TOKENS[name](text[at:stop]) if name in _TOKENS else name)
        at = stop - _GIVEN_BACK.get(name, 0)
    return tokens


class _Alike(dict[int, int]):
    """A character to the first one seen that every rule treats the same, to keep states small."""

    def __init__(self, lexer: Lexer) -> None:
        self._mask = lexer.automaton.mask
        self._first: dict[int, int] = {}

    def __missing__(self, code: int) -> int:
        self[code] = self._first.setdefault(self._mask(chr(code)), code)
        result: int = self[code]
        return result


@cache
def _lexer() -> tuple[Lexer, _Alike]:
    lexer = Lexer.read(Path(__file__).with_name("ptb.lex").read_text(encoding="utf-8"))
    return lexer, _Alike(lexer)


_QUOTES = str.maketrans(
    dict.fromkeys("\u0091\u2018\u201b\u2039", "`")
    | dict.fromkeys("\u0092\u2019\u203a", "'")
    | dict.fromkeys("\u0093\u201c\u00ab", "``")
    | dict.fromkeys("\u0094\u201d\u00bb", "''")
)
_FRACTIONS = {"\u00bc": "1/4", "\u00bd": "1/2", "\u00be": "3/4", "\u2153": "1/3", "\u2154": "2/3"}
_CURRENCIES = {"\u00a2": "cents", "\u00a3": "#"} | dict.fromkeys("\u0080\u00a4\u20a0\u20ac", "$")
_PARENTHESES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})
_TO_NO_BREAK = str.maketrans(" ", "\u00a0")
_AMPERSAND = re.compile("&amp;", re.IGNORECASE)


def _quoted(text: str, single: str) -> str:
    text = text.replace("&apos;", "'").replace("'", single)
    return text.replace("&quot;", '"').replace('"', 2 * single).translate(_QUOTES)


# The token that a rule makes of the matched text; of other rules it is the rule's name.
_TOKENS: dict[str, Callable[[str], str]] = {
    "token": str,
    "word": lambda text: text.replace("\u00ad", "") or "-",
    "cut 2": lambda text: text[:-2],
    "cut 3": lambda text: text[:-3],
    "acronym": lambda text: text if len(text) > 2 else text[0],
    "dot twice": str,
    "ampersand": lambda text: _AMPERSAND.sub("&", text),
    "opening quote": lambda text: _quoted(text, "`"),
    "closing quote": lambda text: _quoted(text, "'"),
    "spaced": lambda text: text.translate(_TO_NO_BREAK),
    "phone": lambda text: text.translate(_TO_NO_BREAK).translate(_PARENTHESES),
    "smiley": lambda text: text.translate(_PARENTHESES),
    "fraction": lambda text: _FRACTIONS.get(text, text),
    "currency": lambda text: _CURRENCIES.get(text, text),
    "hyphens": lambda text: "--" if 3 <= len(text) <= 4 else text,
}
_GIVEN_BACK = {"cut 2": 2, "cut 3": 3, "acronym": 1, "dot twice": 1}  # characters read again

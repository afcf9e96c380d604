"""METEOR's own tokenisation (its `-norm` option for English) and Java's string hash.

pycocoevalcap hands METEOR text that the PTB tokeniser has already split, but METEOR normalises
it once more, and that changes it: `man 's` becomes `man ' s`, `t-shirt` becomes `t shirt`, `u.s.`
becomes `us`. The order of the rules matters, and so does that each is one left-to-right pass
over non-overlapping matches (`a-b-c` becomes `a b-c`).
"""

import re
from collections.abc import Mapping

_ALPHA = "A-Za-zŠŽšžŸÀ-ÖØ-öø-ž\u0400-\u04ff\u0500-\u0527\ua640-\ua66e\ua67e-\ua697\u1d00-\u1d7f"
_ALNUM = "0-9" + _ALPHA
_JAVA_SPACE = " \t\n\x0b\f\r"  # what \s is in a Java pattern
_DELIMITERS = re.compile("[ \t\n\r\f]+")  # what Java's StringTokenizer splits at
_CONTROL_OR_SPACE = "".join(map(chr, range(33)))  # what Java's String.trim removes

_PLAIN = re.compile("[a-z0-9 ]*")  # text that no rule below touches
_RUN_OF_DOTS = re.compile(r"\.(\.+)")
_LAST_OF_RUN = re.compile(r"DOTMULTI\.([^.])")
_SYMBOL = re.compile(f"([^{_ALNUM}{_JAVA_SPACE}.'`,\\-‘’])")
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile("([^0-9]),([^0-9])"), r"\1 , \2"),
    (re.compile("([0-9]),([^0-9])"), r"\1 , \2"),
    (re.compile("([^0-9]),([0-9])"), r"\1 , \2"),
    (re.compile("[`‘’]"), "'"),
    (re.compile("[“”]|''"), ' " '),
    (re.compile("–"), "-"),
    (re.compile("--"), "-"),
    (re.compile(f"([{_ALNUM}.])-([{_ALNUM}])"), r"\1 \2"),
    (re.compile(f"([^{_ALPHA}])'([^{_ALPHA}])"), r"\1 ' \2"),
    (re.compile(f"([^{_ALPHA}0-9])'([{_ALPHA}])"), r"\1 ' \2"),
    (re.compile(f"([{_ALPHA}])'([^{_ALPHA}])"), r"\1 ' \2"),
    (re.compile(f"([{_ALPHA}])'([{_ALPHA}])"), r"\1 '\2"),
    (re.compile("([0-9])'(s)"), r"\1 '\2"),
)
_LETTER = re.compile(f"[{_ALPHA}]")
_WIDE_SPACES = re.compile("[ \u2000-\u200a\u202f\u205f\u3000\xa0]+")

ANY, BEFORE_NUMBER = 1, 2  # kinds of abbreviation that keep their full stop


def java_trim(text: str) -> str:
    return text.strip(_CONTROL_OR_SPACE)


def java_tokens(text: str) -> list[str]:
    """Split as Java's StringTokenizer does: at ASCII white space only."""
    return [token for token in _DELIMITERS.split(text) if token]


def words_of(text: str, abbreviations: Mapping[str, int]) -> list[str]:
    """The words METEOR compares: normalised, lower-cased, split."""
    if _PLAIN.fullmatch(text):
        return text.split()
    return java_tokens(_normalise(text, abbreviations).lower())


def _normalise(text: str, abbreviations: Mapping[str, int]) -> str:
    line = _SYMBOL.sub(r" \1 ", f" {text} ")
    if ".." in line or "DOTMULTI" in line:
        line = _hide_runs_of_dots(line)
    for pattern, replacement in _RULES:
        line = pattern.sub(replacement, line)
    tokens = java_tokens(line)
    line = "".join(
        _split_full_stop(token, tokens[at + 1] if at + 1 < len(tokens) else None, abbreviations)
        + " "
        for at, token in enumerate(tokens)
    )
    while "DOTDOTMULTI" in line:
        line = line.replace("DOTDOTMULTI", "DOTMULTI.")
    line = line.replace("DOTMULTI", ".")
    return java_trim(_WIDE_SPACES.sub(" ", line))


def _hide_runs_of_dots(line: str) -> str:
    """Spell out `...` so that the rules for full stops and commas leave it alone."""
    line = _RUN_OF_DOTS.sub(r" DOTMULTI\1", line)
    while "DOTMULTI." in line:
        line = _LAST_OF_RUN.sub(r"DOTDOTMULTI \1", line)
        line = line.replace("DOTMULTI.", "DOTDOTMULTI")
    return line


def _split_full_stop(token: str, following: str | None, abbreviations: Mapping[str, int]) -> str:
    if len(token) < 2 or not token.endswith("."):
        return token
    stem = token[:-1]
    if "." in stem and _LETTER.search(stem):
        return token.replace(".", "")  # an acronym
    kind = abbreviations.get(stem)
    if kind == ANY or (following is not None and "a" <= following[0] <= "z"):
        return token
    if kind == BEFORE_NUMBER and following is not None and "0" <= following[0] <= "9":
        return token
    return stem + " ."


def read_abbreviations(text: str) -> dict[str, int]:
    """Parse METEOR's list of prefixes that keep their full stop."""
    kinds: dict[str, int] = {}
    for line in text.splitlines():
        fields = line.split()
        if fields and not fields[0].startswith("#"):
            numeric = len(fields) > 1 and fields[1] == "#NUMERIC_ONLY#"
            kinds[fields[0]] = BEFORE_NUMBER if numeric else ANY
    return kinds


def java_hash(text: str) -> int:
    """Java's String.hashCode. METEOR compares words by it, so `an` and `c0` are one word to it."""
    value = 0
    units = text.encode("utf-16-le", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + units[at] + 256 * units[at + 1]) & 0xFFFFFFFF
    return value - 0x100000000 if value & 0x80000000 else value

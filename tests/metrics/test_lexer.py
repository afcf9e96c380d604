"""The lexer generator against Python's `re`, which has the same patterns but another contract."""

import re
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.metrics.lexer import Lexer, Rule

RULES = [
    Rule("keyword", "if|of"),
    Rule("word", "{LETTER}+"),
    Rule("before b", "a{1,3}", "b"),
    Rule("number", r"[0-9]{2,4}(\.[0-9]+)?"),
    Rule("before dots", "[a-f]*", r"\.+"),
    Rule("tag", "<[^>]*>"),
    Rule("any", "[^]"),
]
NAMES = {"LETTER": "[a-z]"}


def best_match(text: str, at: int) -> tuple[int, int]:
    """The contract, by trying every end of every rule."""
    best, length, end = -1, 0, at
    for index, rule in enumerate(RULES):
        head, tail = (part.replace("{LETTER}", "[a-z]") for part in (rule.pattern, rule.follow))
        head, tail = (part.replace("[^]", r"[\s\S]") for part in (head, tail))
        for stop in range(len(text), at, -1):
            cuts = [
                cut
                for cut in range(stop, at - 1, -1)
                if re.fullmatch(head, text[at:cut], re.I) and re.fullmatch(tail, text[cut:stop])
            ]
            if cuts and stop - at > length:
                best, length, end = index, stop - at, cuts[0]
                break
    return best, end


@given(st.text(alphabet="aabif of.<>1239-", max_size=12))
def test_the_longest_match_wins_and_the_first_of_equals(text):
    lexer = Lexer(RULES, NAMES)
    for at in range(len(text)):
        assert lexer.match(text, at, set()) == best_match(text, at)


@given(st.text(alphabet="<<!a> ", max_size=40))
@settings(max_examples=200)
def test_remembering_vain_scans_changes_nothing(text):
    lexer = Lexer(RULES, NAMES)
    vain: set[tuple[int, int]] = set()
    for at in range(len(text)):
        assert lexer.match(text, at, vain) == lexer.match(text, at, set())


def test_lexing_is_linear_where_every_start_could_run_to_the_end():
    lexer, text = Lexer(RULES, NAMES), "<a" * 50_000
    vain: set[tuple[int, int]] = set()
    begin, at = time.process_time(), 0
    while at < len(text):
        _, at = lexer.match(text, at, vain)
    assert time.process_time() - begin < 5  # quadratic would be hours

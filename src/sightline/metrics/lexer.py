"""A small lexer generator: rules are regular expressions, and the longest match wins.

The rules of a lexer become one automaton whose states are built when a text first needs them
(Glushkov's construction; a set of positions is one integer). This is the contract of lex and
JFlex, which `re` cannot give: of all rules the one that matches the most text wins, the earlier
one if two match the same, and a rule `r` may require to be followed by `s` (its trailing context),
which counts for the length of the match but is not taken.

The language of the patterns: characters (letters match both cases), `[classes]` and `[^classes]`
(exactly as written), `( )`, `|`, `?`, `*`, `+`, `{m}`, `{m,n}`, `{NAME}` for another pattern
and backslash escapes (`\\n`, `\\t`, …, `\\uXXXX`, any other character for itself).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Ranges = tuple[tuple[int, int], ...]  # inclusive, sorted and disjoint
Node = tuple[
    Any, ...
]  # ("set", ranges) | ("cat", nodes) | ("alt", nodes) | ("repeat", node, low, high)

LAST = 0xFFFF  # texts are read as UTF-16, as Java does
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_OTHER_CASES = {"i": "\u0130\u0131", "k": "\u212a", "s": "\u017f"}  # İ ı, the kelvin sign, ſ
# Beyond this many characters past the last match, a scan remembers where it has been in vain,
# so that lexing stays linear on texts such as 100,000 times "<!a".
_PATIENCE = 3


class Rule(NamedTuple):
    """The name of what is recognised, its pattern, and what must follow it (trailing context)."""

    name: str
    pattern: str
    follow: str = ""


def ranges(*items: str | tuple[int, int]) -> Ranges:
    """The union of characters (given as strings) and inclusive ranges of code points."""
    points: list[tuple[int, int]] = []
    for item in items:
        points += [(ord(c), ord(c)) for c in item] if isinstance(item, str) else [item]
    merged: list[tuple[int, int]] = []
    for low, high in sorted(points):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def _complement(of: Ranges) -> Ranges:
    edges = [0] + [edge for low, high in of for edge in (low - 1, high + 1)] + [LAST]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low, high) for low, high in pairs if low <= high)


class _Parser:
    """Recursive descent over one pattern."""

    def __init__(self, pattern: str, names: Mapping[str, Node]) -> None:
        self.text, self.at, self.names = pattern, 0, names

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self) -> str:
        self.at += 1
        return self.text[self.at - 1]

    def alternatives(self) -> Node:
        branches = [self.sequence()]
        while self.peek() == "|":
            self.take()
            branches.append(self.sequence())
        return branches[0] if len(branches) == 1 else ("alt", branches)

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.peek() and self.peek() not in "|)":
            parts.append(self.repeated())
        return parts[0] if len(parts) == 1 else ("cat", parts)

    def repeated(self) -> Node:
        node = self.atom()
        while True:
            sign = self.peek()
            following = self.text[self.at + 1 : self.at + 2]
            if sign and sign in "?*+":
                self.take()
                node = ("repeat", node, int(sign == "+"), 1 if sign == "?" else None)
            elif sign == "{" and following.isdigit():
                low, _, high = self.braces().partition(",")
                node = ("repeat", node, int(low), int(high or low))
            else:
                return node

    def braces(self) -> str:
        end = self.text.index("}", self.at)
        inside = self.text[self.at + 1 : end]
        self.at = end + 1
        return inside

    def atom(self) -> Node:
        if self.peek() == "{":
            return self.names[self.braces()]
        if self.peek() == "(":
            self.take()
            node = self.alternatives()
            self.take()
            return node
        if self.peek() == "[":
            self.take()
            return ("set", self.char_class())
        char = self.char()
        return ("set", ranges(_OTHER_CASES.get(char.lower(), "") + char.lower() + char.upper()))

    def char(self) -> str:
        char = self.take()
        if char != "\\":
            return char
        char = self.take()
        if char == "u":
            self.at += 4
            return chr(int(self.text[self.at - 4 : self.at], 16))
        return _ESCAPES.get(char, char)

    def char_class(self) -> Ranges:
        negated = self.peek() == "^"
        if negated:
            self.take()
        members: list[str | tuple[int, int]] = []
        while self.peek() != "]":
            first = self.char()
            if self.peek() == "-" and self.text[self.at + 1] != "]":
                self.take()
                members.append((ord(first), ord(self.char())))
            else:
                members.append(first)
        self.take()
        return _complement(ranges(*members)) if negated else ranges(*members)


def parse(pattern: str, names: Mapping[str, Node]) -> Node:
    """The tree of a pattern; `names` gives the meaning of `{NAME}`."""
    parser = _Parser(pattern, names)
    node = parser.alternatives()
    if parser.at != len(pattern):
        raise ValueError(f"unbalanced pattern {pattern!r} at {parser.at}")
    return node


class State(dict[Any, Any]):
    """A state: the next state by character, filled in as texts need it."""

    __slots__ = ("accepts", "automaton", "reach")

    def __init__(self, automaton: Automaton, accepts: int, reach: int) -> None:
        self.automaton, self.accepts, self.reach = automaton, accepts, reach

    def __missing__(self, char: str) -> State | None:
        target = self.automaton.state(self.reach & self.automaton.mask(char))
        self[char] = target
        return target


class Automaton:
    """The automaton of several patterns; a state accepts the first pattern that ends there."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._follow: list[int] = []  # by position: the positions that may come next, as bits
        self._by_set: dict[Ranges, int] = {}  # the positions that read a set of characters
        self._accepting: dict[int, int] = {}  # position -> pattern
        self._states: dict[int, State | None] = {0: None}
        self._masks: dict[str, int] = {}
        start = 0
        nullable = -1
        for index, node in enumerate(nodes):
            empty, first, last = self._add(node)
            start |= first
            if empty and nullable < 0:
                nullable = index
            for position in _bits(last):
                self._accepting[position] = index
        self._lookup = [
            ([low for low, _ in chars], [high for _, high in chars], bits)
            for chars, bits in self._by_set.items()
        ]
        self.start = State(self, nullable, start)

    def _add(self, node: Node) -> tuple[bool, int, int]:
        """(may be empty, first positions, last positions) of a node, whose follows are noted."""
        kind = node[0]
        if kind == "set":
            bit = 1 << len(self._follow)
            self._follow.append(0)
            self._by_set[node[1]] = self._by_set.get(node[1], 0) | bit
            return False, bit, bit
        if kind == "alt":
            parts = [self._add(part) for part in node[1]]
            first = last = 0
            for _, part_first, part_last in parts:
                first, last = first | part_first, last | part_last
            return any(empty for empty, _, _ in parts), first, last
        if kind == "cat":
            return self._chain(node[1])
        _, inner, low, high = node
        if high is None:  # low is 0 or 1
            empty, first, last = self._add(inner)
            self._join(last, first)
            return empty or low == 0, first, last
        if (low, high) == (0, 1):
            _, first, last = self._add(inner)
            return True, first, last
        tail: list[Node] = []
        for _ in range(high - low):  # a{0,3} as (a(a(a)?)?)?
            tail = [("repeat", ("cat", [inner, *tail]), 0, 1)]
        return self._chain([inner] * low + tail)

    def _chain(self, parts: Sequence[Node]) -> tuple[bool, int, int]:
        empty, first, last = True, 0, 0
        for part in parts:
            part_empty, part_first, part_last = self._add(part)
            self._join(last, part_first)
            first = first | part_first if empty else first
            last = last | part_last if part_empty else part_last
            empty = empty and part_empty
        return empty, first, last

    def _join(self, sources: int, targets: int) -> None:
        for position in _bits(sources):
            self._follow[position] |= targets

    def mask(self, char: str) -> int:
        """The positions that read this character."""
        mask = self._masks.get(char)
        if mask is None:
            code, mask = ord(char), 0
            for lows, highs, bits in self._lookup:
                at = bisect_right(lows, code) - 1
                if at >= 0 and code <= highs[at]:
                    mask |= bits
            self._masks[char] = mask
        return mask

    def state(self, positions: int) -> State | None:
        """The state of a set of positions; None when there is nowhere to go."""
        if positions not in self._states:
            accepts, reach = -1, 0
            for position in _bits(positions):
                reach |= self._follow[position]
                index = self._accepting.get(position, -1)
                if index >= 0 and (accepts < 0 or index < accepts):
                    accepts = index
            self._states[positions] = State(self, accepts, reach)
        return self._states[positions]


class Lexer:
    """Rules in order of preference, ready to be matched anywhere in a text.

    `names` are patterns for `{NAME}`; each may use those before it.
    """

    def __init__(self, rules: Sequence[Rule], names: Mapping[str, str]) -> None:
        self.rules = rules
        known: dict[str, Node] = {}
        for name, pattern in names.items():
            known[name] = parse(pattern, known)
        heads = [parse(rule.pattern, known) for rule in rules]
        tails = [parse(rule.follow, known) for rule in rules]
        self.automaton = Automaton([("cat", pair) for pair in zip(heads, tails, strict=True)])
        self._parts = {
            index: (Automaton([heads[index]]), Automaton([tails[index]]))
            for index, rule in enumerate(rules)
            if rule.follow
        }

    @classmethod
    def read(cls, text: str) -> Lexer:
        """From a grammar: names and their patterns, `%%`, rules; tabs between the fields.

        A line that begins with a tab continues the one before; one that begins with # is a comment.
        """
        lines = text.replace("\n\t", "").splitlines()
        rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
        border = rows.index(["%%"])
        return cls([Rule(*row) for row in rows[border + 1 :]], dict(rows[:border]))

    def match(self, text: str, at: int, vain: set[tuple[int, int]]) -> tuple[int, int]:
        """(the rule that matches best at a position, where its token ends), or (-1, at).

        `vain` is the memory of scans that led nowhere, one set for one text.
        """
        state: State | None = self.automaton.start
        best, end = -1, at
        trail: list[tuple[int, int]] = []
        for here in range(at, len(text)):
            state = state[text[here]]  # type: ignore[index]
            if state is None:
                break
            if state.accepts >= 0:
                best, end = state.accepts, here + 1
                trail.clear()
            elif here - end > _PATIENCE:
                if (id(state), here) in vain:
                    break
                trail.append((id(state), here))
        vain.update(trail)
        if best in self._parts:
            end = self._split(best, text, at, end)
        return best, end

    def _split(self, rule: int, text: str, at: int, end: int) -> int:
        """Where the token ends and its trailing context begins: as late as possible."""
        head, tail = self._parts[rule]
        ends, state = [at] if head.start.accepts >= 0 else [], head.start
        for here in range(at, end):
            state = state[text[here]]
            if state is None:
                break
            if state.accepts >= 0:
                ends.append(here + 1)
        for candidate in reversed(ends):
            state = tail.start
            for here in range(candidate, end):
                state = state[text[here]]
                if state is None:
                    break
            if state is not None and state.accepts >= 0:
                return candidate
        raise AssertionError("a rule's match cannot be split into token and context")


def _bits(number: int) -> list[int]:
    places = []
    while number:
        low = number & -number
        places.append(low.bit_length() - 1)
        number ^= low
    return places

"""Phrase-structure trees: in Penn Treebank brackets and linearised; words as the trees have them.

    brackets:   (S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))
    linearised: (S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )S

The linearised form has no words: its tags stand for them, in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sightline.errors import DataError

EMPTY = "-NONE-"  # the tag of traces, which are no words
NORMALISED = "XX"  # the one tag of trees whose tags are left out (Vinyals et al. 2015)
UNFINISHED = "?"  # the tag of words that a partial output has not come to
_TOKEN = re.compile(r"[()]|[^\s()]+")
_FUNCTION = re.compile(r"[-=|].*")  # NP-SBJ-1, ADVP|PRT
_BRACKETS = {"(": "-LRB-", ")": "-RRB-"}


@dataclass(frozen=True)
class Tree:
    """A phrase with its parts, or a word with its tag as the label."""

    label: str
    children: tuple[Tree, ...] = ()
    word: str | None = None  # of a leaf
    # Of an output of a model: the tokens that opened and closed it (a word has one), −1 if none
    steps: tuple[int, ...] = field(default=(), compare=False)

    def leaves(self) -> Iterator[Tree]:
        if self.word is not None:
            yield self
        for child in self.children:
            yield from child.leaves()

    def phrases(self, start: int = 0) -> Iterator[tuple[Tree, int, int]]:
        """Every phrase with its words [start, stop), parents first."""
        if self.word is not None:
            return
        yield self, start, start + sum(1 for _ in self.leaves())
        for child in self.children:
            yield from child.phrases(start)
            start += sum(1 for _ in child.leaves())

    def brackets(self) -> str:
        inside = self.word if self.word is not None else " ".join(map(Tree.brackets, self.children))
        return f"({self.label} {inside})"

    def tokens(self, *, tags: bool = True) -> list[str]:
        """Linearised; without `tags` every word is XX."""
        if self.word is not None:
            return [self.label if tags else NORMALISED]
        inside = [token for child in self.children for token in child.tokens(tags=tags)]
        return [f"({self.label}", *inside, f"){self.label}"]

    def pretty(self, indent: int = 0) -> str:
        """In brackets on several lines; a phrase of words alone is on one."""
        if all(child.word is not None for child in self.children):
            return " " * indent + self.brackets()
        inside = "\n".join(child.pretty(indent + 2) for child in self.children)
        return f"{' ' * indent}({self.label}\n{inside})"

    def to_json(self, *, steps: bool = False) -> dict[str, Any]:
        inside: dict[str, Any] = {"label": self.label} | (
            {"steps": list(self.steps)} if steps else {}
        )
        if self.word is not None:
            return {**inside, "word": self.word}
        return {**inside, "children": [child.to_json(steps=steps) for child in self.children]}

    def to_nltk(self) -> Any:
        """An nltk.Tree; needs nltk."""
        from nltk import Tree as NltkTree

        parts = [self.word] if self.word is not None else [c.to_nltk() for c in self.children]
        return NltkTree(self.label, parts)


def read_trees(text: str, where: str = "the text") -> list[Tree]:
    """Every tree of a text in brackets; a tree's outermost pair may be without a label."""
    trees: list[Tree] = []
    stack: list[tuple[str, list[Tree]]] = []
    words: list[str] = []  # since the last bracket

    def fail(what: str) -> DataError:
        return DataError(f"{where}: tree {len(trees) + 1} {what}")

    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "(":
            if stack and words:
                stack[-1] = (_label(stack[-1], words, fail), stack[-1][1])
            stack.append(("", []))
            words = []
        elif token != ")":
            if not stack:
                raise fail(f"is preceded by {token!r}, which is outside of all brackets")
            words.append(token)
        elif not stack:
            raise fail("has a closing bracket too many")
        else:
            label, children = stack.pop()
            node = _closed(label, children, words, fail)
            words = []
            if stack:
                stack[-1][1].append(node)
            else:
                trees.append(node)
    if stack:
        raise fail("is not closed")
    return trees


def _label(entry: tuple[str, list[Tree]], words: list[str], fail: Any) -> str:
    if entry[0] or entry[1] or len(words) > 1:
        raise fail(f"has {' '.join(words)!r} beside a phrase; a word needs a tag of its own")
    return words[0]


def _closed(label: str, children: list[Tree], words: list[str], fail: Any) -> Tree:
    if not words and children:
        return Tree(label, tuple(children))
    if len(words) != 2 or children or label:
        raise fail(f"has the bracket ({' '.join([label, *words])}); a word is (TAG word)")
    return Tree(words[0], word=words[1])


def without_traces(tree: Tree) -> Tree | None:
    """As parsers are trained: no empty elements, no functions, no root above the sentence.

    Of NP-SBJ-1 is left NP, of (VP-TPC (-NONE- *)) nothing.
    """
    kept = _without_traces(tree)
    while kept is not None and kept.label in ("", "ROOT", "TOP") and len(kept.children) == 1:
        kept = kept.children[0]
    if kept is None or kept.label not in ("", "ROOT"):
        return kept
    return Tree("TOP", kept.children)


def _without_traces(tree: Tree) -> Tree | None:
    if tree.word is not None:
        return None if tree.label == EMPTY else tree
    children = tuple(kept for c in tree.children if (kept := _without_traces(c)) is not None)
    return Tree(_FUNCTION.sub("", tree.label), children) if children else None


def build(tokens: Sequence[str], words: Sequence[str]) -> Tree:
    """The tree of a linearised one; what a partial one lacks is closed, and its words are added."""
    stack: list[tuple[str, list[Tree], int]] = [("", [], -1)]
    left = iter(words)
    for step, token in enumerate(tokens):
        if token.startswith("(") and len(token) > 1:
            stack.append((token[1:], [], step))
        elif token.startswith(")") and len(token) > 1:
            if len(stack) > 1:
                _close(stack, step)
        elif (word := next(left, None)) is not None:
            stack[-1][1].append(Tree(token, word=word, steps=(step,)))
    stack[-1][1].extend(Tree(UNFINISHED, word=word, steps=()) for word in left)
    while len(stack) > 1:
        _close(stack, -1)
    children = stack[0][1]
    return children[0] if len(children) == 1 else Tree("TOP", tuple(children))


def _close(stack: list[tuple[str, list[Tree], int]], step: int) -> None:
    label, children, opened = stack.pop()
    if children:  # nothing is in a bracket that was only just opened
        stack[-1][1].append(Tree(label, tuple(children), steps=(opened, step)))


# ---------------------------------------------------------------- words

# What stands alone in a text that is cut into words already, and nowhere else
_CUT = re.compile(r"(?<!\S)(?:[.,;:?!]|''|``|n't|'s|-LRB-|-RRB-)(?!\S)", re.I)
_RULES = tuple(
    (re.compile(pattern, re.I), by)
    for pattern, by in (
        (r"[“„]|(?<!\S)\"", " `` "),
        (r"[”\"]", " '' "),
        (r"[’‘]", "'"),
        (r"\.\.\.|…", " ... "),
        (r"(?<!-)--(?!-)|[–—]", " -- "),
        (r"([;?!]|[,:](?!\d))", r" \1 "),
        (r"([$#%])", r" \1 "),
        (r"([^\s.])\.(?=[\s\"')\]}]*$)", r"\1 ."),
        (r"(?<!\S)'(?=\w)(?!(?:s|m|d|re|ve|ll|t|em|til|\d0s)\b)", "` "),
        (r"(?<=\w)'(?=\s|$)", " '"),
        (r"(?<=\w)(n't|'(?:s|m|d|re|ve|ll))(?!\w)", r" \1"),
        (r"\b(can)(not)\b", r"\1 \2"),
        (r"\b(gon|wan)(na)\b", r"\1 \2"),
    )
)


def words_of(text: str) -> list[str]:
    """A sentence's words as the Penn Treebank cuts them; brackets as -LRB- and -RRB-.

    A text in which punctuation or clitics stand alone is cut already, and is taken as it is.
    """
    if not _CUT.search(text):
        for pattern, by in _RULES:
            text = pattern.sub(by, text)
        text = re.sub(r"([()\[\]{}])", r" \1 ", text)
    return [escaped(word) for word in text.split()]


def escaped(word: str) -> str:
    """A word without brackets, which would be those of a tree."""
    return "".join(_BRACKETS.get(letter, letter) for letter in word)

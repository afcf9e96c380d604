"""Parsers that count: a PCFG of a treebank's own rules, plain or markovised, by exact CKY.

    python -m benchmarks.grammar penn.jsonl [--vertical 2] [--horizontal 1] [--split test]

What a trained parser stands beside: the same training trees, the same words, the same metric.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sightline.data.manifest import read_manifest
from sightline.data.spelling import features
from sightline.data.trees import Tree, read_trees
from sightline.metrics import score

RARE = 5  # words that occur less often also count for the unknown ones with their spelling
BEAM = 12.0  # nats: what is so much worse than the best of its span is dropped
NEVER = -1e9


class Grammar:
    """Binary and unary rules with relative frequencies, and tags' words with spelling's help.

    Of a phrase's children the last `horizontal` are remembered (−1: all of them), of what is
    above it `vertical` − 1 labels (Klein and Manning 2003).
    """

    def __init__(self, trees: list[Tree], horizontal: int = -1, vertical: int = 1) -> None:
        self.horizontal, self.vertical = horizontal, vertical
        rules: Counter[tuple[str, ...]] = Counter()
        words: Counter[tuple[str, str]] = Counter()
        for tree in trees:
            rules["<root>", self._name(tree, ())] += 1
            for rule in self._rules(tree, ()):
                rules[rule] += 1
            words.update((leaf.label, str(leaf.word)) for leaf in tree.leaves())
        total: Counter[str] = Counter()
        for rule, count in rules.items():
            total[rule[0]] += count
        symbols = sorted({symbol for rule in rules for symbol in rule} | {t for t, _ in words})
        self.symbols = symbols
        self.ids = {symbol: i for i, symbol in enumerate(symbols)}
        scored = [
            ([self.ids[s] for s in rule], math.log(count / total[rule[0]]))
            for rule, count in rules.items()
        ]
        binary = sorted((ids, p) for ids, p in scored if len(ids) == 3)
        self.parent, self.left, self.right = np.array([ids for ids, _ in binary]).T
        self.log_prob = np.array([p for _, p in binary])
        self.first = np.unique(self.parent, return_index=True)[1]  # of each parent's rules
        self.unary, self.through = self._closure([(ids, p) for ids, p in scored if len(ids) == 2])
        self._learn_words(words)

    # ------------------------------------------------------------------------- trees ↔ rules

    def _name(self, tree: Tree, above: tuple[str, ...]) -> str:
        if tree.word is not None:
            return tree.label
        return "^".join([tree.label, *above[: self.vertical - 1]])

    def _rules(self, tree: Tree, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if tree.word is not None:
            return
        inside = (tree.label, *above)
        names = [self._name(child, inside) for child in tree.children]
        parent = name = self._name(tree, above)
        for place, child in enumerate(names[:-2]):
            seen = names[: place + 1]
            if self.horizontal >= 0:
                seen = seen[max(0, len(seen) - self.horizontal) :]
            rest = f"{parent}|{'-'.join(seen)}"
            yield name, child, rest
            name = rest
        yield name, *names[-2:]
        for child_tree in tree.children:
            yield from self._rules(child_tree, inside)

    def _closure(
        self, unary: list[tuple[list[int], float]]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The best chain from one symbol of unary rules to another, and its first step down.

        Both (U, U), of the symbols `chained`, which are all that occur in such rules.
        """
        self.chained = np.array(sorted({symbol for ids, _ in unary for symbol in ids}))
        place = {int(symbol): i for i, symbol in enumerate(self.chained)}
        count = len(self.chained)
        best = np.full((count, count), NEVER)
        through = np.full((count, count), -1)
        np.fill_diagonal(best, 0.0)
        for (above, below), log_prob in unary:
            if above != below:
                best[place[above], place[below]] = log_prob
                through[place[above], place[below]] = place[below]
        for middle in range(count):
            longer = best[:, middle, None] + best[middle]
            better = longer > best + 1e-12
            through = np.where(better, through[:, middle, None], through)
            best = np.where(better, longer, best)
        return best, through

    # ------------------------------------------------------------------------- words

    def _learn_words(self, words: Counter[tuple[str, str]]) -> None:
        self.tags = sorted({tag for tag, _ in words})
        self.tag_ids = np.array([self.ids[tag] for tag in self.tags])
        place = {tag: i for i, tag in enumerate(self.tags)}
        total = np.zeros(len(self.tags))
        counts: defaultdict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros(len(total)))
        by_spelling: defaultdict[int, NDArray[np.float64]] = defaultdict(
            lambda: np.full(len(total), 0.01)
        )
        often = Counter[str]()
        for (_, word), count in words.items():
            often[word] += count
        for (tag, word), count in words.items():
            total[place[tag]] += count
            counts[word][place[tag]] += count
            if often[word] < RARE:
                for feature in features(word):
                    by_spelling[feature][place[tag]] += count
        self.counts, self.by_spelling, self.total = counts, by_spelling, total
        rare = sum(c for word, c in often.items() if c < RARE)
        self.rare_share = rare / sum(often.values())

    def tag_scores(self, word: str) -> NDArray[np.float64]:
        """log p(word | tag) up to a constant of the word: known words smoothed by spelling."""
        guesses = [self.by_spelling[f] for f in features(word) if f in self.by_spelling]
        prior = self.total / self.total.sum()
        guess = np.exp(sum(np.log(g / g.sum()) - np.log(prior) for g in guesses)) * prior
        guess = guess / guess.sum() if guesses else prior
        seen = self.counts.get(word, np.zeros(len(prior)))
        tags = (seen + guess) / (seen.sum() + 1)  # p(tag | word)
        return np.asarray(np.log(tags) - np.log(prior))

    # ------------------------------------------------------------------------- parsing

    def parse(self, words: list[str]) -> Tree:
        n, count = len(words), len(self.symbols)
        chart = np.full((n, n + 1, count), NEVER)  # best log p of a symbol over words [i, j)
        chain = np.full((n, n + 1, count), -1)  # the symbol at the other end of its unary chain
        split: dict[tuple[int, int], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        for i, word in enumerate(words):
            cell = np.full(count, NEVER)
            cell[self.tag_ids] = self.tag_scores(word)
            self._close(chart, chain, i, i + 1, cell)
        for length in range(2, n + 1):
            for i in range(n - length + 1):
                j = i + length
                lefts, rights = chart[i, i + 1 : j], chart[i + 1 : j, j]  # (splits, V)
                able = (lefts.max(0) > NEVER)[self.left] & (rights.max(0) > NEVER)[self.right]
                (rules,) = np.nonzero(able)
                cell = np.full(count, NEVER)
                if len(rules):
                    sums = lefts[:, self.left[rules]] + rights[:, self.right[rules]]
                    at = sums.argmax(0)
                    found = sums[at, np.arange(len(rules))] + self.log_prob[rules]
                    parents, starts = np.unique(self.parent[rules], return_index=True)
                    best = np.maximum.reduceat(found, starts)
                    cell[parents] = np.where(best > NEVER / 2, best, NEVER)
                    split[i, j] = rules, at
                self._close(chart, chain, i, j, cell)
        root = self.ids["<root>"]
        if chart[0, n, root] <= NEVER / 2:
            return Tree("S", tuple(Tree("NN", word=word) for word in words))
        inside = self._build(root, 0, n, words, chart, chain, split)
        return inside[0] if len(inside) == 1 else Tree("S", tuple(inside))

    def _close(
        self,
        chart: NDArray[np.float64],
        chain: NDArray[np.int64],
        i: int,
        j: int,
        cell: NDArray[np.float64],
    ) -> None:
        """Unary chains above a span's symbols; what is hopeless is dropped."""
        if (most := cell.max()) <= NEVER / 2:
            return
        cell = np.where(cell > most - BEAM, cell, NEVER)
        ends = np.where(cell > NEVER / 2, np.arange(len(cell)), -1)
        below = cell[self.chained]  # (U,)
        alive = np.flatnonzero(below > NEVER / 2)
        if len(alive):
            scores = self.unary[:, alive] + below[alive]  # (U, alive)
            at = scores.argmax(1)
            best = scores[np.arange(len(at)), at]
            possible = best > NEVER / 2
            cell[self.chained] = np.where(possible, best, NEVER)
            ends[self.chained] = np.where(possible, self.chained[alive[at]], -1)
        chart[i, j], chain[i, j] = cell, ends

    def _build(
        self,
        symbol: int,
        i: int,
        j: int,
        words: list[str],
        chart: NDArray[np.float64],
        chain: NDArray[np.int64],
        split: dict[tuple[int, int], tuple[NDArray[np.int64], NDArray[np.int64]]],
    ) -> list[Tree]:
        """The trees that a symbol over [i, j) stands for: one, or several of a part of a rule."""
        bottom = int(chain[i, j, symbol])
        if j == i + 1:
            inside = [Tree(self.symbols[bottom], word=words[i])]
        else:
            rules, at = split[i, j]
            (own,) = np.nonzero(self.parent[rules] == bottom)
            middles = i + 1 + at[own]
            totals = (
                chart[i, middles, self.left[rules[own]]]
                + chart[middles, j, self.right[rules[own]]]
                + self.log_prob[rules[own]]
            )
            best = int(totals.argmax())
            rule, middle = rules[own[best]], int(middles[best])
            args = (words, chart, chain, split)
            inside = self._build(int(self.left[rule]), i, middle, *args)
            inside += self._build(int(self.right[rule]), middle, j, *args)
            inside = self._wrapped(bottom, inside)
        if symbol == bottom:
            return inside
        at, end = (int(np.searchsorted(self.chained, each)) for each in (symbol, bottom))
        path = []
        while at != end:
            path.append(int(self.chained[at]))
            at = int(self.through[at, end])
        for above in reversed(path):
            inside = self._wrapped(above, inside)
        return inside

    def _wrapped(self, symbol: int, inside: list[Tree]) -> list[Tree]:
        name = self.symbols[symbol]
        if "|" in name or name == "<root>":  # a part of a rule
            return inside
        return [Tree(name.split("^")[0], tuple(inside))]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("manifest", type=Path)
    options.add_argument("--more", type=Path, help="another manifest to train on")
    options.add_argument("--horizontal", type=int, default=-1)
    options.add_argument("--vertical", type=int, default=1)
    options.add_argument("--split", default="test")
    options.add_argument("--longest", type=int, default=250)
    given = options.parse_args()
    examples = read_manifest(given.manifest, medium="source")
    more = read_manifest(given.more, medium="source") if given.more else []
    train = [e for e in (*examples, *more) if e.split == "train"]
    grammar = Grammar(
        [read_trees(e.targets[0])[0] for e in train], given.horizontal, given.vertical
    )
    print(f"{len(train)} trees, {len(grammar.symbols)} symbols, {len(grammar.parent)} binary rules")
    held_out = [e for e in examples if e.split == given.split]
    held_out = [e for e in held_out if len(str(e.source).split()) <= given.longest]
    began = time.perf_counter()
    texts = {e.id: grammar.parse(str(e.source).split()).brackets() for e in held_out}
    seconds = time.perf_counter() - began
    found = score(texts, {e.id: e.targets for e in held_out}, ["brackets"])
    low, high = found["intervals"]["bracket_f1"]
    scores = ", ".join(f"{key} {100 * value:.2f}" for key, value in found["corpus"].items())
    print(f"{len(texts)} sentences in {seconds:.0f} s: {scores}")
    print(f"95 % of bracket_f1: {100 * low:.1f} to {100 * high:.1f}")


if __name__ == "__main__":
    main()

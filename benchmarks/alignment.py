"""How well attention aligns words: against hand-made alignments, and words that are copied.

    python -m benchmarks.alignment RUN [--back RUN]

RUN translates German into English and was trained on Multi30k (multi30k-de-en), the model of
`--back` English into German; with both, their alignments are also intersected. Hand-made are
the 508 pairs of Europarl (Vilar et al. 2006): debates, while Multi30k has captions, so that this is
far from what the model has seen; how far is printed. Within its domain, on Multi30k's test pairs,
words that are spelt alike in both languages have to be aligned to themselves. `attention` is where
the model looked before each word, `posterior` what `sightline align` gives: once the word is known.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import sightline
from benchmarks.data import data_path
from sightline.data.sentences import JOIN, clean, mark_words
from sightline.media.text import read_lines
from sightline.metrics.alignment import AlignmentErrorRate, GoldAlignment, read_alignment
from sightline.runtime.describer import Describer
from sightline.tasks.translate.alignments import alignment_of, diagonal

SIGNS = ".,;:!?\"'()„“”‚‘’«»-"
Pairs = list[tuple[str, str]]
Links = set[tuple[int, int]]  # source word, target word


# ---- links -------------------------------------------------------------------------------------


def links_of(translator: Describer, pairs: Pairs, posterior: bool = True) -> list[Links]:
    """Each target word with its likeliest source word."""
    sides = [source for source, _ in pairs], [target for _, target in pairs]
    forced = translator.force(*sides, posterior=posterior)
    return [{(s, t) for s, t, _ in alignment_of(translator, each).links()} for each in forced]


def systems_of(forth: Describer, back: Describer | None, pairs: Pairs) -> dict[str, list[Links]]:
    """The links of the diagonal, of each model, and those that both have."""
    sizes = [(len(source.split()), len(target.split())) for source, target in pairs]
    systems = {
        "diagonal": [diagonal(source, target) for source, target in sizes],
        "attention": links_of(forth, pairs, posterior=False),
        "posterior": links_of(forth, pairs),
    }
    if back is not None:
        turned = links_of(back, [(target, source) for source, target in pairs])
        systems["posterior, backwards"] = [{(s, t) for t, s in links} for links in turned]
        both = zip(systems["posterior"], systems["posterior, backwards"], strict=True)
        systems["intersection"] = [one & other for one, other in both]
    return systems


# ---- against hand-made alignments --------------------------------------------------------------


@dataclass(frozen=True)
class Agreement:
    """Precision by the possible links, recall by the sure ones, and the error rate of both."""

    precision: float
    recall: float
    error: float


def agreement(links: Sequence[Links], gold: Sequence[GoldAlignment]) -> Agreement:
    both = list(zip(links, gold, strict=True))
    possible = sum(len(ours & known.possible) for ours, known in both)
    sure = sum(len(ours & known.sure) for ours, known in both)
    metric = AlignmentErrorRate()
    return Agreement(
        possible / sum(map(len, links)),
        sure / sum(len(known.sure) for known in gold),
        float(metric.corpus_scores(metric.statistics(both))[0]),
    )


def read_gold(folder: Path) -> tuple[Pairs, list[GoldAlignment]]:
    """German, English, and the links between their words, counted from 0."""
    texts = [line.split(" ||| ") for line in read_lines(folder / "ende.txt")]
    path = folder / "alignmentDeEn.talp"
    gold = [read_alignment(line, 1, f"{path}:{n}") for n, line in enumerate(read_lines(path), 1)]
    return [(german, english) for german, english in texts], gold


def unseen(texts: Sequence[str], training: Sequence[str]) -> float:
    """The share of the running words (signs left out) that the training text does not have."""
    known = {word for text in training for word in mark_words(clean(text)).split()}
    words = [w for text in texts for w in mark_words(clean(text)).split() if w.strip(SIGNS + JOIN)]
    return sum(word not in known for word in words) / len(words)


# ---- words that are copied ---------------------------------------------------------------------


@dataclass(frozen=True)
class Copied:
    """A word that stands once in each sentence of a pair, spelt alike but for capitals."""

    pair: int
    source: int  # its place
    target: int
    exact: bool  # capitals too: most of these are names and numbers


def copied_words(pairs: Pairs) -> list[Copied]:
    words = []
    for number, (source, target) in enumerate(pairs):
        read, written = ([w.strip(SIGNS) for w in text.split()] for text in (source, target))
        low = [[word.lower() for word in side] for side in (read, written)]
        for at, word in enumerate(low[1]):
            if len(word) >= 3 and low[0].count(word) == low[1].count(word) == 1:
                place = low[0].index(word)
                words.append(Copied(number, place, at, read[place] == written[at]))
    return words


def at_least(hits: int, chances: Sequence[float]) -> float:
    """The probability of so many hits or more, if each has its own chance (exactly)."""
    counts = np.ones(1)  # counts[n]: the probability of n hits so far
    for chance in chances:
        counts = np.append(counts, 0) * (1 - chance) + np.append(0, counts) * chance
    return float(min(1.0, counts[hits:].sum()))


# ---- the report --------------------------------------------------------------------------------


def report_gold(systems: dict[str, list[Links]], gold: Sequence[GoldAlignment]) -> None:
    print(f"{'':24} {'error rate':>10} {'precision':>10} {'recall':>7}")
    for name, links in systems.items():
        each = agreement(links, gold)
        print(f"{name:24} {each.error:10.1%} {each.precision:10.1%} {each.recall:7.1%}")


def shown(p: float) -> str:
    return "p < 1e-15" if p < 1e-15 else f"p = {p:.1g}"


def report_copied(systems: dict[str, list[Links]], pairs: Pairs) -> None:
    words = copied_words(pairs)
    for title, some in (
        ("spelt alike but for capitals", words),
        ("the same with their capitals (names, numbers)", [w for w in words if w.exact]),
    ):
        chances = [1 / len(pairs[w.pair][0].split()) for w in some]
        print(f"\n{len(some)} words {title}: aligned to themselves")
        print(f"{'chance':24} {np.mean(chances):6.1%}")
        right = {
            name: [(w.source, w.target) in links[w.pair] for w in some]
            for name, links in systems.items()
        }
        for name, hits in right.items():
            p = at_least(sum(hits), chances)
            text = f"{name:24} {np.mean(hits):6.1%}  against chance: {shown(p)}"
            if name != "diagonal":
                pairs_of_hits = list(zip(hits, right["diagonal"], strict=True))
                wins = sum(ours > straight for ours, straight in pairs_of_hits)
                differ = sum(ours != straight for ours, straight in pairs_of_hits)
                p = at_least(wins, [0.5] * differ)
                text += f"; against the diagonal: {wins} of {differ} that differ, {shown(p)}"
            print(text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alignment")
    parser.add_argument("run", metavar="RUN", help="translates German into English")
    parser.add_argument("--back", metavar="RUN", help="translates English into German")
    given = parser.parse_args()
    data = data_path()
    forth = sightline.load(given.run)
    back = sightline.load(given.back) if given.back else None

    pairs, gold = read_gold(data / "gold_alignments" / "de-en")
    training = [read_lines(data / "multi30k" / f"train.{side}.gz") for side in ("de", "en")]
    parts = [unseen([pair[side] for pair in pairs], training[side]) for side in (0, 1)]
    mean = np.mean([len(text.split()) for pair in pairs for text in pair])
    usual = np.mean([len(text.split()) for texts in training for text in texts])
    print(f"{len(pairs)} hand-aligned pairs of Europarl, out of the model's domain: of the words")
    print(f"{parts[0]:.0%} (German) and {parts[1]:.0%} (English) are not in its training text, and")
    print(f"a sentence has {mean:.0f} words, not {usual:.0f}")
    report_gold(systems_of(forth, back, pairs), gold)

    files = [data / "multi30k" / f"test_2016_flickr.{side}.gz" for side in ("de", "en")]
    pairs = list(zip(*map(read_lines, files), strict=True))
    print(f"\n{len(pairs)} pairs of Multi30k's test set, in the model's domain")
    report_copied(systems_of(forth, back, pairs), pairs)


if __name__ == "__main__":
    main()

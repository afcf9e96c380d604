"""Word alignments from attention (D §VI): as data, as Pharaoh lines, as a lexicon, as a figure."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sightline.data.durable import replace_file
from sightline.errors import CheckpointError, DataError, UserError
from sightline.metrics.alignment import AlignmentErrorRate, GoldAlignment
from sightline.runtime.model_folder import record_file
from sightline.types import Description

if TYPE_CHECKING:
    from sightline.runtime.describer import Describer

LEXICON = "lexicon.json"  # in a model's folder
Lexicon = dict[str, dict[str, float]]  # source token → its translations, the commonest first
Link = tuple[int, int, float]  # source word, target word (both from 0), confidence


@dataclass(frozen=True)
class WordAlignment:
    """Which source words each target word came from."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    # (target words, source words). A row sums to 1 less what it gave to the end of the sentence:
    # that part came from no word.
    weights: NDArray[np.float32]

    def links(self, least: float = 0.0) -> list[Link]:
        """For each target word its likeliest source word, if the weight there is `least`."""
        if self.weights.size == 0:
            return []
        best = self.weights.argmax(1)
        sure = [(int(s), t, float(self.weights[t, s])) for t, s in enumerate(best)]
        return [link for link in sure if link[2] >= least]

    def pharaoh(self, least: float = 0.0) -> str:
        """`0-0 1-2 …`: source and target positions, ordered by source."""
        return " ".join(f"{s}-{t}" for s, t, _ in sorted(self.links(least)))

    def to_json(self, least: float = 0.0) -> dict[str, Any]:
        links = [[s, t, round(weight, 4)] for s, t, weight in sorted(self.links(least))]
        return {"source": list(self.source), "target": list(self.target), "links": links}

    def figure(self, path: Path | str) -> None:
        """The alignment matrix, words on both axes (D figure 2)."""
        from sightline.figures import draw_alignment

        draw_alignment(self.weights, path, rows=self.target, columns=self.source)


def align(
    translator: Describer, sources: Sequence[str], targets: Sequence[str]
) -> list[WordAlignment]:
    """The word alignments of known pairs; empty for a pair that `force` leaves empty."""
    forced = translator.force(sources, targets, posterior=True)
    return [alignment_of(translator, each) for each in forced]


def alignment_of(translator: Describer, description: Description) -> WordAlignment:
    """The word alignment of what the translator wrote, or was forced to write.

    The mean of the attention over the tokens of a target word, the sum over those of a source
    word. It is empty for a line so long that its attention was not kept.
    """
    from sightline.tasks.translate.parts import source_of, target_of

    attends = description.attention is not None or translator.recipe.model.attention.kind != "none"
    if description.tokens and not attends:
        raise UserError("there is no attention to align by: the model has none")
    if not description.tokens or description.attention is None or description.layout is None:
        return WordAlignment((), (), np.zeros((0, 0), np.float32))
    read = source_of(translator).words(description.layout.labels)
    written = target_of(translator).words(description.tokens)
    weights = np.zeros((len(written), len(read)), np.float32)
    for t, (_, start, stop) in enumerate(written):
        row = description.attention[start:stop].mean(0)  # (M,)
        weights[t] = [row[a:b].sum() for _, a, b in read]
    sources, targets = (tuple(word for word, _, _ in side) for side in (read, written))
    return WordAlignment(sources, targets, weights)


def error_rates(
    found: Sequence[WordAlignment], gold: Sequence[GoldAlignment], least: float = 0.0
) -> tuple[float, float]:
    """The alignment error rate of these, and that of the diagonal, which knows no language."""
    metric = AlignmentErrorRate()

    def rate(links: list[set[tuple[int, int]]]) -> float:
        pairs = list(zip(links, gold, strict=True))
        return float(metric.corpus_scores(metric.statistics(pairs))[0])

    ours = [{(s, t) for s, t, _ in each.links(least)} for each in found]
    straight = [diagonal(len(each.source), len(each.target)) for each in found]
    return rate(ours), rate(straight)


def diagonal(source: int, target: int) -> set[tuple[int, int]]:
    """As if so many words came in the same order at the same pace: source word, target word."""
    return {(t * source // target, t) for t in range(target)}


def learn_lexicon(
    translator: Describer, pairs: Iterable[tuple[str, str]], keep: int = 10
) -> Lexicon:
    """What each source token was most often aligned to when known pairs are forced."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    rest = iter(pairs)
    while block := list(islice(rest, 1024)):
        sources, targets = [s for s, _ in block], [t for _, t in block]
        for forced in translator.force(sources, targets, posterior=True):
            if forced.attention is None or forced.layout is None:
                continue
            labels = forced.layout.labels
            for token, place in zip(forced.tokens, forced.attention.argmax(1), strict=True):
                if place < len(labels) - 1:  # the last place is the end: from no word
                    counts[labels[place]][token] += 1
    if not counts:
        raise UserError("no pair could be aligned; a lexicon needs text and a model that attends")
    return {word: _shares(found, keep) for word, found in sorted(counts.items())}


def _shares(found: Counter[str], keep: int) -> dict[str, float]:
    total = sum(found.values())
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return {token: round(count / total, 4) for token, count in ranked[:keep]}


def save_lexicon(folder: Path, lexicon: Lexicon) -> Path:
    path = folder / LEXICON
    try:
        replace_file(path, json.dumps(lexicon, ensure_ascii=False, indent=0).encode())
        record_file(folder, LEXICON)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None
    return path


def load_lexicon(folder: Path) -> Lexicon:
    """The lexicon in a model's folder; an empty one where there is none."""
    path = folder / LEXICON
    try:
        lexicon: Lexicon = json.loads(path.read_text(encoding="utf-8"))
        if not all(isinstance(found, dict) for found in lexicon.values()):
            raise ValueError("not a dictionary of dictionaries")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); delete it or make it anew") from None
    return lexicon

"""An evaluation as one HTML page: scores, curves, and each example with where its words looked.

The page needs no network: pictures, attention, style and script are inside it.
"""

from __future__ import annotations

import base64
import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from sightline.errors import UserError
from sightline.figures import looks
from sightline.figures.files import suffix_of, write
from sightline.metrics import info
from sightline.report.cards import ReportItem, card
from sightline.report.charts import curves_section
from sightline.report.table import scores_section

__all__ = ["ReportItem", "Selection", "write_report"]

SEED = 0  # of the random examples


@dataclass(frozen=True)
class Selection:
    """How many examples a page shows of a large evaluation; a small one is shown whole."""

    worst: int = 200
    best: int = 50
    random: int = 50


def write_report(
    path: Path | str,
    items: Sequence[ReportItem],
    *,
    title: str,
    metrics: Mapping[str, Any],
    curves: Sequence[Mapping[str, Any]] = (),
    paper: Mapping[str, Mapping[str, float]] | None = None,
    facts: Mapping[str, str] | None = None,
    sort: str | None = None,
    limit: Selection | None = Selection(),
) -> None:
    """Write the page of an evaluation, worst mistakes first.

    metrics: what `sightline.metrics.score` returns of all items
    curves:  the events of a run's log.jsonl
    paper:   published scores by system and key, as papers print them (×100)
    facts:   what else the head of the page should say: the model, the data, the beam
    sort:    the score by which items are worst and best (CIDEr, or the items' first)
    limit:   how many items are shown; None for all
    """
    suffix_of(path, (".html", ".htm"))
    if not items:
        raise UserError("a report needs at least one item")
    keys = list(dict.fromkeys(key for item in items for key in item.scores))
    key = _sort_key(sort, keys)
    chosen = _choose(items, key, limit or Selection(worst=len(items)))
    cards = [card(i, item, group, keys, key) for i, (item, group) in enumerate(chosen)]
    parts = {
        "title": html.escape(title),
        "facts": _facts(facts or {}),
        "scores": scores_section(metrics, paper or {}),
        "curves": curves_section(curves),
        "intro": _intro(len(items), [group for _, group in chosen], key if keys else None),
        "sorts": "".join(
            f'<option value="{html.escape(k)}" data-low="{int(not info(k).higher_is_better)}"'
            f"{' selected' if k == key else ''}>{html.escape(info(k).label)}</option>"
            for k in keys
        ),
        "groups": _groups([group for _, group in chosen]),
        "cards": "\n".join(cards),
        "light": _light([item for item, _ in chosen]),
    }
    template = files("sightline.report").joinpath("page.html").read_text(encoding="utf-8")
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)
    # A lone surrogate (a name that is no UTF-8) is written as a question mark.
    write(path, lambda file: file.write_bytes(page.encode("utf-8", errors="replace")))


def _sort_key(sort: str | None, keys: Sequence[str]) -> str:
    if sort is None:
        return "cider" if "cider" in keys or not keys else keys[0]
    if sort not in keys:
        known = ", ".join(keys) or "none"
        raise UserError(f"the report cannot be sorted by {sort!r}; the items' scores are {known}")
    return sort


def _choose(
    items: Sequence[ReportItem], key: str, limit: Selection
) -> list[tuple[ReportItem, str]]:
    """Items with the reason why they are shown, the worst first; those without a score last."""
    scored = [item for item in items if math.isfinite(item.scores.get(key, math.nan))]
    scored.sort(key=lambda item: item.scores[key], reverse=not info(key).higher_is_better)
    order = [*scored, *(i for i in items if not math.isfinite(i.scores.get(key, math.nan)))]
    if len(items) <= limit.worst + limit.best + limit.random:
        return [(item, "") for item in order]
    groups = dict.fromkeys(range(min(limit.worst, len(scored))), "worst")
    best = range(max(len(groups), len(scored) - limit.best), len(scored))
    groups |= dict.fromkeys(best, "best")
    rest = [i for i in range(len(order)) if i not in groups]
    if count := min(limit.random, len(rest)):
        drawn = np.random.default_rng(SEED).choice(rest, count, replace=False)
        groups |= {int(i): "random" for i in drawn}
    return [(order[i], groups[i]) for i in sorted(groups)]


def _light(items: Sequence[ReportItem]) -> str:
    """What the page's script needs to draw attention as the figures do."""
    layouts = [item.description.layout for item in items]
    sides = {n for layout in layouts if layout and layout.kind == "grid" for n in layout.shape}
    spreads = {
        n: base64.b64encode(looks.spread(n).astype("<f4").tobytes()).decode() for n in sorted(sides)
    }
    numbers = {name: getattr(looks, name) for name in ("DIM", "GLOW", "FADE", "SMOOTH")}
    return json.dumps({**numbers, "spreads": spreads})


def _facts(facts: Mapping[str, str]) -> str:
    rows = (
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(str(value))}</dd></div>"
        for name, value in facts.items()
    )
    return f'<dl class="facts">{"".join(rows)}</dl>' if facts else ""


def _intro(total: int, groups: Sequence[str], key: str | None) -> str:
    if key is None:  # nothing was scored: the items' own order
        some = "" if len(groups) == total else f"{len(groups):,} of "
        return f"{some}{total:,} examples."
    name = html.escape(info(key).label)
    if not any(groups):
        return f"All {total:,} examples, the worst by {name} first."
    counts = {group: groups.count(group) for group in ("worst", "best", "random")}
    return (
        f"{len(groups):,} of {total:,} examples: by {name} the {counts['worst']} worst and the "
        f"{counts['best']} best, and {counts['random']} others at random."
    )


def _groups(groups: Sequence[str]) -> str:
    if not any(groups):
        return ""
    names = {"": "All", "worst": "The worst", "best": "The best", "random": "At random"}
    options = "".join(
        f'<option value="{group}">{name}</option>'
        for group, name in names.items()
        if not group or group in groups
    )
    return f'<label><span>Show</span><select id="group">{options}</select></label>'

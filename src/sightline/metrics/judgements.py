"""People's judgements of captions: M1 and M2 of the COCO 2015 challenge, and how far judges agree.

M1 is the share of captions judged better than or equal to a person's; M2 is the share that is taken
for a person's (Cho et al. 2015, table III). People's captions are judged too, as the yardstick.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from sightline.errors import DataError
from sightline.media.text import decode, read_bytes

PERSON = "person"  # the system that a person's captions are counted under
ANSWERS = {"m1": ("better", "equal", "worse"), "m2": ("person", "machine")}
PASSED = {"m1": ("better", "equal"), "m2": ("person",)}
_NAMES = ("kind", "item", "system", "caption")
_Z = 1.959964  # of a 95 % interval


@dataclass(frozen=True)
class Question:
    """A caption to judge: against a person's (m1), or by itself (m2)."""

    kind: str
    item: str
    system: str
    caption: str
    against: str | None = None


@dataclass(frozen=True)
class Judgement:
    """One judge's answer to a question."""

    question: Question
    judge: str
    answer: str
    seconds: float | None = None
    at: str | None = None  # the time in UTC

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self.question),
            **{k: v for k, v in asdict(self).items() if k != "question"},
        }


def read_judgements(path: Path) -> list[Judgement]:
    """A judge's last answer to each question, from a file of one JSON object per line."""
    last: dict[tuple[str, Question], Judgement] = {}
    lines = decode(read_bytes(path), str(path)).split("\n")
    for number, line in enumerate(lines[:-1], start=1):  # a line without its end is not whole
        if line.strip():
            found = _judgement(line, f"{path}:{number}")
            last[found.judge, found.question] = found
    return list(last.values())


def _judgement(line: str, where: str) -> Judgement:
    try:
        values = json.loads(line)
        kind, item, system, caption = (str(values[name]) for name in _NAMES)
        question = Question(kind, item, system, caption, values.get("against"))
        answer, judge = values["answer"], str(values["judge"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{where}: not a judgement: {line:.60}") from None
    if answer not in ANSWERS.get(question.kind, ()):
        raise DataError(f"{where}: {answer!r} is no answer to a question {question.kind!r}")
    return Judgement(question, judge, answer, values.get("seconds"), values.get("at"))


# ---------------------------------------------------------------- shares


def wilson(share: float, number: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927): never beyond 0 and 1, and not empty there."""
    if not number:
        return 0.0, 1.0
    ratio = _Z**2 / number
    middle = (share + ratio / 2) / (1 + ratio)
    reach = _Z / (1 + ratio) * math.sqrt(share * (1 - share) / number + ratio / (4 * number))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def shares(judgements: Iterable[Judgement]) -> list[dict[str, Any]]:
    """M1 and M2 of each system.

    The interval is as wide as if each picture had been judged once: several judgements of a picture
    are not independent.
    """
    groups: dict[tuple[str, str], list[Judgement]] = defaultdict(list)
    for each in judgements:
        groups[each.question.kind, each.question.system].append(each)
    rows = []
    for kind, system in sorted(groups, key=lambda key: (key[0], key[1] == PERSON, key[1])):
        group = groups[kind, system]
        answers = Counter(each.answer for each in group)
        share = sum(answers[answer] for answer in PASSED[kind]) / len(group)
        items = len({each.question.item for each in group})
        rows.append(
            {
                "measure": kind.upper(),
                "system": system,
                "share": share,
                "interval": list(wilson(share, items)),
                "judgements": len(group),
                "items": items,
                "judges": len({each.judge for each in group}),
                "answers": {answer: answers[answer] for answer in ANSWERS[kind]},
            }
        )
    return rows


# ---------------------------------------------------------------- agreement


def agreement(judgements: Iterable[Judgement]) -> dict[str, dict[str, Any]]:
    """How far judges agree beyond chance, for each measure that two of them answered."""
    tables: dict[str, dict[Question, dict[str, str]]] = {}
    for each in judgements:
        table = tables.setdefault(each.question.kind, {})
        table.setdefault(each.question, {})[each.judge] = each.answer
    found = {}
    for kind, table in sorted(tables.items()):
        rows = list(table.values())
        pairs = _pairs(rows)
        if pairs:
            found[kind.upper()] = {
                "cohen_kappa": pairs,
                "fleiss_kappa": fleiss_kappa(rows),
                "krippendorff_alpha": krippendorff_alpha(rows),
            }
    return found


Rows = Sequence[Mapping[str, str]]  # of each question the answers, by judge


def _pairs(rows: Rows) -> list[dict[str, Any]]:
    judges = sorted({judge for row in rows for judge in row})
    pairs = []
    for one, other in combinations(judges, 2):
        both = [(row[one], row[other]) for row in rows if one in row and other in row]
        if both:
            pairs.append({"judges": [one, other], "both": len(both), "kappa": cohen_kappa(both)})
    return pairs


def cohen_kappa(answers: Sequence[tuple[str, str]]) -> float | None:
    """Two judges of the same questions; None where both gave a single answer throughout."""
    number = len(answers)
    ones, others = (Counter(column) for column in zip(*answers, strict=True))
    seen = sum(one == other for one, other in answers) / number
    chance = sum(ones[answer] * others[answer] for answer in ones) / number**2
    return _beyond(seen, chance)


def fleiss_kappa(rows: Rows) -> float | None:
    """Any number of judges, over the questions that as many as answered any have answered."""
    most = max(len(row) for row in rows)
    counts = [Counter(row.values()) for row in rows if len(row) == most]
    if most < 2:
        return None
    seen = sum(sum(n * (n - 1) for n in c.values()) for c in counts) / (
        len(counts) * most * (most - 1)
    )
    total = sum(counts, Counter())
    chance = sum((n / (len(counts) * most)) ** 2 for n in total.values())
    return _beyond(seen, chance)


def krippendorff_alpha(rows: Rows) -> float | None:
    """Nominal α over all questions that two judges or more answered; answers may be missing."""
    counts = [Counter(row.values()) for row in rows if len(row) > 1]
    number = sum(sum(c.values()) for c in counts)
    if not number:
        return None
    seen = sum(sum(n * (n - 1) for n in c.values()) / (sum(c.values()) - 1) for c in counts)
    total = sum(counts, Counter())
    chance = sum(n * (n - 1) for n in total.values()) / (number - 1)
    return _beyond(seen / number, chance / number)


def _beyond(seen: float, chance: float) -> float | None:
    return None if chance >= 1 else (seen - chance) / (1 - chance)

"""A model's card, `card.md` in its folder, as plain text: what it is, and its facts by name.

# name

What it is, in a paragraph.

- **Data:** what it was trained on
- **Limits:** what it cannot do
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

CARD = "card.md"
_MOST = 64_000  # characters of a card that are read
_UNKNOWN = "…"  # what `sightline export` writes where a fact is to be filled in
_FACT = re.compile(r"^- \*\*([^*:]+):\*\*(.*?)(?=^- |^#|\n\n|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Card:
    """What a card says."""

    summary: str
    facts: dict[str, str] = field(default_factory=dict)  # "limits" → text, in the card's order

    @property
    def about(self) -> str:
        """The summary's first sentence."""
        return re.split(r"(?<!al)\.\s", self.summary, maxsplit=1)[0].rstrip(".") + "."

    def to_json(self) -> dict[str, object]:
        return {"summary": self.summary, "facts": self.facts}


def read_card(folder: Path) -> Card | None:
    """The card in a model's folder, or None if it has none."""
    try:
        with (folder / CARD).open(encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST)
    except OSError:
        return None
    paragraphs = re.split(r"\n\s*\n", text.strip())
    told = [part for part in paragraphs if not part.startswith(("#", "- "))]
    facts = {name.strip().lower(): _plain(said) for name, said in _FACT.findall(text)}
    known = {name: said for name, said in facts.items() if said not in ("", _UNKNOWN)}
    return Card(_plain(told[0]) if told else "", known)


def _plain(text: str) -> str:
    """One line without Markdown's marks and without what a terminal would act on."""
    text = _LINK.sub(r"\1", text).replace("**", "").replace("`", "")
    return "".join(c for c in " ".join(text.split()) if c.isprintable())

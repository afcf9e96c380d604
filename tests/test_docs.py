"""The documentation: every link leads to a file and a heading, and the words are plain."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src/sightline/zoo").glob("*/card.md")),
]
CODE = re.compile(r"^```.*?^```|^(?: {4}).*?$|`[^`\n]*`", flags=re.MULTILINE | re.DOTALL)
# words that a reader of the field would stumble over, and what to write instead
BANNED = {
    "hundredths": "× 100",
    "mend(s|ed)?": "fix",
    "reckon(s|ed)?": "estimate",
    "go(es)? on|went on|going on": "continue, resume",
    "tells|told": "report, state",
    "beside": "alongside, next to",
    "of (its|their) own": "own, separate",
    "by (likelihood|reward)": "trained with cross-entropy, self-critically",
    "a test holds": "tested",
    "rules that buy": "invariants",
    "learnt": "learned, trained",
    "anew": "again",
    "asks? for": "needs, requests",
}


def named(page):
    return str(page.relative_to(ROOT))


def anchors(page):
    """The anchors of a page: those that GitHub makes of its headings, and those it defines."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return made | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_a_file_and_a_heading(page):
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), f"{target} leads nowhere"
        assert file.is_relative_to(ROOT), f"{target} leads out of the repository"
        assert not anchor or anchor in anchors(file), f"{target}: no such heading"


def test_every_page_and_picture_is_reached():
    """From the README and the index, through links."""
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        if page.suffix == ".md":
            targets = re.findall(r"\]\(([^)\s#]+)", CODE.sub("", page.read_text(encoding="utf-8")))
            waiting += [(page.parent / t).resolve() for t in targets if "://" not in t]
    missed = {path for path in (ROOT / "docs").rglob("*.*") if path.is_file()} - reached
    assert not missed, sorted(map(str, missed))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_words_are_plain(page):
    text = re.sub(r"\s+", " ", CODE.sub("", page.read_text(encoding="utf-8")))
    for word, instead in BANNED.items():
        match = re.search(rf"\b({word})\b", text, flags=re.IGNORECASE)
        assert match is None, f"{match.group()!r}: write {instead}"

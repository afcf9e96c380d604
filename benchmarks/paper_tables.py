"""Writes docs/lab/paper-tables.md: every row of the papers' tables, and ours below it.

    python -m benchmarks.paper_tables

The papers' numbers are those that `sightline evaluate` prints (the tasks' published.json). Ours are
read off the tables of the lab's pages, where each has its command: paper_tables.json says which row
of which page stands below which row of which paper.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sightline.tasks import all_specs

ROOT = Path(__file__).parents[1]
LAB = ROOT / "docs" / "lab"
PAGE = LAB / "paper-tables.md"
STATUSES = ("reproduced", "other data", "not run")
INTRODUCTION = """\
# The papers' tables

Every row of the tables of Xu et al. (2015, *Show, Attend and Tell*, table 1) and of Cho,
Courville and Bengio (2015, *Describing Multimedia Content*, tables I to V), and below it ours
where there is one: **reproduced** on the same data, measured on **other data**, or **not run**. A
number of ours leads to the page with its command, date, machine and seed. `sightline evaluate`
prints the paper's rows next to a model's scores when the recipe names the benchmark and the data
is the recipe's own.

This page is written by a command, from those pages: `python -m benchmarks.paper_tables`.
"""


def tables_of(page: Path) -> list[tuple[str, list[str], list[list[str]]]]:
    """Heading, head and rows of each table of a page of Markdown."""
    heading, found, lines = "", [], []
    for line in [*page.read_text(encoding="utf-8").split("\n"), ""]:
        if line.startswith("|"):
            lines.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif lines:
            found.append((heading, lines[0], lines[2:]))
            lines = []
        if line.startswith("#"):
            heading = line.lstrip("# ")
    return found


def bare(cell: str) -> str:
    """A cell without emphasis and without its interval."""
    return re.sub(r" \(.*", "", cell.replace("**", "").strip("*"))


def cells_of(ours: dict[str, Any], columns: dict[str, str]) -> tuple[str, list[str]]:
    """The heading of the row of ours, and its cells in the order of the columns."""
    wanted = ours.get("columns", {})
    for heading, head, rows in tables_of(LAB / ours["page"]):
        if heading != ours.get("heading", heading):
            continue
        for row in rows:
            if bare_start(row[0]).startswith(ours["row"]):
                values = dict(zip(head, row, strict=False))
                names = [wanted.get(column, column) for column in columns]
                if any(name in values for name in names):
                    return heading, [bare(values.get(name, "")) for name in names]
    raise SystemExit(f"{ours['page']}: no table has the row {ours['row']!r}: paper_tables.json")


def bare_start(cell: str) -> str:
    return cell.replace("*", "").strip()


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def paper_cells(table: dict[str, Any], row: dict[str, Any]) -> list[str]:
    if isinstance(row["paper"], dict):
        return [row["paper"].get(column, "") for column in table["columns"]]
    task, benchmark = table["published"]
    published = {spec.name: spec.published for spec in all_specs()}[task][benchmark]
    numbers = published[row["paper"]]
    keys = table["columns"].values()
    return [_printed(numbers[key]) if key in numbers else "" for key in keys]


def _printed(number: float) -> str:
    return max(f"{number:.1f}", f"{number:g}", key=len)


def section(table: dict[str, Any]) -> str:
    columns = table["columns"]
    if "published" in table:  # every published row is there
        task, benchmark = table["published"]
        known = {spec.name: spec.published for spec in all_specs()}[task][benchmark]
        assert [row["paper"] for row in table["rows"]] == list(known), table["title"]
    lines = [f"## {table['title']}", ""]
    lines += [table["note"], ""] if "note" in table else []
    lines += [f"| | {' | '.join(columns)} | |", "|---" * (len(columns) + 2) + "|"]
    for row in table["rows"]:
        assert row["status"] in STATUSES
        name = row.get("system") or row["paper"]
        verdict = "" if row.get("ours") else said(row)
        lines.append(f"| {name} | {' | '.join(paper_cells(table, row))} | {verdict} |")
        for number, ours in enumerate(row.get("ours", [])):
            heading, cells = cells_of(ours, columns)
            link = f"[{ours['as']}]({ours['page']}#{anchor(heading)})"
            shown = " | ".join(f"**{cell}**" if cell else "" for cell in cells)
            lines.append(f"| ours: {link} | {shown} | {'' if number else said(row)} |")
    return "\n".join(lines) + "\n"


def said(row: dict[str, Any]) -> str:
    return row["status"] + (f": {row['why']}" if "why" in row else "")


def page() -> str:
    tables = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    counts = [row["status"] for table in tables for row in table["rows"]]
    summary = ", ".join(f"{counts.count(status)} {status}" for status in STATUSES)
    return "\n".join([INTRODUCTION, f"Of {len(counts)} rows: {summary}.\n", *map(section, tables)])


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

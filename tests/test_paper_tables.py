"""docs/lab/paper-tables.md is what its command writes, and its numbers are those of the lab."""

import pytest
from benchmarks import paper_tables


def test_the_page_is_what_the_command_writes():
    written = paper_tables.PAGE.read_text(encoding="utf-8")
    assert written == paper_tables.page(), "run python -m benchmarks.paper_tables"


def test_the_papers_rows_are_there():
    text = paper_tables.page()
    for number in ("21.3 | 20.3", "17.82", "37.19", ".638 | .675", "27.55", "17.6"):
        assert number in text, number


def test_ours_are_read_off_the_lab(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(
        "## Some heading\n\n| | a | b |\n|---|---|---|\n| **our** row | **1.5** (1 to 2) | |\n"
    )
    monkeypatch.setattr(paper_tables, "LAB", tmp_path)
    ours = {"page": "page.md", "row": "our row"}
    assert paper_tables.cells_of(ours, {"a": "", "b": ""}) == ("Some heading", ["1.5", ""])
    assert paper_tables.cells_of({**ours, "columns": {"x": "a"}}, {"x": ""})[1] == ["1.5"]
    with pytest.raises(SystemExit, match="no table has the row 'none'"):
        paper_tables.cells_of({**ours, "row": "none"}, {"a": ""})

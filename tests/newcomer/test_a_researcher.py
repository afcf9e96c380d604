"""A researcher: recipes to read and change, models with their scores, attention as data."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from sightline import zoo
from sightline.commands import recipes

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs/guides/tour.ipynb"


def test_recipes_are_shown_and_copied(typed, here):
    listed = json.loads(typed("sightline recipes --json").out)
    assert sorted(listed) == recipes.names()
    shown = typed("sightline recipes show sort").out
    assert shown == (recipes.SHIPPED / "sort.yaml").read_text(encoding="utf-8")
    assert "train it with: sightline train sort.yaml" in typed("sightline recipes copy sort").err
    assert (here / "sort.yaml").read_text(encoding="utf-8") == shown
    assert "sort.yaml is there already" in typed("sightline recipes copy sort", code=2).err
    typed("sightline recipes copy sort -o mine.yaml -h")
    assert "did you mean sort?" in typed("sightline recipes show sorrt", code=2).err


def test_models_are_listed_with_sizes_scores_and_cards(typed, here):
    listed = json.loads(typed("sightline models --json").out)
    assert sorted(listed) == zoo.names()
    for name, about in listed.items():
        assert about["task"]
        assert 0.05 < about["megabytes"] < 40
        assert about["score"]
        assert about["limits"]
        assert Path(about["card"]).is_file()
        assert f"{name}  (" in typed("sightline models").out
    card = typed("sightline models default").out
    assert card.strip() == (zoo.FOLDER / "default/card.md").read_text(encoding="utf-8").strip()
    assert "there are " in typed("sightline models nothing", code=2).err


def test_versions_and_the_shells_completion(typed, here, monkeypatch):
    from sightline import __version__

    assert typed("sightline --version").out == f"sightline {__version__}\n"
    monkeypatch.setenv("_SIGHTLINE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "sightline describe a.jpg --model en")
    monkeypatch.setenv("COMP_CWORD", "4")
    assert typed("sightline").out.split() == ["en-de", "en-fr"]


def test_the_notebook_runs(here, capsys: pytest.CaptureFixture[str]):
    """Each cell as it is; what a cell ends with has to show itself."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, object] = {}
    shown = []
    assert len(codes) >= 8
    for code in codes:
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
            shown.append(getattr(value, "_repr_html_", value.__repr__)())
    assert "wooden fence" in shown[0]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
    assert "most at row" in capsys.readouterr().out


def test_the_citation_has_what_its_format_needs():
    import yaml

    from sightline import __version__

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert cited["version"] == __version__
    assert {each["url"][-10:] for each in cited["references"]} == {"1502.03044", "1507.01053"}


def test_the_notice_names_every_model_that_ships():
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for name in zoo.names():
        assert name in notice, f"NOTICE says nothing of the data behind {name}"

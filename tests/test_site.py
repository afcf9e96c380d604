"""The documentation as a site: its own pages and links, and (slow) the build, which checks them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.site_pages import CONTRIBUTING, SOURCE, api_pages, with_links

ROOT = Path(__file__).parents[1]


def test_the_api_has_a_page_for_every_package_and_names_every_module_in_it():
    pages = api_pages()
    for name in ("runtime", "search", "tasks", "nn", "types", "errors"):
        assert f"({name}.md)" in pages["index"]
    named = set(re.findall(r"^::: (\S+)$", "\n".join(pages.values()), re.MULTILINE))
    for path in (SOURCE / "search").glob("*.py"):
        assert path.name.startswith("_") or f"sightline.search.{path.stem}" in named
    assert "sightline.runtime.describer" in named
    assert not [name for name in named if ".commands." in name and ".tasks." not in name]


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("index.md", "[a](../CONTRIBUTING.md)", f"[a]({CONTRIBUTING})"),
        ("guides/serve.md", "[a](../../CONTRIBUTING.md#x)", f"[a](../{CONTRIBUTING}#x)"),
        ("guides/serve.md", "[a](../lab/results.md)", "[a](../lab/results.md)"),
        ("guides/serve.md", "![a](../images/b.png)", "![a](../images/b.png)"),
        ("reference/flow.md", "[`S`](../../src/sightline/types.py)", "`S`"),
        (CONTRIBUTING, "[a](docs/lab/results.md#y)", "[a](lab/results.md#y)"),
        ("index.md", "[a](https://example.org/b)", "[a](https://example.org/b)"),
    ],
)
def test_links_that_leave_the_folder_lead_to_pages_of_the_site(page, link, expected):
    assert with_links(link, page) == expected


@pytest.mark.slow
def test_the_site_builds_without_a_broken_link_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    page = (tmp_path / "site" / "api" / "runtime" / "index.html").read_text()
    assert "Read → encode → search → Description" in page
    for path in (tmp_path / "site").rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)"', path.read_text()
        )
        assert not [url for url in loaded if "canonical" not in url], path

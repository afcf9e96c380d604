"""Pages of the documentation that are no files of docs/: the API, a page for each package, and
CONTRIBUTING. A hook of mkdocs (mkdocs.yml); `make docs` builds the site.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sightline"
# Command lines are described by `--help`; data folders have no code.
LEFT_OUT = {"__init__.py", "commands", "cli.py", "recipes", "zoo", "samples"}
CONTRIBUTING = "contributing.md"
_LINK = re.compile(r"(\[[^\]\n]*\])\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    pages = {f"api/{name}.md": text for name, text in api_pages().items()}
    pages[CONTRIBUTING] = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return with_links(markdown, page.file.src_uri)


def api_pages() -> dict[str, str]:
    """A page for the package itself and one for each package or module right below it."""
    below = [path for path in sorted(SOURCE.iterdir()) if path.name not in LEFT_OUT]
    packages = [path for path in below if path.suffix == ".py" or (path / "__init__.py").is_file()]
    pages = {path.stem: page_of(path) for path in packages}
    pages["index"] = "# API\n\n::: sightline\n\n" + "".join(
        f"- [`sightline.{name}`]({name}.md)\n" for name in pages
    )
    return pages


def page_of(path: Path) -> str:
    modules = [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))
    named = [module_name(each) for each in modules if not is_private(each)]
    directives = "".join(f"::: {name}\n\n" for name in sorted(named))
    return f"# sightline.{path.stem}\n\n{directives}"


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def is_private(path: Path) -> bool:
    return path.name.startswith("_") and path.name != "__init__.py"


def with_links(markdown: str, page: str) -> str:
    """Links that leave docs/ lead to the generated pages; those to source code are plain text."""
    folder = Path(page).parent.as_posix()
    place = "." if page == CONTRIBUTING else f"docs/{folder}"

    def changed(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if ":" in target:
            return match[0]
        path = normpath(f"{place}/{target}")  # from the repository's root
        if path == "CONTRIBUTING.md":
            return f"{text}({relpath(CONTRIBUTING, folder)}{anchor})"
        if path.startswith("docs/"):
            return f"{text}({relpath(path.removeprefix('docs/'), folder)}{anchor})"
        return text[1:-1]

    return _LINK.sub(changed, markdown)

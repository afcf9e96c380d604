"""Every command that the documentation writes exists, with these options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import typer.main

from sightline.cli import app
from sightline.errors import install

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACE = re.compile(r"\[[^\]]*\]|…|\.\.\.")  # in a synopsis, what may be left out


def commands() -> list[tuple[str, str]]:
    """Each `sightline …` of a code block or an indented line, with its page."""
    found = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"^(?:    )?((?:cat \S+ \| )?sightline .*)$", text, re.MULTILINE):
            bare = re.split(r"\s{2,}#|\s#\s|; (?=\w)| > | \| (?!sightline)", line)[0]
            found.setdefault(bare.rpartition("| ")[2].strip(), page.name)
    known = typer.main.get_command(app).commands
    return [
        (line, page)
        for line, page in found.items()
        if not PLACE.search(line)
        and line.count('"') % 2 == 0
        and line.split()[1].strip("-") in {*known, "version"}
    ]


COMMAND = typer.main.get_command(app)


def parsed(words: list[str]) -> None:
    """As the command line does it, up to where it would begin."""
    command = COMMAND
    context = command.make_context("sightline", words, resilient_parsing=False)
    while isinstance(command, click.Group | typer.core.TyperGroup):
        rest = [*context._protected_args, *context.args]
        if not rest:
            return
        _, command, rest = command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(command.name, list(rest), parent=context)


def test_the_documentation_has_commands():
    assert len(commands()) > 60


@pytest.mark.parametrize(("line", "page"), commands(), ids=lambda value: value[:70])
def test_a_command_of_the_documentation_is_understood(line, page):
    words = shlex.split(line)[1:]
    try:
        parsed(words)
    except (click.exceptions.Exit, typer.Exit):
        pass
    except Exception as error:
        if type(error).__name__ in (
            "UsageError",
            "NoSuchOption",
            "BadParameter",
            "MissingParameter",
        ):
            pytest.fail(f"{page}: `{line}`: {error}")
        raise


def test_no_page_and_no_hint_names_the_other_project():
    places = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "Makefile",
        ROOT / "pyproject.toml",
    ]
    for folder, endings in (
        ("src", (".py", ".html", ".js")),
        ("docs", (".md",)),
        ("deploy", ("",)),
    ):
        places += [
            p for p in (ROOT / folder).rglob("*") if p.is_file() and p.name.endswith(endings)
        ]
    for place in places:
        text = place.read_text(encoding="utf-8", errors="replace")
        bad = re.search(r"(['\" ]sightline\[|pip install (-U )?sightline(?!-attention)\b.*)", text)
        if bad and place.name not in ("README.md", "troubleshooting.md"):  # that warn of it
            pytest.fail(f"{place}: {bad[0]}")


def test_hints_pin_what_would_be_gigabytes():
    assert install("train") == "pip install -c constraints.txt 'sightline-attention[train]'"
    assert install("meteor") == "pip install 'sightline-attention[meteor]'"
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'name = "sightline-attention"' in text
    assert 'sightline = "sightline.cli:main"' in text


def test_messages_of_the_troubleshooting_page_are_those_of_the_source():
    page = (ROOT / "docs/guides/troubleshooting.md").read_text(encoding="utf-8")
    source = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "src").rglob("*.py"))
    source = re.sub(r'"\s*\n?\s*f?"', "", source)  # texts that go over several lines
    messages = re.findall(r"^\| `([^`]+)`", page, flags=re.MULTILINE)
    assert len(messages) > 12
    missing = [message for message in messages if message not in source]
    assert not missing

"""`sightline models`: the models that ship, with their cards."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from sightline.tasks.command_line import echo, echo_json, zoo_names


def models(
    name: Annotated[
        str | None, typer.Argument(help="Print this model's card.", autocompletion=zoo_names)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """List the models that come with Sightline: what each does, its size and scores."""
    from sightline import zoo
    from sightline.errors import UserError

    names = zoo.names()
    if name is not None and name not in names:
        raise UserError(f"no model {name!r} comes with Sightline; there are {', '.join(names)}")
    if name is not None and not as_json:
        echo(card_of(name).rstrip())
        return
    shown = {}
    for each in names if name is None else [name]:
        folder, card = zoo.FOLDER / each, card_of(each)
        shown[each] = {
            "task": task_of(each),
            "megabytes": round(sum(f.stat().st_size for f in folder.iterdir()) / 1e6, 1),
            "about": about(card),
            "score": row_of(card, "Score"),
            "limits": row_of(card, "Limits"),
            "card": str(folder / "card.md"),
        }
    if as_json:
        echo_json(shown, indent=1)
        return
    for each, said in shown.items():
        echo(f"{each}  ({said['task']}, {said['megabytes']} MB)")
        echo(f"    {said['about']}")
        echo(f"    Score: {said['score']}")
    echo("\nThe whole card of one, with its limits and terms: sightline models NAME")


def task_of(name: str) -> str:
    from sightline import zoo
    from sightline.config import top_level

    return top_level(zoo.FOLDER / name / "config.yaml", "task") or ""


def card_of(name: str) -> str:
    from sightline import zoo

    path = zoo.FOLDER / name / "card.md"
    return path.read_text(encoding="utf-8") if path.is_file() else f"# {name}\n"


def about(card: str) -> str:
    """A card's first sentence."""
    paragraphs = [" ".join(part.split()) for part in card.split("\n\n")]
    body = next((part for part in paragraphs if part and not part.startswith("#")), "")
    return re.split(r"(?<=[.])\s", body, maxsplit=1)[0]


def row_of(card: str, row: str) -> str:
    """What a card says at `- **row:**`, on one line, without the commands in brackets."""
    match = re.search(rf"^- \*\*{row}:\*\* (.*?)(?=^- \*\*|\Z)", card, flags=re.M | re.S)
    said = " ".join(match[1].split()) if match else ""
    return re.sub(r" \(`[^)]*\)|\*\*", "", said)

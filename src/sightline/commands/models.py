"""`sightline models`: the models that ship, with their cards."""

from __future__ import annotations

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
    from sightline.runtime.card import CARD, Card, read_card

    names = zoo.names()
    if name is not None and name not in names:
        raise UserError(f"no model {name!r} comes with Sightline; there are {', '.join(names)}")
    if name is not None and not as_json:
        echo((zoo.FOLDER / name / CARD).read_text(encoding="utf-8").rstrip())
        return
    shown = {}
    for each in names if name is None else [name]:
        folder = zoo.FOLDER / each
        card = read_card(folder) or Card("")
        shown[each] = {
            "task": task_of(each),
            "megabytes": round(sum(f.stat().st_size for f in folder.iterdir()) / 1e6, 1),
            "about": card.about,
            "score": card.facts.get("score", ""),
            "limits": card.facts.get("limits", ""),
            "card": str(folder / CARD),
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

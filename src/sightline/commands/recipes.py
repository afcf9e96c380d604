"""`sightline recipes`: the recipes that ship, one line each."""

from pathlib import Path
from typing import Annotated

import typer

from sightline.tasks.command_line import echo, echo_json

SHIPPED = Path(__file__).parents[1] / "recipes"


def recipes(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """List the recipes that come with Sightline."""

    from sightline.config import top_level

    lines = {name: top_level(SHIPPED / f"{name}.yaml", "description") or "" for name in names()}
    if as_json:
        echo_json(lines, indent=1)
        return
    width = max(map(len, lines), default=0)
    for name, description in lines.items():
        echo(f"{name:<{width}}  {description}")


def names() -> list[str]:
    """The names of the recipes that ship."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def find_recipe(recipe: Path) -> Path:
    """A recipe's file: a path, or the name of one that ships."""
    if str(recipe) in names() and not recipe.is_file():  # a local file of the same name wins
        return SHIPPED / f"{recipe}.yaml"
    return recipe

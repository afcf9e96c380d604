"""`sightline recipes`: what can be trained, one line each."""

from pathlib import Path
from typing import Annotated

import typer

SHIPPED = Path(__file__).parents[1] / "recipes"


def recipes(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """List the recipes that come with Sightline."""
    import json

    from sightline.config import top_level

    lines = {
        path.stem: top_level(path, "description") or "" for path in sorted(SHIPPED.glob("*.yaml"))
    }
    if as_json:
        typer.echo(json.dumps(lines, indent=1))
        return
    width = max(map(len, lines))
    for name, description in lines.items():
        typer.echo(f"{name:<{width}}  {description}")


def find_recipe(recipe: Path) -> Path:
    """A recipe's file: a path, or the name of one that ships."""
    shipped = SHIPPED / f"{recipe.name}.yaml"
    if not recipe.exists() and len(recipe.parts) == 1 and shipped.exists():
        return shipped
    return recipe

"""`sightline recipes`: the recipes that ship, one line each; to print, and to copy and change."""

from pathlib import Path
from typing import Annotated

import typer

from sightline.errors import UserError
from sightline.tasks.command_line import Output, echo, echo_json, note

SHIPPED = Path(__file__).parents[1] / "recipes"

recipes = typer.Typer(help="List the recipes that come with Sightline; print or copy one.")


def recipe_names(incomplete: str) -> list[str]:
    """For the shell's completion."""
    return [name for name in names() if name.startswith(incomplete)]


Name = Annotated[
    str, typer.Argument(help="One of `sightline recipes`.", autocompletion=recipe_names)
]


@recipes.callback(invoke_without_command=True)
def listed(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """List the recipes that come with Sightline; print or copy one."""
    if context.invoked_subcommand is not None:
        return
    from sightline.config import top_level

    lines = {name: top_level(SHIPPED / f"{name}.yaml", "description") or "" for name in names()}
    if as_json:
        echo_json(lines, indent=1)
        return
    width = max(map(len, lines), default=0)
    for name, description in lines.items():
        echo(f"{name:<{width}}  {description}")


@recipes.command()
def show(name: Name) -> None:
    """Print a recipe."""
    echo(_shipped(name).read_text(encoding="utf-8"), nl=False)


@recipes.command()
def copy(name: Name, out: Output = None) -> None:
    """Copy a recipe here, to change it: `sightline train NAME.yaml` then takes yours."""
    target = out or Path(f"{name}.yaml")
    text = _shipped(name).read_text(encoding="utf-8")
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(f"{target} is there already; give another name with --output") from None
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from None
    note(f"wrote {target}; train it with: sightline train {target}")


def names() -> list[str]:
    """The names of the recipes that ship."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def find_recipe(recipe: Path) -> Path:
    """A recipe's file: a path, or the name of one that ships."""
    if str(recipe) in names() and not recipe.is_file():  # a local file of the same name wins
        return SHIPPED / f"{recipe}.yaml"
    return recipe


def _shipped(name: str) -> Path:
    import difflib

    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {near[0]}?" if near else "`sightline recipes` lists them"
        raise UserError(f"no recipe {name!r} comes with Sightline; {hint}")
    return SHIPPED / f"{name}.yaml"

"""The `sightline` command: one table of commands, each in its own file under `commands/`.

A command's file imports only typer at its top and what it needs inside the function, so that
`sightline --help` starts in a fraction of a second and never imports torch.
"""

import sys
from collections.abc import Callable

import typer

from sightline.commands import (
    average,
    curves,
    demo,
    describe,
    evaluate,
    export,
    features,
    prepare,
    recipes,
    score,
    serve,
    train,
)
from sightline.errors import UserError
from sightline.tasks import all_specs
from sightline.tasks.spec import find

app = typer.Typer(
    name="sightline",
    help="Describe pictures, video, speech and text in words, and show where the model looked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "describe": describe.describe,
    "score": score.score,
    "serve": serve.serve,
    "recipes": recipes.recipes,
    "train": train.train,
    "evaluate": evaluate.evaluate,
    "export": export.export,
    "curves": curves.curves,
    "average": average.average,
    "features": features.features,
}


for spec in all_specs():
    COMMANDS |= {name: find(place) for name, place in spec.commands.items()}
for name, function in COMMANDS.items():
    app.command(name)(function)
app.add_typer(prepare.prepare, name="prepare")


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    try:
        app()
    except UserError as error:
        print(f"sightline: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()

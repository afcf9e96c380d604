"""The `sightline` command: one table of commands, each in its own file under `commands/`.

A command's file imports only typer at its top and what it needs inside the function, so that
`sightline --help` starts in a fraction of a second and never imports torch.
"""

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, NoReturn

import typer

from sightline.commands import (
    average,
    calibrate,
    curves,
    demo,
    describe,
    evaluate,
    export,
    features,
    judge,
    many,
    models,
    prepare,
    recipes,
    score,
    serve,
    train,
    tune,
)
from sightline.data.progress import be_quiet
from sightline.errors import UserError, missing_package
from sightline.tasks import all_specs
from sightline.tasks.command_line import echo
from sightline.tasks.spec import find

app = typer.Typer(
    name="sightline",
    help="Describe pictures, video, speech and text in words, and show where the model looked.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "describe": describe.describe,
    "score": score.score,
    "judge": judge.judge,
    "judgements": judge.judgements,
    "serve": serve.serve,
    "models": models.models,
    "train": train.train,
    "tune": tune.tune,
    "evaluate": evaluate.evaluate,
    "export": export.export,
    "calibrate": calibrate.calibrate,
    "curves": curves.curves,
    "average": average.average,
    "features": features.features,
}


DESCRIBING = {"describe": ""}  # command → its task, "" for any: with --engine of very many inputs

for spec in all_specs():
    COMMANDS |= {name: find(place) for name, place in spec.commands.items()}
    DESCRIBING |= {spec.name: spec.name} if spec.name in spec.commands else {}
for name, function in COMMANDS.items():
    if name in DESCRIBING:
        app.command(name, cls=many.or_many(DESCRIBING[name]), epilog=many.HINT)(function)
    else:
        app.command(name)(function)
app.add_typer(recipes.recipes, name="recipes")
app.add_typer(prepare.prepare, name="prepare")


def _version(asked: bool) -> None:
    if asked:
        from sightline import __version__

        echo(f"sightline {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Describe pictures, text and more in words, and show where the model looked."""


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2.

    A full disk is such a line too; a reader of stdout that is gone ends the command quietly.
    """
    be_quiet(False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None if closed
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        try:
            app(prog_name="sightline")
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where an error can still be told
    except UserError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        missing = missing_package(error.name)
        if missing is None:
            raise
        _fail(str(missing))
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        if sys.stdout is not None:  # what it still holds is lost: nothing is to report it at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            sys.exit(1)
        _fail(f"cannot write: {error.strerror}")


def _fail(message: str) -> NoReturn:
    with suppress(OSError):
        echo(f"sightline: {message}", err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()

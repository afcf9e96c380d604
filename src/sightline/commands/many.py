"""`sightline describe SOURCE --engine …`: very many inputs, each once, and the same of any task.

Where a command that describes is given `--engine`, it is this one, with options of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from sightline.tasks.command_line import Beam, Model, NBest, Quiet, counted_nouns, note

ENGINE = "--engine"
HINT = (
    f"Very many inputs, each exactly once: SOURCE {ENGINE} local or ray --output DIR; "
    f"its options: {ENGINE} local --help."
)


class OrMany(TyperCommand):
    """A command of a task ("": any), or this one where it is given `--engine`."""

    task = ""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        if any(each.partition("=")[0] == ENGINE for each in args):
            other = _command(info_name or "", self.task)
            return other.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def or_many(task: str) -> type[OrMany]:
    return type("OrMany", (OrMany,), {"task": task})


def _command(name: str, task: str) -> Any:
    app = typer.Typer(add_completion=False)
    app.command(name)(_many(task))
    return typer.main.get_command(app)


def _many(task: str) -> Callable[..., None]:
    """The command for one task's models."""

    def many(
        sources: Annotated[
            list[str],
            typer.Argument(
                help="Folders, patterns, files, .tar shards, Parquet tables, text files with a "
                "source a line; also s3:// and gs:// addresses."
            ),
        ],
        engine: Annotated[str, typer.Option(ENGINE, help="local: processes here; ray: Ray Data.")],
        output: Annotated[
            Path, typer.Option("--output", "--out", "-o", help="The folder of the results.")
        ],
        model: Model = "" if task else "default",
        format: Annotated[str, typer.Option(help="Of the results: parquet or jsonl.")] = "parquet",
        beam: Beam = None,
        n_best: NBest = 1,
        column: Annotated[
            str, typer.Option(help="The column of tables that holds the inputs.")
        ] = "",
        workers: Annotated[
            int, typer.Option(min=0, help="Processes or actors; 0: as many as there are cores.")
        ] = 0,
        threads: Annotated[int, typer.Option(min=1, help="Of each worker.")] = 1,
        address: Annotated[
            str, typer.Option(help="A Ray cluster; without one, Ray is started here.")
        ] = "",
        retry_failed: Annotated[
            bool, typer.Option("--retry-failed", help="Try again what has an error recorded.")
        ] = False,
        quiet: Quiet = False,
    ) -> None:
        """Give every input an outcome, once: a row with its text, or with what was wrong.

        The same command again goes on where it ended, however that was.
        """
        from sightline.bulk.run import Plan, run
        from sightline.errors import UserError

        if engine not in ("local", "ray"):
            raise UserError(f"--engine is local or ray, not {engine!r}")
        if address and engine != "ray":
            raise UserError("--address is of a Ray cluster; give --engine ray")
        if format not in ("parquet", "jsonl"):
            raise UserError(f"--format is parquet or jsonl, not {format!r}")
        if not model:
            raise UserError("name a model: --model en-de, or a run")
        asked: dict[str, Any] = {"beam": beam, "n_best": n_best if n_best > 1 else None}
        asked = {name: value for name, value in asked.items() if value is not None}
        plan = Plan(engine, format, workers, address, retry_failed)  # type: ignore[arg-type]
        done = run(
            sources,
            model,
            output,
            task=task,
            asked=asked,
            column=column,
            threads=threads,
            plan=plan,
        )
        took = f"{done.seconds:,.0f} s" if done.seconds < 600 else f"{done.seconds / 60:,.0f} min"
        parts = [f"{done.described:,} described", f"{done.failed:,} failed"]
        parts += [f"{done.before:,} before"] if done.before else []
        parts += [f"{counted_nouns(done.retried, 'failure')} retried"] if done.retried else []
        note(f"{', '.join(parts)}, in {took}: {done.folder}")
        if done.failed:
            raise typer.Exit(2)

    return many

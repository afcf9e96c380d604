"""What commands share."""

import sys
from typing import Annotated

import typer

Device = Annotated[
    str, typer.Option(help="Where a run computes: auto, cpu, cuda, cuda:1, mps; exports: cpu.")
]


def one_thread() -> None:
    """One row at a time is faster on one core, and ten times so when the others are busy."""
    if "torch" in sys.modules:  # an exported model has no use for it
        sys.modules["torch"].set_num_threads(1)

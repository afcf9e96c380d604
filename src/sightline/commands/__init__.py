"""One file per `sightline` command; the table of them is in `sightline/cli.py`."""


def one_thread() -> None:
    """One row at a time is faster on one core, and ten times so when the others are busy."""
    import sys

    if "torch" in sys.modules:  # an exported model has no use for it
        sys.modules["torch"].set_num_threads(1)

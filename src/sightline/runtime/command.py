"""How a run was begun: its overrides, and the folder that its paths are relative to.

`command.json` in the run's folder, so that resuming needs no override again and evaluating works
from any folder. It is not part of checkpoints and exports.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

COMMAND = "command.json"


@dataclass(frozen=True)
class Command:
    overrides: tuple[str, ...]  # key=value; of two for one key the later wins
    folder: str  # where the command was given

    @staticmethod
    def here(overrides: Sequence[str]) -> Command:
        """The command as it is given now."""
        last = {each.partition("=")[0]: each for each in overrides}
        return Command(tuple(last.values()), str(Path.cwd()))

    def to_json(self) -> str:
        return json.dumps({"overrides": self.overrides, "folder": self.folder}, indent=1) + "\n"


def read_command(run: Path) -> Command | None:
    """Of a run's folder, or of one of its checkpoints; None where it is not known."""
    for folder in (run, run.parent.parent):
        try:
            content = json.loads((folder / COMMAND).read_text(encoding="utf-8"))
            overrides = tuple(str(each) for each in content["overrides"])
            return Command(overrides, str(content["folder"]))
        except (OSError, ValueError, KeyError, TypeError):  # it only spares typing
            continue
    return None

"""Workers of the local engine that die; a module of its own, for their processes import it."""

import os
from pathlib import Path

from sightline.bulk import local
from sightline.bulk.worker import Worker

work = local.work


def stillborn(connection, job):
    os._exit(1)


def fragile(connection, job):
    """Dies of one input, and once of another."""
    describe = Worker.describe

    def dying(self, items):
        for item in items:
            once = Path(item.place) / "once"
            if item.data == b"deadly" or (item.data == b"once" and not once.exists()):
                once.touch()
                os._exit(9)
        return describe(self, items)

    Worker.describe = dying
    work(connection, job)

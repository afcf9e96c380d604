"""`sightline serve` in a process of its own, and Debian's Chromium: for tests and screenshots."""

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import urlopen


@contextmanager
def serving(models, environment, log):
    """Give the address of a server of the models NAME → folder; it writes to the file `log`."""
    options = [f"--model={name}={folder}" for name, folder in models.items()]
    command = [sys.executable, "-m", "sightline.cli", "serve", "--port=0", *options]
    with log.open("w") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        yield address_once_ready(process, log)
    finally:
        process.terminate()
        process.wait(240)


def address_once_ready(process, log, path="readyz"):
    deadline = time.monotonic() + 240  # a busy machine is no failure
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        if said := re.search(r" at (http://\S+/)$", log.read_text(), re.M):
            try:
                with urlopen(f"{said[1]}{path}", timeout=10):
                    return said[1]
            except (URLError, OSError):
                pass
        time.sleep(0.1)
    raise AssertionError(f"the server did not get ready: {log.read_text()}")


def chromium():
    """The browser's program, or None."""
    return os.environ.get("SIGHTLINE_CHROMIUM") or shutil.which("chromium")


ARGUMENTS = [
    "--no-sandbox",  # root, as CI is, has none
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
]

"""`sightline serve` in a process of its own, and Debian's Chromium: for tests and screenshots."""

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import urlopen

HOST = "127.0.0.1"


@contextmanager
def serving(models, environment, log):
    """Give the address of a server of the models NAME → folder; it writes to the file `log`."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    options = [f"--model={name}={folder}" for name, folder in models.items()]
    command = [sys.executable, "-m", "sightline.cli", "serve", f"--port={port}", *options]
    with log.open("w") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    address = f"http://{HOST}:{port}/"
    try:
        _wait_until_ready(address, process, log)
        yield address
    finally:
        process.terminate()
        process.wait(20)


def _wait_until_ready(address, process, log):
    deadline = time.monotonic() + 240  # a busy machine is no failure
    while time.monotonic() < deadline:
        try:
            with urlopen(f"{address}readyz", timeout=1):
                return
        except (URLError, OSError):
            assert process.poll() is None, log.read_text()
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

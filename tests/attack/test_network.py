"""Nothing that Sightline runs contacts anyone: watched at the system calls, without a network."""

import os
import shutil
import subprocess
import sys

import pytest

LIBRARY = "import sightline; print(sightline.load('en-de').describe('a dog runs').text)"
SERVICE = (
    "import sightline.serve.app; from sightline.serve.models import load_models\n"
    "for served in load_models(['en-de', 'shakespeare']): served.model.describe('a', length=3)"
)
NOT_OURS = "import onnxruntime as o; o.InferenceSession(GRAPH); import time; time.sleep(1)"
# Files in which a resolver looks before it asks the network, and what it asks with. (Python reads
# nsswitch.conf for the user's name, too.)
LOOKUPS = ("resolv.conf", "/etc/hosts", "AF_INET")


@pytest.fixture
def traced(tmp_path, cli_environment):
    """run(arguments …) → lines of network and file calls, and what was written to the home."""
    for tool in ("strace", "unshare"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if subprocess.run(["unshare", "-rn", "strace", "true"], capture_output=True).returncode:
        pytest.skip("this machine allows no network namespace, or no tracing in it")
    home = tmp_path / "home"
    home.mkdir()
    environment = {k: v for k, v in cli_environment.items() if "TELEMETRY" not in k}
    environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}

    def run(*arguments):
        log = tmp_path / "calls"
        strace = ["strace", "-f", "-qq", "-e", "trace=%network,openat,open", "-o", str(log)]
        done = subprocess.run(
            ["unshare", "-rn", *strace, sys.executable, *map(str, arguments)],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        lines = log.read_text().splitlines()
        lookups = [line for line in lines if any(sign in line for sign in LOOKUPS)]
        return lookups, sorted(os.listdir(home))

    return run


@pytest.mark.parametrize("how", ["library", "command", "service", "torch"])
def test_no_name_is_looked_up_and_no_file_written(traced, tmp_path, how):
    if how == "library":
        lookups, written = traced("-c", LIBRARY)
    elif how == "command":
        lookups, written = traced("-m", "sightline.cli", "translate", "--model", "en-de", "a dog")
    elif how == "service":
        pytest.importorskip("fastapi")
        lookups, written = traced("-c", SERVICE)
    else:
        from small_models import save_language_model

        folder = save_language_model(tmp_path / "run")
        script = f"import sightline; sightline.load({str(folder)!r}).describe('a', length=3)"
        lookups, written = traced("-c", script)
    assert lookups == []
    assert written == []


def test_the_library_alone_would_write(traced):
    """What the test above would see: onnxruntime with its defaults."""
    from sightline import zoo

    graph = str(zoo.FOLDER / "shakespeare" / "step.onnx")
    _, written = traced("-c", NOT_OURS.replace("GRAPH", repr(graph)))
    if not written:
        pytest.skip("this build of onnxruntime has no telemetry")
    assert written


def test_a_program_that_imported_onnxruntime_first_is_told(monkeypatch):
    import onnxruntime

    from sightline.runtime import model_folder

    calls = []
    monkeypatch.setattr(onnxruntime, "disable_telemetry_events", lambda: calls.append(1))
    model_folder.session_options()
    assert calls
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"

"""The tokeniser against the original in the jar of pycocoevalcap, where Java is installed."""

import json
import random
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from sightline.metrics.ptb import PUNCTUATION, tokenize_lines

ODD_LINES = (Path(__file__).parent / "odd_lines.jsonl").read_text(encoding="utf-8").splitlines()
FRAGMENTS = [raw for line in ODD_LINES if len(raw := json.loads(line)["raw"]) < 14]
GLUE = ["", " ", " ", " ", ".", ". ", ", ", "-", "'", "\u2019", "\u00a0", "/", "_", '"', "\t", ") "]


@pytest.fixture(scope="module")
def jar():
    spec = find_spec("pycocoevalcap")
    if spec is None or shutil.which("java") is None:
        pytest.skip("needs Java and pycocoevalcap")
    (path,) = Path(spec.submodule_search_locations[0]).glob("tokenizer/stanford-corenlp-*.jar")
    return path


def original(jar, lines, folder):
    """Exactly what pycocoevalcap's PTBTokenizer does with the lines."""
    path = folder / "lines.txt"
    path.write_bytes("\n".join(lines).encode())
    command = ["java", "-Dfile.encoding=UTF-8", "-cp", jar, "edu.stanford.nlp.process.PTBTokenizer"]
    run = subprocess.run(
        [*command, "-preserveLines", "-lowerCase", path],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8", "PATH": str(Path(shutil.which("java")).parent)},
    )
    tokens = [line.rstrip().split(" ") for line in run.stdout.decode().split("\n")]
    return [" ".join(token for token in line if token not in PUNCTUATION) for line in tokens]


@pytest.mark.parametrize("seed", [1, 2])
def test_random_odd_lines_come_out_as_from_the_jar(jar, tmp_path, seed):
    rng = random.Random(seed)
    lines = []
    while len(lines) < 4000:
        line = "".join(rng.choice(FRAGMENTS) + rng.choice(GLUE) for _ in range(rng.randint(1, 7)))
        # An attribute's quotes may span lines there, and Java and Python differ in some Greek
        # capitals next to digits (docs/guides/metrics.md).
        if "='" not in line and '="' not in line and "\u03a3" not in line:
            lines.append(line)
    for line, theirs, ours in zip(
        lines, original(jar, lines, tmp_path), tokenize_lines(lines), strict=True
    ):
        assert ours == theirs, line

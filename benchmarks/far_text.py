"""Which translations are pointed out as unsure: of text like the training's, and of parliaments.

    python -m benchmarks.far_text [MODEL-de MODEL-fr]

Writes manifests of held-out lines (half `dev`, to calibrate on; half `test`) to far_text/ in the
current folder: Tatoeba's dev, Multi30k's val, and pairs of Europarl and the Hansards. Then it
prints, for each half and several bars, how many confidences are below and how many of these
translations are right, and the bar that the dev halves choose (docs/lab/confidence.md).
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

from benchmarks.data import data_path
from sightline.data.manifest import Example, write_manifest
from sightline.runtime.confidence import Confidence, read_confidence
from sightline.runtime.model_folder import find_model
from sightline.tasks import load_for
from sightline.tasks.calibration import Judged, judge

OUT = Path("far_text")
FAR = {"de": "europarl", "fr": "hansards"}
MOST = {"tatoeba": 600, "multi30k": 400}
BARS = (0.05, 0.1, 0.2, 0.3)
RIGHT = 0.1  # the share of right translations that a note may point out
Pairs = list[tuple[str, str]]


def pairs_of(data: Path, language: str) -> dict[str, Pairs]:
    """English and its translation, by where the text is from."""
    tatoeba = _lines(data / f"tatoeba/dev.en-{language}.tsv.gz")
    captions = (_lines(data / f"multi30k/val.{side}.gz") for side in ("en", language))
    gold = data / "gold_alignments"
    if language == "de":  # German first
        far = [line.split(" ||| ")[::-1] for line in _lines(gold / "de-en/ende.txt")]
    else:
        far = [line.split(" ||| ") for line in _lines(gold / "awesome-align/examples/enfr.src-tgt")]
    return {
        "tatoeba": [tuple(line.split("\t")[:2]) for line in tatoeba],
        "multi30k": list(zip(*captions, strict=True))[::2],
        FAR[language]: [(_joined(source), _joined(target)) for source, target in far],
    }


def _lines(path: Path) -> list[str]:
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    return text.decode("utf-8", errors="replace").splitlines()


def _joined(tokens: str) -> str:
    """Tokenised text as it is usually written."""
    text = re.sub(r" ([.,;:!?)%])", r"\1", tokens)
    text = re.sub(r"([(]) ", r"\1", text)
    return text.replace(" 's", "'s").replace("' ", "'").replace(" n't", "n't").strip()


def manifest(name: str, pairs: Pairs, most: int) -> Path:
    kept = [pair for pair in pairs if len(pair[0].split()) > 2 and pair[1].strip()][:most]
    examples = [
        Example(
            f"{name}-{n}", "dev" if n % 2 else "test", (target.strip(),), "source", None, source
        )
        for n, (source, target) in enumerate(kept)
    ]
    path = OUT / f"{name}.jsonl"
    write_manifest(path, examples)
    return path


def shares_below(found: Judged, sure: Confidence) -> dict[float, tuple[float, float]]:
    """For each bar: the share of confidences below it, and how many of these are right."""
    confidences = found.confidences(sure)
    shares = {}
    for bar in BARS:
        low = confidences < bar
        shares[bar] = (float(low.mean()), float(found.right[low].mean()) if low.any() else 0.0)
    return shares


def main() -> None:
    OUT.mkdir(exist_ok=True)
    models = sys.argv[1:] or ["en-de", "en-fr"]
    wrong_enough = {*BARS}  # the bars below which hardly anything is right, on every dev half
    for language, name in zip(FAR, models, strict=True):
        model, sure = load_for(name), read_confidence(find_model(name))
        for source, pairs in pairs_of(data_path(), language).items():
            path = manifest(f"{source}-{language}", pairs, MOST.get(source, len(pairs)))
            for split in ("dev", "test"):
                found = judge(model, path, split)
                if sure is None or found is None:
                    continue
                below = shares_below(found, sure)
                if split == "dev":
                    wrong_enough -= {bar for bar in BARS if below[bar][1] > RIGHT}
                shown = (f"below {b:g}: {n:.1%}, {r:.1%} right" for b, (n, r) in below.items())
                print(found.summary(sure), "; ".join(shown), sep="\n    ", flush=True)
    chosen = f"{max(wrong_enough):g}" if wrong_enough else "none"
    print(f"The highest bar below which at most {RIGHT:.0%} are right on every dev half: {chosen}")


if __name__ == "__main__":
    main()

"""Speech recognisers on made speech: error rates by voice, onsets, utterances joined end to end.

python -m benchmarks.speech spoken.jsonl phones runs/content --figure joined.png
python -m benchmarks.speech spoken.jsonl runs/phones,model.attention.window=25

The manifest is one of `sightline prepare spoken`, whose test split has true times. Onsets are read
from attention by the rule in tasks/transcribe/timing.py, and compared where the phones are right.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sightline.data.manifest import Example, read_split
from sightline.figures.chart import COLOURS, Curve, chart
from sightline.media.audio import features, filter_banks, read_sound
from sightline.metrics.error_rate import edit_alignment, edits
from sightline.runtime.describer import Describer
from sightline.tasks import load_for
from sightline.tasks.transcribe.timing import Span, spans

CLOSE = (0.02, 0.05, 0.1)  # seconds
JOINED = (1, 2, 5, 10)


def onset_errors(
    said: Sequence[str], starts: Sequence[float], heard: Sequence[Span]
) -> list[float]:
    """Found minus true onset of each phone that was heard right, in seconds."""
    errors, i, j = [], 0, 0
    for first, second in edit_alignment(said, [span.text for span in heard]):
        if first == second:
            errors.append(heard[j].start - starts[i])
        i, j = i + (first is not None), j + (second is not None)
    return errors


def by_voice(model: Describer, examples: Sequence[Example]) -> None:
    voices = sorted({str(example.meta["voice"]) for example in examples})
    for voice in voices:
        some = [example for example in examples if example.meta["voice"] == voice]
        began = time.perf_counter()
        found = model.describe([str(example.media) for example in some])
        seconds = time.perf_counter() - began
        wrong = total = 0
        errors: list[float] = []
        for example, description in zip(some, found, strict=True):
            said = example.targets[0].split()
            wrong, total = wrong + edits(said, description.tokens), total + len(said)
            starts = [start for start, _ in example.meta["spans"]]
            errors += onset_errors(said, starts, spans(description))
        sound = sum(float(example.meta["spans"][-1][1]) for example in some)
        off = np.abs(errors)
        near = ", ".join(f"{np.mean(off <= s):.1%} within {1000 * s:.0f} ms" for s in CLOSE)
        print(
            f"  {voice:6} {len(some):4} sentences  PER {wrong / total:.2%}  onsets {near}, "
            f"median {1000 * np.median(errors):+.0f} ms  {seconds / sound:.3f} of real time",
            flush=True,
        )


def joined_rates(model: Describer, examples: Sequence[Example], most: int) -> list[float]:
    """PER of utterances joined end to end, which are read in one piece."""
    rates = []
    for count in JOINED:
        wrong = total = 0
        for at in range(0, min(most, len(examples) - count + 1), count):
            some = examples[at : at + count]
            sound = np.concatenate([read_sound(str(example.media)) for example in some])
            inputs = model.reader.inputs(features(filter_banks(sound)))  # type: ignore[attr-defined]
            (found,) = model.describe_inputs([[inputs]])
            said = " ".join(example.targets[0] for example in some).split()
            wrong, total = wrong + edits(said, found.tokens), total + len(said)
        rates.append(wrong / total)
        print(f"  {count:2} joined: PER {rates[-1]:.1%} of {total} phones", flush=True)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("manifest", type=Path)
    parser.add_argument("models", nargs="+", help="MODEL, or RUN,key=value,… with changes")
    parser.add_argument("--most", type=int, default=60, help="utterances that are joined")
    parser.add_argument("--only-joined", action="store_true", help="no error rates by voice")
    parser.add_argument("--figure", type=Path, help="draw the error rates of joined utterances")
    given = parser.parse_args()
    examples = read_split(given.manifest, "test", "audio")
    curves = []
    for number, name in enumerate(given.models):
        place, *changes = name.split(",")
        model = load_for(place, "transcribe", ["search.max_length=5000", *changes])
        print(name, flush=True)
        if not given.only_joined:
            by_voice(model, examples)
        heard = [example for example in examples if example.meta["voice"] != "slt"]
        points = list(
            zip(JOINED, (100 * r for r in joined_rates(model, heard, given.most)), strict=True)
        )
        curves.append(Curve(points, name, COLOURS[number % len(COLOURS)], dots=points))
    if given.figure is not None:
        labels = {"x_label": "utterances joined end to end", "y_label": "phone error rate in %"}
        chart(curves, from_zero=True, **labels).save(given.figure)


if __name__ == "__main__":
    main()

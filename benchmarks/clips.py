"""Cho et al.'s table IV on clips: perplexity over all captions, METEOR and CIDEr of each run.

    python -m benchmarks.clips RUN RUN …

Vectors come from the caches that training made; those of test clips are computed if they lack.
Differences to the first run have a paired bootstrap over the clips.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sightline.data.manifest import normalise_caption, read_split
from sightline.metrics import bootstrap, compare
from sightline.metrics.perplexity import Perplexity
from sightline.runtime.describer import Describer
from sightline.runtime.model_folder import find_model
from sightline.tasks import load_model, read_recipe, spec_of
from sightline.tasks.clip.data import CachedClips
from sightline.tasks.clip.model import build_clip_encoder
from sightline.tasks.evaluation import Evaluation, evaluate_manifest
from sightline.types import Inputs

SHOWN = ("perplexity", "bleu_4", "meteor", "cider")


@dataclass(frozen=True)
class ByFile:
    """A reader that has the vectors of files in a cache."""

    clips: CachedClips
    ids: Mapping[str, str]
    takes: Literal["file", "text"] = "file"
    batch: int = 16

    def read(self, source: Any, *, whole: bool = False) -> list[Inputs]:
        return [self.clips.inputs([self.ids[os.fspath(source)]])]


def cached(run: str, split: str) -> Describer:
    """The run's model, reading clips of this split from the cache."""
    recipe: Any = read_recipe(find_model(run) / "config.yaml")
    model = load_model(run)
    files = {e.id: e.media for e in read_split(recipe.manifest, split, "video") if e.media}
    recipe = replace(recipe, encoder=replace(recipe.encoder, mirror=False))
    clips = CachedClips(recipe, build_clip_encoder(recipe), files, {})
    return replace(model, reader=ByFile(clips, {os.fspath(p): name for name, p in files.items()}))


def paired_perplexity(one: Evaluation, other: Evaluation) -> tuple[float, float]:
    """The 95 % interval of the difference, by a bootstrap over the clips (of one vocabulary)."""
    tokens = np.array(
        [sum(len(normalise_caption(t).split()) + 1 for t in e.targets) for e in one.examples], float
    )
    samples = []
    for each in (one, other):
        nats = [np.log(each.scores["per_item"][e.id]["perplexity"]) for e in each.examples]
        rows = np.stack([nats * tokens, tokens], axis=1)
        samples.append(bootstrap.resample([Perplexity()], [rows])[0])
    low, high = bootstrap.interval(samples[0] - samples[1])[:, 0].tolist()
    return low, high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--split", default="test")
    parser.add_argument("--texts", action="store_true", help="print the captions, too")
    given = parser.parse_args()
    results: dict[str, Evaluation] = {}
    for run in given.runs:
        results[run] = evaluate_manifest(cached(run, given.split), None, given.split, None)
        corpus, intervals = (results[run].scores[each] for each in ("corpus", "intervals"))
        parts = [
            f"{key} {corpus[key]:.4f} [{intervals[key][0]:.4f}, {intervals[key][1]:.4f}]"
            for key in SHOWN
        ]
        print(f"{Path(run).name}: " + ", ".join(parts), flush=True)
    first, *others = results.items()
    for name, result in others:
        low, high = paired_perplexity(result, first[1])
        print(f"{Path(name).name} − {Path(first[0]).name}: perplexity [{low:+.2f}, {high:+.2f}]")
    references = {e.id: e.targets for e in first[1].examples}
    for name, result in others:
        found = compare(result.texts, first[1].texts, references, ("meteor", "cider"))
        for key in ("meteor", "cider"):
            low, high = found["intervals"][key]
            pair = f"{Path(name).name} − {Path(first[0]).name}"
            change, p = found["difference"][key], found["p"][key]
            print(f"{pair}: {key} {change:+.4f} [{low:+.4f}, {high:+.4f}], p {p:.3f}")
    for row, scores in spec_of("clip").published["youtube2text"].items():
        print(f"{row} (Youtube2Text): perplexity {scores['perplexity']}, METEOR {scores['meteor']}")
    if given.texts:
        for example in first[1].examples:
            said = " | ".join(result.texts[example.id] for result in results.values())
            print(f"{example.id}: {said} ({example.targets[0]}; {example.targets[1]})")


if __name__ == "__main__":
    main()

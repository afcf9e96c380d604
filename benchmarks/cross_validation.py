"""Cross-validation of a classifier: ten trainings, each tested on the fold that it did not see.

python -m benchmarks.cross_validation polarity polarity.jsonl --out runs/polarity-folds

The manifest is as `sightline prepare polarity` and `prepare subjectivity` make it, its folds in
`meta`. What was trained already is not trained again. With several `--seeds`, each fold has a
model for each, and their ensemble is scored too.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import sightline
from sightline.commands.recipes import find_recipe
from sightline.data.converters.classes import FOLDS, split_of_fold
from sightline.data.manifest import Example, read_manifest, write_manifest
from sightline.metrics import score
from sightline.runtime.describer import Describer
from sightline.tasks import build_task, read_recipe
from sightline.training.checkpoint import Run
from sightline.training.loop import train


def accuracy(model: Describer, examples: list[Example]) -> float:
    described = model.describe([str(example.source) for example in examples])
    texts = {e.id: d.text for e, d in zip(examples, described, strict=True)}
    references = {example.id: example.targets for example in examples}
    return 100 * score(texts, references, ["accuracy"], intervals=False)["corpus"]["accuracy"]


def fold_scores(given: argparse.Namespace, examples: list[Example], fold: int) -> list[float]:
    """The accuracy of each seed's model on one fold, and that of all together."""
    folder = Path(given.out) / f"fold-{fold}"
    splits = [replace(e, split=split_of_fold(e.meta["fold"], fold)) for e in examples]
    write_manifest(folder / "manifest.jsonl", splits)
    for seed in given.seeds:
        data = [f"manifest={folder / 'manifest.jsonl'}", f"training.seed={seed}"]
        recipe = read_recipe(find_recipe(Path(given.recipe)), [*data, *given.overrides])
        out = folder / f"seed-{seed}"
        train(build_task(recipe), out, resume=Run(out).newest() is not None)
    models = [sightline.load(folder / f"seed-{seed}") for seed in given.seeds]
    held_out = [example for example in splits if example.split == "test"]
    scores = [accuracy(model, held_out) for model in models]
    return [*scores, accuracy(models[0].ensemble(*models[1:]), held_out)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe")
    parser.add_argument("manifest")
    parser.add_argument("overrides", nargs="*", help="key=value, as for `sightline train`")
    parser.add_argument("--out", required=True)
    parser.add_argument("--folds", type=int, nargs="+", default=range(FOLDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    given = parser.parse_intermixed_args()
    examples = read_manifest(given.manifest, medium="source")
    rows = []
    for fold in given.folds:
        rows.append(fold_scores(given, examples, fold))
        shown = " ".join(f"{value:.2f}" for value in rows[-1][:-1])
        print(f"fold {fold}: {shown}; together {rows[-1][-1]:.2f}", flush=True)
    single, together = np.array(rows)[:, :-1].mean(1), np.array(rows)[:, -1]
    for name, values in (("single models", single), ("together", together)):
        print(f"{name}: {values.mean():.2f} (standard deviation {values.std():.2f})", flush=True)


if __name__ == "__main__":
    main()

"""Does attention earn its place? Three captioners on one encoder, with one budget.

    python -m benchmarks.baselines MANIFEST VGG16 [--out runs] [--seeds 1] [--models NAME …]
        [--split test]

Soft attention, Show and Tell (the picture only before the first word) and a vanilla RNN (the
picture at every step) are trained on the vectors of one frozen VGG-16 (its weight file) in three
steps, the same for each: by likelihood, on by the score of what it writes, and the mean of both.
Then they describe the test split. Stopped, it goes on where it was.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sightline
from benchmarks import trainings
from sightline.data.manifest import Example, read_split
from sightline.data.progress import counted
from sightline.metrics import compare, score
from sightline.tasks.captioner import SEARCH_BATCH, Captioner
from sightline.training.journal import read_log
from sightline.types import Layout

MODELS = ("soft-paper", "show-and-tell", "vanilla")  # in the order expected; recipes flickr8k-…
SAME = ["min_count=4", "search.beam=5", "training.select=cider"]
REWARD = [
    *("self_critical=5", "reward.meteor=1", "batching.size=16", "search.max_length=25"),
    *("loss.label_smoothing=0", "model.dropout=0"),
    *("training.steps=1500", "training.evaluate_every=500", "training.ema=0.99"),
    *("training.optimiser.kind=adam", "training.optimiser.learning_rate=0.00015"),
    *("training.optimiser.clip_norm=1", "training.schedule.warmup=20"),
    "training.schedule.final=0.1",
]
METRICS = ["bleu", "meteor", "cider"]
SHOWN = ("bleu_1", "bleu_4", "meteor", "cider")
Trained = tuple[str, int]  # a model and its seed
Texts = dict[str, str]  # by the example's id


def train(name: str, seed: int, out: Path, data: Sequence[str]) -> tuple[Path, Path, Path]:
    """A model's three folders: by likelihood, by reward, the mean of both."""
    likelihood = out / f"{name}-{seed}"
    reward, mean = Path(f"{likelihood}-cider"), Path(f"{likelihood}-mean")
    recipe, same = f"flickr8k-{name}", [*data, *SAME, f"training.seed={seed}"]
    trainings.train(recipe, likelihood, same)
    trainings.train(recipe, reward, [*same, *REWARD, f"training.initial={likelihood}"])
    if not mean.exists():
        trainings.sightline("average", likelihood, reward, "--out", mean)
    return likelihood, reward, mean


def captions(
    models: Mapping[Trained, Captioner], examples: Sequence[Example]
) -> dict[Trained, Texts]:
    """What each model writes; they have one encoder, which reads each picture once for all."""
    reader = next(iter(models.values()))
    vectors: dict[str, NDArray[np.float32]] = {}  # of each picture, (M, D)
    parts = [examples[at : at + SEARCH_BATCH] for at in range(0, len(examples), SEARCH_BATCH)]
    for some in counted(parts, len(parts), "reading pictures"):
        images = np.stack([reader.read(str(example.media)).image for example in some])
        vectors |= zip((e.id for e in some), reader.encoder.encode(images), strict=True)

    def read(ids: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([vectors[i] for i in ids])

    ids, layout = list(vectors), Layout.grid(*reader.encoder.grid())
    written = {}
    for trained, model in counted(models.items(), len(models), "describing"):
        found = model.describe_vectors(read, ids, layout)
        written[trained] = {i: each.text for i, each in zip(ids, found, strict=True)}
    return written


def report_training(folders: Mapping[Trained, Sequence[Path]]) -> None:
    """How the two trainings ended, by their logs."""
    print(f"\n{'CIDEr / BLEU-4 on dev':<22}{'by likelihood':>15}{'by reward':>15}")
    for (model, seed), (*runs, _) in folders.items():
        cells = []
        for run in runs:
            evaluations = (e for e in read_log(run / "log.jsonl") if e["kind"] == "evaluation")
            best = max(evaluations, key=lambda evaluation: evaluation["cider"])
            cells.append(f"{100 * best['cider']:.1f} / {100 * best['bleu_4']:.1f}")
        print(f"{model:<17}{seed:<5}{cells[0]:>15}{cells[1]:>15}")


def report_scores(
    written: Mapping[Trained, Texts], references: Mapping[str, Sequence[str]]
) -> None:
    """Each model's scores, the means of several seeds, and each one's lead over the next."""
    print(f"\n{'the mean of both':<22}" + "".join(f"{key:>9}" for key in SHOWN))
    scores: dict[str, list[list[float]]] = {}  # of each model's seeds
    for (model, seed), texts in written.items():
        found = score(texts, references, METRICS, intervals=False)["corpus"]
        scores.setdefault(model, []).append([100 * found[key] for key in SHOWN])
        print(f"{model:<17}{seed:<5}" + "".join(f"{value:9.1f}" for value in scores[model][-1]))
    for model, seeds in scores.items():
        if len(seeds) > 1:
            means = np.mean(seeds, axis=0)
            print(f"{model:<17}mean " + "".join(f"{value:9.1f}" for value in means))
    every_seed = dict.fromkeys(seed for _, seed in written)
    for (first, second), seed in product(pairwise(scores), every_seed):
        both = compare(written[first, seed], written[second, seed], references, METRICS)
        print(f"\n{first} − {second}, seed {seed} (95 % of resampled sets)")
        for key in SHOWN:
            low, high = both["intervals"][key]
            gap = both["difference"][key]
            print(f"  {key:<8}{100 * gap:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})")


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.baselines")
    asked.add_argument("manifest", type=Path)
    asked.add_argument("vgg16", type=Path, help="VGG-16's weights, .safetensors")
    asked.add_argument("--out", type=Path, default=Path("runs"))
    asked.add_argument("--seeds", type=int, nargs="+", default=[1])
    asked.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    asked.add_argument("--split", default="test")
    given = asked.parse_args()
    data = [f"manifest={given.manifest}", f"encoder.weights={given.vgg16}"]
    folders = {
        (name, seed): train(name, seed, given.out, data)
        for name in given.models
        for seed in given.seeds
    }
    report_training(folders)
    examples = [e for e in read_split(given.manifest, given.split, "caption") if e.targets]
    print(f"\n{len(examples)} pictures, the {given.split} split of {given.manifest}")
    models = {trained: sightline.load(mean) for trained, (*_, mean) in folders.items()}
    report_scores(captions(models, examples), {e.id: e.targets for e in examples})


if __name__ == "__main__":
    main()

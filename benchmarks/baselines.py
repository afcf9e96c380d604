"""Does attention earn its place? Three captioners on one encoder, with one budget.

    python -m benchmarks.baselines MANIFEST VGG16 [key=value …] [--out runs] [--seeds 1]
        [--models NAME …] [--split test]

Soft attention, Show and Tell (the picture only before the first word) and a vanilla RNN (the
picture at every step) are trained on the vectors of one frozen VGG-16 (its weight file) in three
steps, the same for each: with cross-entropy, then self-critically, then the mean of both, two parts
to one (chosen on dev). Then they describe the test split, as they were after each step. A stopped
run is resumed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path

import numpy as np

import sightline
from benchmarks import trainings
from benchmarks.encoded import encode_pictures
from sightline.data.manifest import Example, read_split
from sightline.data.progress import counted
from sightline.metrics import compare, score
from sightline.runtime.describer import Describer

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
STEPS = ("cross-entropy", "then self-critical", "the mean of both")
Trained = tuple[str, str, int]  # a step, a model's name, its seed
Texts = dict[str, str]  # by the example's id


def train(name: str, seed: int, out: Path, data: Sequence[str]) -> dict[Trained, Path]:
    """A model's folders, after each step."""
    likelihood = out / f"{name}-{seed}"
    reward, mean = Path(f"{likelihood}-cider"), Path(f"{likelihood}-mean")
    recipe, same = f"flickr8k-{name}", [*data, *SAME, f"training.seed={seed}"]
    trainings.train(recipe, likelihood, same)
    trainings.train(recipe, reward, [*same, *REWARD, f"training.initial={likelihood}"])
    if not mean.exists():
        trainings.sightline("average", likelihood, likelihood, reward, "--out", mean)
    folders = (likelihood, reward, mean)
    return {(step, name, seed): path for step, path in zip(STEPS, folders, strict=True)}


def captions(
    models: Mapping[Trained, Describer], examples: Sequence[Example]
) -> dict[Trained, Texts]:
    """What each model writes; they have one encoder, which reads each picture once for all."""
    pictures = encode_pictures(next(iter(models.values())), [e.media for e in examples])
    written = {}
    for trained, model in counted(models.items(), len(models), "describing"):
        descriptions = pictures.given_to(model).describe(range(len(examples)))
        written[trained] = {e.id: d.text for e, d in zip(examples, descriptions, strict=True)}
    return written


def report(written: Mapping[Trained, Texts], references: Mapping[str, Sequence[str]]) -> None:
    """Scores after each step, the means of several seeds, and each model's lead over the next."""
    seeds = list(dict.fromkeys(seed for *_, seed in written))
    names = list(dict.fromkeys(name for _, name, _ in written))
    for step in STEPS:
        print(f"\n{step:<22}" + "".join(f"{key:>9}" for key in SHOWN))
        for name in names:
            rows = []
            for seed in seeds:
                scores = score(written[step, name, seed], references, METRICS, intervals=False)
                rows.append([100 * scores["corpus"][key] for key in SHOWN])
                _row(f"{name} {seed}", rows[-1])
            if len(rows) > 1:
                _row(f"{name} mean", np.mean(rows, axis=0))
    print("\nleads after the last step, with 95 % of resampled sets")
    for (first, second), seed in product(pairwise(names), seeds):
        pair = (written[STEPS[-1], name, seed] for name in (first, second))
        both = compare(*pair, references, METRICS)
        print(f"{first} − {second}, seed {seed}")
        for key in SHOWN:
            low, high = both["intervals"][key]
            gap = both["difference"][key]
            print(f"  {key:<8}{100 * gap:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})")


def _row(label: str, values: Iterable[float]) -> None:
    print(f"{label:<22}" + "".join(f"{value:9.1f}" for value in values), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baselines")
    parser.add_argument("manifest", type=Path)
    parser.add_argument("vgg16", type=Path, help="VGG-16's weights, .safetensors")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="of all three recipes")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--split", default="test")
    options = parser.parse_args()
    data = [f"manifest={options.manifest}", f"encoder.weights={options.vgg16}", *options.overrides]
    folders: dict[Trained, Path] = {}
    for name, seed in product(options.models, options.seeds):
        folders |= train(name, seed, options.out, data)
    examples = [e for e in read_split(options.manifest, options.split, "image") if e.targets]
    models = {trained: sightline.load(folder) for trained, folder in folders.items()}
    written = captions(models, examples)
    print(f"\n{len(examples)} pictures, the {options.split} split of {options.manifest}")
    report(written, {e.id: e.targets for e in examples})


if __name__ == "__main__":
    main()

"""Does fine-tuning on a few pictures of one theme help on the theme's other pictures?

    python -m benchmarks.finetune flickr8k.jsonl dog+snow [--pictures 160] [--model default]
    python -m benchmarks.finetune coco.jsonl giraffe,giraffes

A theme is words of captions: `+` is and, `,` is or. Pictures are of the theme if at least two of
their people's captions are. The first model is compared with `sightline train finetune` of 160 of
the theme's training pictures (of which 24 choose the best checkpoint) on the theme's pictures of
dev and test, by the paired bootstrap. `ALL` is every picture of a manifest.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import sightline
from benchmarks.trainings import sightline as command
from sightline.data.manifest import Example, normalise_caption, read_manifest, write_manifest
from sightline.metrics import compare

DEV = 0.15  # of the pictures: they choose the best checkpoint
METRICS = ("bleu_4", "meteor", "rouge_l", "cider")


def of_theme(example: Example, theme: str) -> bool:
    wanted = [set(words.split(",")) for words in theme.split("+")]
    captions = [set(normalise_caption(text).split()) for text in example.targets]
    named = sum(all(words & caption for words in wanted) for caption in captions)
    return theme == "ALL" or named >= min(2, len(captions))


def by_people(example: Example) -> Example:
    origins = example.origins or ("human",) * len(example.targets)
    pairs = zip(example.targets, origins, strict=True)
    return replace(example, targets=tuple(t for t, o in pairs if o == "human"), origins=())


def select(manifest: Path, theme: str, count: int, seed: int = 1) -> list[Example]:
    """So many of the theme's training pictures as train and dev, and all held-out ones as test."""
    people = [each for each in map(by_people, read_manifest(manifest)) if each.targets]
    found = [each for each in people if of_theme(each, theme)]
    mine = [each for each in found if each.split == "train"]
    chosen = np.random.default_rng(seed).permutation(len(mine))[:count]
    dev = round(DEV * len(chosen))
    splits = ["dev"] * dev + ["train"] * (len(chosen) - dev)
    few = [replace(mine[i], split=split) for i, split in zip(chosen, splits, strict=True)]
    return [*few, *(replace(each, split="test") for each in found if each.split != "train")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("manifest", type=Path)
    parser.add_argument("theme")
    parser.add_argument("--pictures", type=int, default=160)
    parser.add_argument("--model", default="default")
    parser.add_argument("--out", type=Path, default=Path("runs/finetune"))
    parser.add_argument("--shown", type=int, default=5)
    parser.add_argument("overrides", nargs="*", help="of the recipe, key=value")
    given = parser.parse_intermixed_args()
    given.out.mkdir(parents=True, exist_ok=True)
    examples = select(given.manifest, given.theme, given.pictures)
    manifest = given.out / "theme.jsonl"
    write_manifest(manifest, examples)
    began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = [f"manifest={manifest}", f"features={given.out / 'features'}"]
    arguments += [f"training.initial={given.model}", *given.overrides]
    command("train", "finetune", *arguments, "--out", given.out / "run")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    held_out = [each for each in examples if each.split == "test"]
    references = {each.id: each.targets for each in held_out}
    models = (given.model, given.out / "run")
    texts = [
        dict(
            zip(
                references,
                (d.text for d in sightline.load(model).describe([e.media for e in held_out])),
                strict=True,
            )
        )
        for model in models
    ]
    result = compare(texts[1], texts[0], references, METRICS)
    counts = {s: sum(e.split == s for e in examples) for s in ("train", "dev", "test")}
    print(f"\n{given.theme}: {counts}; {seconds:.0f} s of CPU, {time.perf_counter() - began:.0f} s")
    print(f"{'':10}{'before':>8}{'after':>8}{'gain':>8}{'95 %':>16}{'p':>8}")
    for key in METRICS:
        low, high = (100 * edge for edge in result["intervals"][key])
        numbers = [100 * result[part][key] for part in ("second", "first", "difference")]
        shown = "".join(f"{number:8.1f}" for number in numbers)
        print(f"{key:10}{shown}{f'{low:.1f} to {high:.1f}':>16}{result['p'][key]:8.3f}")
    for each in held_out[: given.shown]:
        print(f"{each.id}: {texts[0][each.id]!r} → {texts[1][each.id]!r} ({each.targets[0]!r})")


if __name__ == "__main__":
    main()

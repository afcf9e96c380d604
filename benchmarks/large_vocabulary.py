"""A vocabulary of 30,000 words: trained with the full softmax and with the sampled one.

    python -m benchmarks.large_vocabulary FOLDER

No language of Multi30k has 30,000 words (Czech has 23,599, German 18,506). So one model writes two
of them: English to German and to Czech, chosen by the source's first word, with the 30,000
commonest of their words as its vocabulary. Trains both models into FOLDER, alike but for the
softmax, then prints their BLEU on the test sets, and tokens per second of whole training steps on
the same batches, in turns. Run again after an interruption, it resumes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import torch

from benchmarks import machine, trainings
from benchmarks.translation_quality import report_scores, translations
from sightline.commands.recipes import SHIPPED
from sightline.data.manifest import Example, read_split
from sightline.media.text import read_lines
from sightline.nn.kernels.malloc import keep_freed_memory
from sightline.nn.model import Batch
from sightline.tasks import read_recipe
from sightline.tasks.translate.data import TranslationData
from sightline.tasks.translate.recipe import TranslateRecipe
from sightline.training.optimisers import build_optimiser, clip_gradient

LANGUAGES = ("de", "cs")
FILES = {"train": "train", "dev": "val", "test": "test_2016_flickr"}
WORDS, NEGATIVES = 30_000, 3000
BATCHES = 8  # for the speed, after one that warms up
SETTINGS = [
    *("source.kind=word", "source.size=12000", "target.kind=word", f"target.size={WORDS}"),
    *("encoder.embedding=128", "encoder.hidden=128", "encoder.dropout=0.2"),
    *("model.embedding=128", "model.hidden=256", "model.attention.size=128", "model.dropout=0.2"),
    *("model.tied=false", "batching.size=4000"),
    "loss.label_smoothing=0",  # there is none with a sampled softmax
    *("training.steps=1500", "training.evaluate_every=500", "training.patience=0"),
    *("training.optimiser.learning_rate=0.002", "training.schedule.warmup=100"),
    *("training.keep=1", "training.save_every=200", "training.tensorboard=false"),
]
KINDS = {"full": 0, "sampled": NEGATIVES}


def prepare(folder: Path, data: Path, dev: int = 250) -> Path:
    """The manifest; of each language's val set only the first `dev` pairs, for they only choose."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "en-de-cs.jsonl"
    if path.exists():
        return path
    lines = []
    for split, name in FILES.items():
        for language in LANGUAGES:
            both = (read_lines(data / f"{name}.{side}.gz") for side in ("en", language))
            pairs = list(zip(*both, strict=True))[: dev if split == "dev" else None]
            lines += [
                {
                    "id": f"{split}-{language}-{number}",
                    "split": split,
                    "source": f"{language}: {english}",
                    "targets": [other],
                }
                for number, (english, other) in enumerate(pairs, start=1)
            ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    return path


def overrides(manifest: Path, negatives: int) -> list[str]:
    return [f"manifest={manifest}", *SETTINGS, f"model.sampled_softmax={negatives}"]


def training_step(task: TranslationData) -> Callable[[Batch], int]:
    """A function that takes one training step and gives the number of target tokens."""
    torch.manual_seed(0)
    model = task.build_model().train()
    settings = task.recipe.training.optimiser
    optimiser = build_optimiser(settings, model)

    def step(batch: Batch) -> int:
        optimiser.zero_grad(set_to_none=True)
        loss, _ = model.loss(batch)
        loss.total.backward()
        clip_gradient(model.parameters(), settings.clip_norm)
        optimiser.step()
        return loss.tokens

    return step


def speeds(manifest: Path) -> tuple[int, dict[str, float]]:
    """The words of the vocabulary, and training tokens per second of processor time."""
    keep_freed_memory()
    recipe = SHIPPED / "multi30k-en-de.yaml"
    tasks = {
        kind: TranslationData(cast(TranslateRecipe, read_recipe(recipe, given)))
        for kind, given in ((kind, overrides(manifest, count)) for kind, count in KINDS.items())
    }
    steps = {kind: training_step(task) for kind, task in tasks.items()}
    epoch = tasks["full"].epoch(0)
    seconds, tokens = dict.fromkeys(KINDS, 0.0), dict.fromkeys(KINDS, 0)
    for number in range(min(BATCHES + 1, len(epoch))):
        for kind, step in steps.items():
            began = time.process_time()
            count = step(epoch[number])
            if number:
                seconds[kind] += time.process_time() - began
                tokens[kind] += count
    words = len(tasks["full"].target_language.vocab)
    return words, {kind: tokens[kind] / seconds[kind] for kind in KINDS}


def report_bleu(folder: Path, examples: list[Example]) -> None:
    written = translations({kind: str(folder / kind) for kind in KINDS}, examples, False)
    for language in LANGUAGES:
        some = [e for e in examples if str(e.source).startswith(f"{language}:")]
        print(f"\ninto {language}, {len(some)} sentences of the test set")
        texts = {kind: {e.id: every[e.id] for e in some} for kind, every in written.items()}
        report_scores(some, texts)
    print(f"\nboth, {len(examples)} sentences")
    report_scores(examples, written)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("python -m benchmarks.large_vocabulary FOLDER")
    folder = Path(sys.argv[1])
    manifest = prepare(folder, trainings.data_folder("multi30k"))
    for kind, negatives in KINDS.items():
        trainings.train("multi30k-en-de", folder / kind, overrides(manifest, negatives))
    print(f"\n{machine.describe()}")
    words, speed = speeds(manifest)
    full, sampled = speed["full"], speed["sampled"]
    print(f"{words} words; training, tokens per second of processor time on the same batches:")
    print(f"full {full:.0f}, sampled ({NEGATIVES} draws) {sampled:.0f}: {sampled / full:.2f} ×")
    report_bleu(folder, read_split(manifest, "test", "source"))


if __name__ == "__main__":
    main()

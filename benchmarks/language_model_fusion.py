"""What a language model adds where parallel text is scarce (Gulcehre et al. 2015).

    python -m benchmarks.language_model_fusion FOLDER

English to German with the first 2,900 pairs of Multi30k, a tenth; a language model of the German
side of the rest; both fused shallowly (the weight chosen on the val set) and deeply. Trains three
small models into FOLDER, each some minutes on one thread, and prints BLEU on the test set. Run
again after an interruption, it resumes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import sightline
from benchmarks import trainings
from benchmarks.translation_quality import Texts, report_scores
from sightline.data.manifest import Example, read_split
from sightline.media.text import read_lines
from sightline.metrics import score
from sightline.runtime.describer import Describer
from sightline.tasks.language_model.parts import evaluate_text
from sightline.tasks.translate.parts import fused

FEW = 2900
WEIGHTS = [0.05, 0.1, 0.15, 0.2, 0.3, 0.4]
EVERYWHERE = ["training.tensorboard=false", "training.patience=0", "training.keep=1"]
# The translator's sizes; the fused model has to repeat them
SIZES = [
    *("encoder.embedding=192", "encoder.hidden=192", "model.embedding=192", "model.hidden=256"),
    *("model.attention.size=192", "batching.size=2000"),
    "model.tied=false",  # deep fusion learns the output layer's matrix, which is no embedding then
]
TRANSLATOR = [
    *("source.size=2000", "target.size=2000"),
    *("training.steps=1600", "training.evaluate_every=200", "training.schedule.warmup=100"),
]
LANGUAGE_MODEL = [
    *("model.embedding=256", "model.hidden=512", "model.dropout=0.35"),
    *("training.steps=2000", "training.evaluate_every=500", "training.schedule.warmup=50"),
    "training.optimiser.learning_rate=0.002",
]
DEEP = ["training.steps=300", "training.evaluate_every=50", "training.schedule.warmup=50"]


def prepare(folder: Path, data: Path) -> None:
    """few.en and few.de, the first pairs; other.de, the rest of the German; val.de; a manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    english, german = (read_lines(data / f"train.{side}.gz") for side in ("en", "de"))
    for name, lines in (
        ("few.en", english[:FEW]),
        ("few.de", german[:FEW]),
        ("other.de", german[FEW:]),
        ("val.de", read_lines(data / "val.de.gz")),
    ):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if not (folder / "few.jsonl").exists():
        held_out = {"--dev": "val", "--test": "test_2016_flickr"}
        trainings.sightline(
            *("prepare", "parallel", "--train", folder / "few.en", folder / "few.de"),
            *(
                argument
                for option, name in held_out.items()
                for argument in (option, data / f"{name}.en.gz", data / f"{name}.de.gz")
            ),
            *("--out", folder / "few.jsonl"),
        )


def train_all(folder: Path) -> None:
    translator, language_model = folder / "translator", folder / "lm"
    same = [f"manifest={folder / 'few.jsonl'}", *SIZES, *EVERYWHERE]
    trainings.train("multi30k-en-de", translator, [*same, *TRANSLATOR])
    text = [f"text={folder / 'other.de'}", f"held_out_text={folder / 'val.de'}"]
    like = [f"like={translator}", *EVERYWHERE, *LANGUAGE_MODEL]
    trainings.train("multi30k-de-lm", language_model, [*text, *like])
    both = [f"fusion.translator={translator}", f"fusion.language_model={language_model}"]
    trainings.train("multi30k-en-de-fusion", folder / "deep", [*same, *both, *DEEP])


def translated(model: Describer, examples: Sequence[Example]) -> Texts:
    described = model.describe([str(example.source) for example in examples])
    return {e.id: d.text for e, d in zip(examples, described, strict=True)}


def bleu(texts: Texts, examples: Sequence[Example]) -> float:
    references = {e.id: e.targets for e in examples}
    return score(texts, references, ["sacrebleu"], intervals=False)["corpus"]["sacrebleu"]


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("python -m benchmarks.language_model_fusion FOLDER")
    folder = Path(sys.argv[1])
    prepare(folder, trainings.data_folder("multi30k"))
    train_all(folder)

    manifest = folder / "few.jsonl"
    val, test = (read_split(manifest, split, "source") for split in ("dev", "test"))
    translator, language_model, deep = (
        sightline.load(folder / name) for name in ("translator", "lm", "deep")
    )
    print("\nshallow fusion, BLEU on the val set by the language model's weight")
    scores = {0.0: bleu(translated(translator, val), val)}
    for weight in WEIGHTS:
        scores[weight] = bleu(translated(fused(translator, language_model, weight), val), val)
    print("  ".join(f"{weight}: {value:.2f}" for weight, value in scores.items()))
    best = max(WEIGHTS, key=scores.__getitem__)

    held_out = evaluate_text(language_model, (folder / "val.de").read_text(encoding="utf-8"))
    perplexity = held_out["perplexity"]
    print(f"\n{FEW} pairs; the language model's perplexity is {perplexity:.1f} per piece")
    systems = {
        "translator": translator,
        f"shallow, {best}": fused(translator, language_model, best),
        "deep": deep,
    }
    report_scores(test, {name: translated(model, test) for name, model in systems.items()})


if __name__ == "__main__":
    main()

"""Captions that repeat a content word, and what each constraint against it does to the scores.

python -m benchmarks.repeats flickr8k.jsonl [MODEL] [--split dev]
"""

from __future__ import annotations

import argparse
import time

import sightline
from sightline.data.manifest import read_split
from sightline.metrics import score
from sightline.runtime.describer import Options

CONSTRAINTS: dict[str, dict[str, int | bool]] = {
    "none": {"words_once": False},
    "no 3-gram twice": {"words_once": False, "no_repeat": 3},
    "no 2-gram twice": {"words_once": False, "no_repeat": 2},
    "no content word twice": {"words_once": True},
    "both": {"words_once": True, "no_repeat": 2},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("manifest")
    parser.add_argument("model", nargs="?", default="default")
    parser.add_argument("--split", default="dev")
    given = parser.parse_args()
    model = sightline.load(given.model)
    examples = read_split(given.manifest, given.split, "image")
    references = {example.id: example.targets for example in examples}
    inputs = [model.reader.read(example.media) for example in examples]
    print(f"{'':24}{'BLEU-4':>8}{'METEOR':>8}{'CIDEr':>8}{'repeats':>9}{'CPU s':>8}")
    for name, options in CONSTRAINTS.items():
        began = time.process_time()
        described = model.describe_inputs(inputs, Options(**options))
        seconds = time.process_time() - began
        texts = {e.id: d.text for e, d in zip(examples, described, strict=True)}
        scores = score(texts, references, ("bleu", "meteor", "cider"), intervals=False)["corpus"]
        ids = (model.codec.ids(d.tokens) for d in described)
        repeats = sum(model.codec.repeats(tokens) for tokens in ids) / len(described)
        shown = "".join(f"{100 * scores[key]:8.1f}" for key in ("bleu_4", "meteor", "cider"))
        print(f"{name:24}{shown}{repeats:9.1%}{seconds:8.1f}", flush=True)


if __name__ == "__main__":
    main()

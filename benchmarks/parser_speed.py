"""A parser by beam: bracket F1, how many outputs are trees over the words, sentences a second.

    python -m benchmarks.parser_speed MODEL penn.jsonl [--split test] [--beams 1,3]

Sentences are parsed in batches. The processor's time is of all threads; set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import sightline
from benchmarks import machine
from sightline.data.manifest import read_split
from sightline.data.trees import read_trees
from sightline.metrics import score
from sightline.types import Description


def is_tree(found: Description, words: list[str]) -> bool:
    """Whether it is one tree whose leaves are exactly these words."""
    trees = read_trees(found.text)
    return len(trees) == 1 and [leaf.word for leaf in trees[0].leaves()] == words


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("model")
    options.add_argument("manifest", type=Path)
    options.add_argument("--split", default="test")
    options.add_argument("--beams", default="1,3")
    given = options.parse_args()
    print(machine.describe())
    model = sightline.load(given.model)
    examples = read_split(given.manifest, given.split, "source")
    sentences = [str(example.source) for example in examples]
    words = sum(len(sentence.split()) for sentence in sentences)
    print(f"{len(sentences)} sentences of {words / len(sentences):.1f} words")
    model.describe(sentences[:8])
    for beam in map(int, given.beams.split(",")):
        began, processor = time.perf_counter(), time.process_time()
        found = model.describe(sentences, beam=beam)
        seconds, processor = time.perf_counter() - began, time.process_time() - processor
        pairs = zip(found, sentences, strict=True)
        whole = sum(is_tree(one, sentence.split()) for one, sentence in pairs)
        texts = {e.id: one.text for e, one in zip(examples, found, strict=True)}
        scores = score(texts, {e.id: e.targets for e in examples}, ["brackets"])
        print(
            f"beam {beam}: F1 {100 * scores['corpus']['bracket_f1']:.2f}, {whole} of "
            f"{len(found)} are trees; {len(found) / processor:.0f} sentences a second of the "
            f"processor's time, {len(found) / seconds:.0f} by the clock",
            flush=True,
        )


if __name__ == "__main__":
    main()

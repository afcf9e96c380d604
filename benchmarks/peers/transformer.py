"""CTranslate2 with a small transformer of about as many weights, in 32 bits and in 8."""

import sys
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from benchmarks.peers import work

LAYERS, HEADS, SIZE, INNER = 3, 4, 256, 1024


def build(given: dict[str, Any], folder: Path) -> int:
    """A model with random weights; how many."""
    rng, count = np.random.default_rng(0), 0
    spec = ctranslate2.specs.TransformerSpec.from_config((LAYERS, LAYERS), HEADS)

    def fill(layer: Any, rows: int, columns: int) -> None:
        nonlocal count
        layer.weight = rng.normal(0, columns**-0.5, (rows, columns)).astype(np.float32)
        if hasattr(layer, "bias"):
            layer.bias = np.zeros(rows, np.float32)
        count += rows * columns

    def norm(layer: Any) -> None:
        layer.gamma, layer.beta = np.ones(SIZE, np.float32), np.zeros(SIZE, np.float32)

    for side, vocabulary in ((spec.encoder, given["source"]), (spec.decoder, given["target"])):
        table = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        fill(table, vocabulary, SIZE)
        norm(side.layer_norm)
        for layer in side.layer:
            norm(layer.self_attention.layer_norm)
            fill(layer.self_attention.linear[0], 3 * SIZE, SIZE)
            fill(layer.self_attention.linear[1], SIZE, SIZE)
            if side is spec.decoder:
                norm(layer.attention.layer_norm)
                for part, rows in zip(layer.attention.linear, (SIZE, 2 * SIZE, SIZE), strict=True):
                    fill(part, rows, SIZE)
            norm(layer.ffn.layer_norm)
            fill(layer.ffn.linear_0, INNER, SIZE)
            fill(layer.ffn.linear_1, SIZE, INNER)
    spec.decoder.projection.weight = spec.decoder.embeddings.weight  # tied, as ours
    spec.decoder.projection.bias = np.zeros(given["target"], np.float32)
    for side in ("source", "target"):
        words = ["<blank>", "<s>", "</s>", "<unk>", *(f"w{i}" for i in range(given[side] - 4))]
        getattr(spec, f"register_{side}_vocabulary")(words)
    spec.validate()
    folder.mkdir(exist_ok=True)
    spec.save(str(folder))
    return count


def main() -> None:
    given, folder = work.given(), Path(sys.argv[1]).with_name("transformer")
    kind = sys.argv[2]
    weights = 0 if (folder / "model.bin").exists() else build(given, folder)
    model = ctranslate2.Translator(
        str(folder), "cpu", compute_type=kind, inter_threads=1, intra_threads=1
    )
    options: dict[str, Any] = {"beam_size": work.BEAM, "max_decoding_length": work.WRITTEN}
    options |= {"min_decoding_length": work.WRITTEN, "max_batch_size": work.BATCH}
    texts = [[f"w{i}" for i in source] for source in given["sources"]]
    if len(sys.argv) > 3:  # only the first answer
        model.translate_batch(texts[:1], **options)
        return
    model.translate_batch(texts[:2], **options)
    batched = work.seconds(lambda: model.translate_batch(texts, **options))
    some = texts[: given["singly"]]
    singly = work.seconds(lambda: [model.translate_batch([one], **options) for one in some])
    work.answer(batched=batched / len(texts), singly=singly / len(some), weights=weights)


if __name__ == "__main__":
    main()

"""Sightline: training with PyTorch, translation with an export, metrics."""

import sys
from pathlib import Path
from typing import Any

from benchmarks.data import data_path
from benchmarks.metrics import captions
from benchmarks.peers import work


def train(given: dict[str, Any], folder: Path) -> None:
    import torch

    from sightline.nn.kernels.malloc import keep_freed_memory
    from sightline.nn.model import Batch, pad
    from sightline.tasks import build_task, read_recipe
    from sightline.training.optimisers import clip_gradient
    from sightline.types import Inputs, Stream

    keep_freed_memory()
    model: Any = build_task(read_recipe(folder / "untrained" / "config.yaml")).build_model()
    optimiser = torch.optim.Adam(model.parameters(), lr=work.RATE, fused=True)

    def step(batch: Any) -> None:
        loss, _ = model.train().loss(batch)
        optimiser.zero_grad()
        loss.total.backward()
        clip_gradient(model.parameters(), work.CLIP)
        optimiser.step()

    batches = []
    for sources, targets in given["batches"]:
        tokens = pad(sources)
        inputs = Inputs(len(sources), {"tokens": Stream(tokens, tokens != 0)})
        batches.append(Batch(pad(targets), inputs))
    speed = work.training_speed(step, batches, given["tokens"])
    work.answer(training=speed, weights=sum(p.numel() for p in model.parameters()))


def translate(given: dict[str, Any], folder: Path, kind: str) -> None:
    import sightline

    model, texts = sightline.load(folder / kind), given["texts"]
    model.describe(texts[:2], beam=work.BEAM)
    batched = work.seconds(lambda: model.describe(texts, beam=work.BEAM))
    some = texts[: given["singly"]]
    singly = work.seconds(lambda: [model.describe(one, beam=work.BEAM) for one in some])
    work.answer(batched=batched / len(texts), singly=singly / len(some))


def main() -> None:
    folder, what = Path(sys.argv[1]).parent, sys.argv[2]
    if what == "metrics":
        from sightline.metrics import score

        _, data = captions(data_path("cocoeval", "goldens.json.gz"))
        print(score(*data, ["bleu", "rouge_l", "cider", "meteor"], intervals=False)["corpus"])
    elif what == "train":
        train(work.given(), folder)
    elif len(sys.argv) > 3:  # only the first answer
        import sightline

        sightline.load(folder / what).describe(work.given()["texts"][0], beam=work.BEAM)
    else:
        translate(work.given(), folder, what)


if __name__ == "__main__":
    main()

"""joeynmt's RNN of the same sizes, driven by its own model, loss and search."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

from benchmarks.peers import work
from benchmarks.peers.work import ATTENTION, DECODER, EMBEDDING, ENCODER

OURS = {0: 1, 1: 2, 2: 3, 3: 0}  # our special tokens' numbers as its own


def build(given: dict[str, Any]) -> Any:
    marks = {"unk": 0, "pad": 1, "bos": 2, "eos": 3}
    special = SimpleNamespace(
        **{f"{name}_token": f"<{name}>" for name in marks},
        **{f"{name}_id": number for name, number in marks.items()},
        sep_token=None, sep_id=None, lang_tags=[],
    )  # fmt: skip
    source, target = (
        Vocabulary([f"w{i}" for i in range(given[side] - 4)], special)
        for side in ("source", "target")
    )
    config = {
        "initializer": "xavier_uniform", "embed_initializer": "xavier_uniform",
        "encoder": {
            "type": "recurrent", "rnn_type": "gru", "hidden_size": ENCODER, "num_layers": 1,
            "bidirectional": True, "embeddings": {"embedding_dim": EMBEDDING},
        },
        "decoder": {
            "type": "recurrent", "rnn_type": "lstm", "hidden_size": DECODER, "num_layers": 1,
            "attention": "bahdanau", "init_hidden": "bridge", "input_feeding": True,
            "embeddings": {"embedding_dim": EMBEDDING},
        },
    }  # fmt: skip
    assert ATTENTION  # joeynmt's is as wide as the decoder
    model = build_model(config, source, target)
    model.loss_function = ("crossentropy", 0.1)
    return model


def batch_of(sources: list[list[int]], targets: list[list[int]] | None) -> Any:
    def tensor(rows: list[list[int]]) -> torch.Tensor:
        return torch.tensor(work.padded([[OURS.get(i, i) for i in row] for row in rows], 1))

    batch = Batch(
        src=tensor(sources),
        src_length=torch.tensor([len(row) for row in sources]),
        src_prompt_mask=None,
        trg=None if targets is None else tensor(targets),
        trg_prompt_mask=None,
        indices=torch.arange(len(sources)),
        device=torch.device("cpu"),
        pad_index=1,
        eos_index=3,
        is_train=targets is not None,
    )
    batch.sort_by_src_length()
    return batch


def translate(model: Any, sources: list[list[int]]) -> None:
    model.eval()
    options = {"generate_unk": True, "return_attention": False, "return_prob": "none"}
    search(model, batch_of(sources, None), work.WRITTEN, work.BEAM, 1.0, **options)


def main() -> None:
    given = work.given()
    model, saved = build(given), Path(sys.argv[1]).with_name("joey.pt")
    if len(sys.argv) > 2:  # only the first answer
        model.load_state_dict(torch.load(saved))
        translate(model, given["sources"][:1])
        return
    optimiser = torch.optim.Adam(model.parameters(), lr=work.RATE)

    def step(batch: Any) -> None:
        model.train()
        loss, *_ = model(return_type="loss", **vars(batch))
        optimiser.zero_grad()
        batch.normalize(loss, "tokens").backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), work.CLIP)
        optimiser.step()

    batches = [batch_of(*each) for each in given["batches"]]
    speed = work.training_speed(step, batches, given["tokens"])
    model = build(given)  # as untrained as the others
    torch.save(model.state_dict(), saved)
    sources = given["sources"]
    translate(model, sources[:2])
    batched = work.seconds(lambda: [translate(model, list(b)) for b in work.in_batches(sources)])
    some = sources[: given["singly"]]
    singly = work.seconds(lambda: [translate(model, [one]) for one in some])
    work.answer(
        training=speed,
        batched=batched / len(sources),
        singly=singly / len(some),
        weights=sum(p.numel() for p in model.parameters()),
    )


if __name__ == "__main__":
    main()

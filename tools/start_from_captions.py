"""Where `everyday-en-de` and `-en-fr` started: the captions' translators, with new vocabularies.

    git worktree add before 5108094
    python tools/start_from_captions.py before/src/sightline/zoo/en-de everyday-en-de start/en-de

Of the first translators only the exports in 8 bits were left: their weights are read back from the
graphs as that version wrote them. Then each token of the recipe's vocabularies takes its row from
the same token of the old one, or the mean of the rows of the pieces that the old one splits it in.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx.numpy_helper import to_array
from safetensors.torch import save_file

from sightline import config
from sightline.commands.recipes import find_recipe
from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.tasks import read_recipe
from sightline.tasks.translate.data import TranslationData
from sightline.tasks.translate.model import saved_model
from sightline.tasks.translate.parts import SOURCE_VOCAB
from sightline.training.checkpoint import CONFIG, WEIGHTS, seal

HIDDEN = 256  # of the encoder, each way
GATES = 2048  # of the decoder


def constants(path: Path) -> dict[int, np.ndarray]:
    """The constants of a graph by number, as float32."""
    graph = onnx.load(path).graph
    return {int(each.name[8:]): to_array(each).astype(np.float32) for each in graph.initializer}


def encoder_weights(found: dict[int, np.ndarray]) -> dict[str, np.ndarray]:
    weights = {"embed.weight": found[8] * found[10]}
    inputs, recurrent, biases = found[14] * found[16], found[18] * found[20], found[22]
    for way in (0, 1):
        own = np.split(biases[way], 2)
        each = (inputs[way], recurrent[way], *own)
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        for name, values in zip(names, each, strict=True):  # ONNX has the update gate first
            update, reset, new = np.split(values, 3)
            weights[f"layers.0.{way}.{name}_l0"] = np.concatenate([reset, update, new])
    return weights


def decoder_weights(start: dict[int, np.ndarray], step: dict[int, np.ndarray]) -> dict:
    def product(found: dict[int, np.ndarray], values: int, scale: int) -> np.ndarray:
        return (found[values] * (found[scale] * 127)).T  # (out, in)

    context, own = product(start, 101, 104), product(step, 26, 29)
    weights = {
        "embed.weight": step[1] * step[3],
        "attention.key.weight": product(start, 86, 89),
        "attention.key.bias": start[92],
        "attention.query.weight": own[GATES:],
        "attention.score.weight": step[42].T,
        "recurrent.weight_ih_l0": np.concatenate([product(step, 17, 20), context[:GATES]], 1),
        "recurrent.weight_hh_l0": own[:GATES],
        "recurrent.bias_ih_l0": step[6],
        "recurrent.bias_hh_l0": step[24][:GATES],
        "from_hidden.weight": product(step, 83, 86),
        "from_hidden.bias": step[81],
        "from_context.weight": context[GATES:],
        "output.bias": step[91],
    }
    of_states = ((20, 23, 9), (36, 39, 28)), ((54, 57, 46), (70, 73, 62))
    for state, layers in enumerate(of_states):  # h and c
        for layer, (values, scale, bias) in zip((0, 2), layers, strict=True):
            weights[f"enter_state.{state}.{layer}.weight"] = product(start, values, scale)
            weights[f"enter_state.{state}.{layer}.bias"] = start[bias]
    return weights


def rows(old: torch.Tensor, new: torch.Tensor, before: Vocabulary, now: Vocabulary) -> torch.Tensor:
    """The rows of the new vocabulary's tokens; a composed one keeps half of its random row."""
    new = new.clone()
    for i, token in enumerate(now.tokens):
        if token in before.ids:
            new[i] = old[before.ids[token]]
        elif known := [before.ids[p] for p in before._merge(token) if p in before.ids]:
            new[i] = new[i] * 0.5 + old[known].mean(0)
    return new


def main(export: Path, recipe_name: str, out: Path) -> None:
    old = saved_model(export, read_recipe(export / CONFIG))
    start, step = constants(export / "start.onnx"), constants(export / "step.onnx")
    for part, weights in (
        (old.encoder, encoder_weights(constants(export / "encoder.onnx"))),
        (old.decoder, decoder_weights(start, step)),
    ):
        arrays = {name: np.ascontiguousarray(each) for name, each in weights.items()}
        part.load_state_dict({name: torch.from_numpy(each) for name, each in arrays.items()})
    recipe = read_recipe(find_recipe(Path(recipe_name)))
    data = TranslationData(recipe)
    torch.manual_seed(1)
    model = data.build_model()
    before = {"encoder": SOURCE_VOCAB, "decoder": VOCAB}
    now = {"encoder": data.source_language.vocab, "decoder": data.target_language.vocab}
    state = model.state_dict()
    for name, values in old.state_dict().items():
        side = name.split(".")[0]
        if state[name].shape == values.shape:
            state[name] = values
        else:
            own = (values.view(len(values), -1), state[name].view(len(state[name]), -1))
            made = rows(*own, Vocabulary.load(export / before[side]), now[side])
            state[name] = made.view(state[name].shape)
    out.mkdir(parents=True)
    save_file({name: each.contiguous() for name, each in state.items()}, out / WEIGHTS)
    (out / CONFIG).write_text(config.to_yaml(recipe), encoding="utf-8")
    for name, text in data.files.items():
        (out / name).write_text(text, encoding="utf-8")
    seal(out, {"step": 0})


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))

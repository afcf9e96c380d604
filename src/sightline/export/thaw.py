"""An export as a model that can be trained: its weights read back from the graphs.

The graphs' writer is asked once more, for a model whose weights are numbered: where number n
appears in a constant, the file's constant has weight n. This holds for whatever the writer does
with weights (parts of them, several in one matrix, turned around), as long as the file's graph is
the one that it writes, which is checked node by node.

Weights come back as precise as the export keeps them: in 16 or 8 bits.
"""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor, nn

from sightline import config
from sightline.errors import CheckpointError
from sightline.export.graph_writer import Graph
from sightline.export.graphs import start_graph, step_graph
from sightline.nn.encoders.picture import PictureEncoder
from sightline.runtime.model_folder import ENCODER, START, STEP, Export, read_export
from sightline.tasks import read_recipe, spec_of
from sightline.training.checkpoint import CONFIG, WEIGHTS, seal

if TYPE_CHECKING:
    import onnx

    from sightline.nn.decoder import Decoder

DIGIT = 1 << 20  # weights are numbered in two digits, which float32 holds exactly
Writer = Callable[["Decoder", Graph], "onnx.ModelProto"]


def thaw(source: Path, out: Path) -> Path:
    """Write an export as a checkpoint's folder, `out`, that training can start from."""
    export = read_export(source)
    recipe = read_recipe(source / CONFIG)
    spec = spec_of(recipe.task)
    model = spec.model(source, spec.thawed(recipe))
    model.decoder.load_state_dict(_decoder_weights(export, model.decoder))
    if model.encoder is not None:
        _fill_encoder(export, model.encoder)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, out / WEIGHTS)
    (out / CONFIG).write_text(config.to_yaml(spec.thawed(recipe)), encoding="utf-8")
    for path in (*source.glob("*vocab.json"), *(source / each for each in spec.files)):
        if path.is_file():
            shutil.copyfile(path, out / path.name)
    seal(out, {"step": 0})
    return out


def _decoder_weights(export: Export, decoder: Decoder) -> dict[str, Tensor]:
    names, sizes = zip(*((n, t.numel()) for n, t in decoder.state_dict().items()), strict=True)
    found = np.full(sum(sizes), np.nan, np.float32)
    kind = export.about["weights"]
    writers: dict[str, Writer] = {STEP: lambda d, g: step_graph(d, kind, g)}
    if START in export.graphs:
        writers[START] = lambda d, g: start_graph(d, d.context_size, kind, g)
    for name, write in writers.items():
        low, high = (_numbered(decoder, write, digit, kind) for digit in (0, 1))
        constants = _constants(export, name, low[1])
        for first, second in zip(low[0].stored, high[0].stored, strict=True):
            number = (second.given * np.float64(DIGIT) + first.given).astype(np.int64)
            values = constants[first.values]
            if first.scale:
                values = values * (constants[first.scale] * first.factor)
            mine = (number > 0) & (number <= len(found))
            found[number[mine] - 1] = values[mine]
    missing = [
        name
        for name, part in zip(names, np.split(found, np.cumsum(sizes)[:-1]), strict=True)
        if np.isnan(part).any()
    ]
    if missing:
        raise CheckpointError(
            f"{export.folder} keeps no {missing[0]} that training could start from; "
            "give the run that it was exported from"
        )
    shapes = [tensor.shape for tensor in decoder.state_dict().values()]
    parts = torch.from_numpy(found).split(list(sizes))
    return {n: p.view(shape) for n, p, shape in zip(names, parts, shapes, strict=True)}


def _numbered(
    decoder: Decoder, write: Writer, digit: int, kind: Any
) -> tuple[Graph, onnx.ModelProto]:
    """What the writer makes of a decoder whose weights are their numbers, from 1 on."""
    decoder, graph, start = copy.deepcopy(decoder), Graph(kind), 1  # graphs hold views of weights
    for tensor in decoder.state_dict().values():
        numbers = torch.arange(start, start + tensor.numel()).view(tensor.shape)
        tensor.copy_(numbers % DIGIT if digit == 0 else numbers // DIGIT)
        start += tensor.numel()
    return graph, write(decoder, graph)


def _constants(export: Export, name: str, written: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    """The constants of the file's graph, if it is the graph that would be written today."""
    import onnx

    graph = onnx.load_from_string(export.graphs[name]).graph
    if [*graph.node] != [*written.graph.node]:
        raise CheckpointError(
            f"{export.folder / name} was written by another Sightline, whose weights this one "
            "cannot read back; give the run that it was exported from"
        )
    return {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}


def _fill_encoder(export: Export, encoder: nn.Module) -> None:
    """A picture encoder's weights have kept their names; its batch norm is in its convolutions."""
    from sightline.nn.encoders.image import unfold

    if not isinstance(encoder, PictureEncoder) or encoder.network is None:
        raise CheckpointError(
            f"{export.folder} has an encoder whose weights cannot be read back; "
            "give the run that it was exported from"
        )
    fast, stored = encoder.for_inference(), _named_weights(export)
    for name, tensor in fast.state_dict().items():
        kept = [each for each in stored if f"encoder.{name}".endswith(f".{each}")]
        kept += [f"encoder.{name}"] if f"encoder.{name}" in stored else []
        if not kept or stored[kept[-1]].shape != tuple(tensor.shape):
            raise CheckpointError(
                f"{export.folder / ENCODER} has no {name}; give the run that it was exported from"
            )
        tensor.copy_(torch.tensor(stored[kept[-1]]))
    assert fast.network is not None
    unfold(encoder.network, fast.network)
    if encoder.tagger is not None and fast.tagger is not None:
        tagger = fast.tagger.state_dict()
        encoder.tagger.load_state_dict({n: tagger[n] for n in encoder.tagger.state_dict()})


def _named_weights(export: Export) -> dict[str, NDArray[np.float32]]:
    """The weights of the traced graph by name, those that are stored small as float32 again."""
    import onnx

    graph = onnx.load_from_string(export.graphs[ENCODER]).graph
    values = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    for node in graph.node:  # Cast, Mul and Identity, as `with_weights_stored` writes them
        if node.op_type in ("Cast", "Mul", "Identity") and {*node.input} <= values.keys():
            factors = [values[name].astype(np.float32) for name in node.input]
            values[node.output[0]] = math.prod(factors[1:], start=factors[0])
    return {name: array for name, array in values.items() if array.dtype == np.float32}

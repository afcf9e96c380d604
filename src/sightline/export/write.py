"""`sightline export`: a trained model as a folder of ONNX graphs that runs without PyTorch."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sightline import __version__, config
from sightline.config import DataConfig
from sightline.data.durable import replacing
from sightline.errors import UserError
from sightline.export.check import Comparison, compare
from sightline.runtime import model_folder
from sightline.runtime.confidence import CONFIDENCE
from sightline.runtime.describer import Describer
from sightline.runtime.model_folder import EXPORT, find_model, is_export
from sightline.tasks import load_model, spec_of

Weights = Literal["int16", "int8"]
CARDS = ("card.md", "README.md")


@dataclass(frozen=True)
class Check:
    """Held-out data on which an export must be as good as its model."""

    data: Path  # a manifest; for a language model a text
    split: str = "test"


def export(
    model: Path | str, out: Path | str, weights: Weights = "int16", check: Check | None = None
) -> Comparison | None:
    """Write the model as an export to `out`, which must not hold anything else.

    With a check the export is written only if it is good enough; gives the comparison.
    """
    source, out = find_model(model), Path(out)
    if is_export(source):
        raise UserError(f"{source} is an export already; export the run that it was made from")
    if out.exists() and not is_export(out) and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is there and is no export; give another folder")
    if weights == "int8" and check is None:
        raise UserError("an int8 export is compared with its model: give --check MANIFEST")
    loaded = load_model(source)
    found = None
    try:
        with replacing(out) as partial:
            partial.mkdir(parents=True)
            _write(partial, source, loaded, weights, out.name)
            if check is not None:
                found = compare(loaded, load_model(partial), check.data, check.split)
                found.require(weights)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}") from None
    return found


def _write(folder: Path, source: Path, loaded: Describer, weights: Weights, name: str) -> None:
    spec, (encoder, graphs) = spec_of(loaded.task), _graphs(loaded, weights)
    about: dict[str, Any] = {"format": model_folder.FORMAT, "sightline": __version__}
    about |= {"task": spec.name, "weights": weights, **spec.about(encoder)}
    for graph, content in graphs.items():
        (folder / graph).write_bytes(content)
    recipe = loaded.recipe
    for key in spec.local_paths:  # without the places that files have on this machine
        recipe = _shortened(recipe, key.split("."))
    (folder / "config.yaml").write_text(config.to_yaml(recipe), "utf-8")
    for path in (
        *source.glob("*vocab.json"),
        *(source / each for each in (CONFIDENCE, *spec.files)),
    ):
        if path.is_file():
            shutil.copyfile(path, folder / path.name)
    cards = [source / card for card in CARDS if (source / card).is_file()]
    text = cards[0].read_text("utf-8") if cards else _card(loaded, name)
    (folder / CARDS[0]).write_text(text, "utf-8")
    about["files"] = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name not in CARDS  # whose text anyone may edit
    }
    (folder / EXPORT).write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def _shortened(section: Any, path: list[str]) -> Any:
    """A section with the path at `path` reduced to its last part."""
    name, *rest = path
    value = getattr(section, name)
    if value is None:
        return section
    if rest:
        return replace(section, **{name: _shortened(value, rest)})
    return replace(section, **{name: None if name == "initial" else _last_part(value)})


def _last_part(place: Any) -> Any:
    """Of a path, or of each of several data sets'."""
    if isinstance(place, tuple):
        return tuple(_last_part(each) for each in place)
    if isinstance(place, DataConfig):
        return replace(place, path=Path(place.path).name)
    return Path(place).name


def _card(loaded: Describer, name: str) -> str:
    """A card to fill in."""
    about = loaded.recipe.description or f"A model for the task {loaded.task}."
    rows = "".join(f"- **{row}:** …\n" for row in ("Data", "Score", "Trained", "Limits", "Terms"))
    return f"# {name}\n\n{about}\n\n{rows}"


def _graphs(loaded: Describer, weights: Weights) -> tuple[Any, dict[str, bytes]]:
    """The model's encoder, if there is one, and its graphs by file name."""
    from sightline.export import graphs as recurrent
    from sightline.export import memory_graphs
    from sightline.export.encoder_graphs import encoder_graph
    from sightline.nn.memory import MemoryDecoder
    from sightline.nn.stepper import TorchEncoder, TorchStepper

    assert isinstance(loaded.stepper, TorchStepper)
    decoder = loaded.stepper.decoder.cpu().eval()
    written: Any = memory_graphs if isinstance(decoder, MemoryDecoder) else recurrent
    encoder: Any = None
    graphs = {model_folder.STEP: written.step_graph(decoder, weights)}
    if isinstance(loaded.encoder, TorchEncoder) and loaded.encoder.model.encoder is not None:
        encoder = loaded.encoder.model.encoder.cpu().eval()
        graphs[model_folder.START] = written.start_graph(decoder, encoder.dimension, weights)
        graphs[model_folder.ENCODER] = encoder_graph(encoder, weights)
    return encoder, {name: graph.SerializeToString() for name, graph in graphs.items()}

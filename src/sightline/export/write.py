"""`sightline export`: a trained model as a folder of ONNX graphs that runs without PyTorch."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sightline import __version__, config, zoo
from sightline.errors import UserError
from sightline.export.check import Comparison, compare
from sightline.runtime.model_folder import ENCODER, EXPORT, FORMAT, START, STEP, is_export
from sightline.tasks import load_model

Weights = Literal["int16", "int8"]
COPIED = ("lexicon.json",)  # of the model's folder, where there are any
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
    source, out = zoo.find(model), Path(out)
    if is_export(source):
        raise UserError(f"{source} is an export already; export the run that it was made from")
    if out.exists() and not is_export(out) and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is there and is no export; give another folder")
    if weights == "int8" and check is None:
        raise UserError("an int8 export is compared with its model: give --check MANIFEST")
    loaded = load_model(source)
    partial = out.with_name(f".partial-{out.name}")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _write(partial, source, loaded, weights, out.name)
        found = None
        if check is not None:
            found = compare(loaded, load_model(partial), check.data, check.split)
            found.require(weights)
        if out.exists():
            shutil.rmtree(out)
        os.replace(partial, out)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return found


def _write(folder: Path, source: Path, loaded: Any, weights: Weights, name: str) -> None:
    about: dict[str, Any] = {"format": FORMAT, "sightline": __version__}
    about |= {"task": loaded.recipe.task, "weights": weights}
    if loaded.recipe.task == "caption":
        encoder = loaded.encoder
        about["pictures"] = {"spec": encoder.spec.to_json(), "grid": list(encoder.grid())}
    for graph, content in _graphs(loaded, weights).items():
        (folder / graph).write_bytes(content)
    (folder / "config.yaml").write_text(config.to_yaml(_portable(loaded.recipe)), "utf-8")
    for path in (*source.glob("*vocab.json"), *(source / each for each in COPIED)):
        if path.is_file():
            shutil.copyfile(path, folder / path.name)
    cards = [source / card for card in CARDS if (source / card).is_file()]
    text = cards[0].read_text("utf-8") if cards else _card(loaded, name)
    (folder / CARDS[0]).write_text(text, "utf-8")
    about["files"] = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name not in CARDS  # whose text anyone may mend
    }
    (folder / EXPORT).write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def _portable(recipe: Any) -> Any:
    """The recipe without the places that files have on this machine."""
    names = ("manifest", "features", "text", "held_out_text", "like")
    here = {name: getattr(recipe, name, None) for name in names}
    recipe = replace(recipe, **{name: Path(path).name for name, path in here.items() if path})
    training = replace(recipe.training, initial=None)
    if recipe.task == "caption" and "/" in recipe.encoder.weights:
        encoder = replace(recipe.encoder, weights=Path(recipe.encoder.weights).name)
        recipe = replace(recipe, encoder=encoder)
    if recipe.task == "translate" and recipe.fusion is not None:
        both = {name: Path(path).name for name, path in vars(recipe.fusion).items()}
        recipe = replace(recipe, fusion=replace(recipe.fusion, **both))
    return replace(recipe, training=training)


def _card(loaded: Any, name: str) -> str:
    """A card to be filled in."""
    recipe = loaded.recipe
    about = recipe.description or f"A model for the task {recipe.task}."
    return (
        f"# {name}\n\n{about}\n\n- **Data:** to be told.\n- **Score:** to be told.\n"
        "- **Trained:** to be told.\n- **Limits:** to be told.\n- **Terms:** to be told.\n"
    )


# ------------------------------------------------------------------------------- graphs


def _graphs(loaded: Any, weights: Weights) -> dict[str, bytes]:
    """The graphs of a loaded model, by file name."""
    from sightline.export.graphs import picture_graph, start_graph, step_graph, text_graph

    is_text = loaded.recipe.task == "language_model"
    model = loaded.network.model if is_text else loaded.stepper.model
    decoder = model.decoder.cpu().eval()
    graphs = {STEP: step_graph(decoder, weights)}
    encoder = loaded.encoder if loaded.recipe.task == "caption" else model.encoder
    if encoder is not None:
        graphs[START] = start_graph(decoder, encoder.dimension, weights)
        encoder = encoder.cpu().eval()
        is_picture = loaded.recipe.task == "caption"
        graphs[ENCODER] = picture_graph(encoder) if is_picture else text_graph(encoder, weights)
    return {name: graph.SerializeToString() for name, graph in graphs.items()}

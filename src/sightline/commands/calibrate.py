"""`sightline calibrate`: how sure a model may be of what it writes."""

from pathlib import Path
from typing import Annotated

import typer

from sightline.tasks.command_line import Device, echo


def calibrate(
    model: Annotated[str, typer.Argument(help="A run's folder, a checkpoint, or an export.")],
    data: Annotated[
        list[Path] | None,
        typer.Option(help="A manifest, several if repeated; by default the one of its training."),
    ] = None,
    split: Annotated[str, typer.Option(help="Which part of it to fit on: not `train`.")] = "dev",
    held_out: Annotated[str, typer.Option(help="Which part to measure on.")] = "test",
    figure: Annotated[
        Path | None, typer.Option(help="Draw how often confidences come true on that part.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Learn from held-out data how often descriptions are right; they then have a `confidence`."""
    from sightline.errors import UserError
    from sightline.metrics import info
    from sightline.runtime.model_folder import find_model
    from sightline.tasks import load_for, spec_of
    from sightline.tasks.calibration import fit, judge

    loaded = load_for(model, device=device)
    spec = spec_of(loaded.task)
    if spec.right is None:
        raise UserError(f"the task {spec.name} does not say which of its outputs are right")
    if not data and not isinstance(loaded.recipe.manifest, str):
        raise UserError(f"{model} was trained on several manifests; give --data for each to use")
    manifests = data or [Path(loaded.recipe.manifest)]
    fitted_on = [found for path in manifests if (found := judge(loaded, path, split))]
    confidence = fit(fitted_on)
    metric, least = spec.right
    path = confidence.save(
        find_model(model),
        {
            "right": {metric: least},
            "fitted_on": {found.name: len(found.right) for found in fitted_on},
        },
    )
    bar = info(metric)
    echo(f"right: {bar.label} of at least {bar.scale * least:g}")
    measured = [found for each in manifests if (found := judge(loaded, each, held_out))]
    for found in (*fitted_on, *measured):
        echo(found.summary(confidence))
    if figure is not None:
        from sightline.figures import draw_reliability

        sets = {each.name: (each.confidences(confidence), each.right) for each in measured}
        if not sets:
            raise UserError(f"no item of split {held_out!r} has references to measure on")
        draw_reliability(sets, figure)
        echo(f"wrote {figure}", err=True)
    echo(f"wrote {path}", err=True)

"""`sightline features`: compute an encoder's features of pictures, ahead of training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.tasks.command_line import Device, echo


def features(
    source: Annotated[Path, typer.Argument(help="A manifest (JSONL) or a folder of pictures.")],
    cache: Annotated[Path, typer.Option(help="Where caches are kept.")] = Path("features"),
    encoder: Annotated[str, typer.Option(help="For example vgg16.")] = "efficientnet_lite2",
    weights: Annotated[
        str, typer.Option(help="A file, package:NAME, hub:NAME, an https address, or default.")
    ] = "default",
    stride: Annotated[int | None, typer.Option(help="The layer: 16 or 32.")] = None,
    size: Annotated[int | None, typer.Option(help="The side of the network's input.")] = None,
    mode: Annotated[str | None, typer.Option(help="crop or squeeze.")] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 8,
    skip_bad: Annotated[bool, typer.Option(help="Leave out pictures that cannot be read.")] = False,
    device: Device = "auto",
) -> None:
    """Compute and cache the features of pictures; training does it, too, on its first run.

    It can be stopped at any time: the next run resumes.
    """
    from sightline.data.features import extract_features, pictures_in
    from sightline.nn.device import pick_device
    from sightline.nn.encoders.image import build_encoder

    pictures = pictures_in(source)
    network = build_encoder(
        encoder,
        weights=weights,
        stride=stride,
        size=size,
        mode=mode,  # type: ignore[arg-type]
    )
    network.to(pick_device(device, "--device"))
    stored = extract_features(pictures, network, cache, batch_size=batch_size, skip_bad=skip_bad)
    absent = [name for name in pictures if name not in stored]
    if absent:
        echo(f"note: {len(absent)} left out, such as {absent[0]}", err=True)
    key = stored.key
    echo(
        f"{stored.folder}: {len(pictures) - len(absent):,} pictures, "
        f"{key['rows']} x {key['columns']} x {key['dimension']}"
    )

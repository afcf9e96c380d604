"""`sightline features`: compute an encoder's features of pictures, ahead of training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.tasks.command_line import Device, Quiet, echo, note


def features(
    source: Annotated[Path, typer.Argument(help="A manifest (JSONL) or a folder of pictures.")],
    cache: Annotated[Path, typer.Option(help="Where caches are kept.")] = Path("features"),
    encoder: Annotated[str, typer.Option(help="For example vgg16.")] = "efficientnet_lite2",
    weights: Annotated[
        str, typer.Option(help="A file, package:NAME, hub:NAME, an https address, or default.")
    ] = "default",
    stride: Annotated[
        int | None, typer.Option(help="The layer: 16, 32, or 0 for one vector.")
    ] = None,
    size: Annotated[int | None, typer.Option(help="The side of the network's input.")] = None,
    mode: Annotated[str | None, typer.Option(help="crop or squeeze.")] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 8,
    skip_bad: Annotated[bool, typer.Option(help="Leave out pictures that cannot be read.")] = False,
    good: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "--out",
            "-o",
            help="With --skip-bad: the manifest without them, to train on.",
        ),
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Compute and cache the features of pictures; training does it, too, on its first run.

    It can be stopped at any time: the next run resumes.
    """
    from sightline.data.features import extract_features, pictures_in
    from sightline.data.manifest import read_manifest, write_manifest
    from sightline.errors import UserError
    from sightline.nn.device import pick_device
    from sightline.nn.encoders.image import build_encoder

    if good is not None and source.is_dir():
        raise UserError("--output writes a manifest; give a manifest, not a folder")
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
        rest = "" if good else "; --output FILE writes the manifest of the others, to train on"
        note(f"note: {len(absent)} left out, such as {absent[0]}{rest}")
    if good is not None:
        kept = [each for each in read_manifest(source, medium="image") if each.id in stored]
        write_manifest(good, kept)
        note(f"wrote {good}: train with manifest={good}")
    key = stored.key
    echo(
        f"{stored.folder}: {len(pictures) - len(absent):,} pictures, "
        f"{key['rows']} x {key['columns']} x {key['dimension']}"
    )

"""What `sightline demo` shows of a recogniser: the recording that ships, and where it was heard."""

from __future__ import annotations

from pathlib import Path

from sightline.errors import UserError
from sightline.samples import FOLDER
from sightline.tasks.command_line import echo

SOUND = FOLDER / "hello.flac"  # flite's voice rms
SAID = "Hello. I am a machine that speaks, and you can hear every sound."


def show(model: str | Path, folder: Path) -> None:
    """Write the phones of the recording, and draw where attention looked for each."""
    import sightline
    from sightline.figures.sound import draw_sound
    from sightline.tasks.transcribe.timing import spans

    describer = sightline.load(model)
    try:
        from sightline.media.audio import filter_banks, read_sound
        from sightline.media.voice import segments

        pieces = list(segments([read_sound(SOUND)]))
        inputs = [[describer.reader.piece(piece)] for piece in pieces]  # type: ignore[attr-defined]
    except UserError as error:  # the base install does not read sounds
        echo(f"  {SOUND.name}: {error}")
        return
    folder.mkdir(parents=True, exist_ok=True)
    echo(f"  {SOUND.name}: {SAID}")
    for number, (piece, found) in enumerate(
        zip(pieces, describer.describe_inputs(inputs), strict=True), start=1
    ):
        echo(f"    → {found.text}")
        if found.tokens:
            times = [(span.start, span.end) for span in spans(found)]
            path = folder / f"{SOUND.stem}-{number}.png"
            draw_sound(found, path, filter_banks(piece.samples), piece.start, times)
    echo(f"  When each was said: {folder}/")

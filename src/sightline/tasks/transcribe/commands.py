"""`sightline transcribe`: recordings in, phones or words with their times out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.errors import UserError
from sightline.tasks.command_line import Device, echo, standard_input

if TYPE_CHECKING:
    from sightline.media.audio import Floats
    from sightline.media.voice import Segment
    from sightline.runtime.describer import Describer
    from sightline.tasks.transcribe.formats import Cue
    from sightline.tasks.transcribe.timing import Span

STDIN = "-"
TOLD = 30.0  # seconds of sound from one line of progress to the next


def transcribe(
    files: Annotated[list[str], typer.Argument(help="Sound files; - reads one from stdin.")],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="A run, a checkpoint or a zoo name.")
    ] = None,
    output_format: Annotated[
        str, typer.Option(help="txt, srt, vtt, tsv, json, textgrid, ctm; several with commas.")
    ] = "txt",
    output_dir: Annotated[
        Path | None, typer.Option(help="The folder to write to; without one, to stdout.")
    ] = None,
    pcm: Annotated[
        int | None,
        typer.Option(help="What comes from - are 16-bit samples at this rate, as they are heard."),
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Hypotheses kept at a step.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="What was said: shows the errors, side by side.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="A folder to draw spectrograms and attention in.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Write what was said, with the time of every phone or word; of silence, nothing.

    Long recordings are cut at pauses and written as they are heard. A file that cannot be read
    is a line on stderr, and the next one follows.
    """
    from sightline.tasks import load_for

    formats = _formats(output_format, output_dir, files)
    if pcm is not None and STDIN not in files:
        raise UserError("--pcm is about what comes from stdin: give - as the file")
    if model is None:
        raise UserError("name a model: --model phones, or a run")
    loaded = load_for(model, "transcribe", device=device)
    ear = _Ear(loaded, beam, figure)
    failed = 0
    for name in files:
        live = output_dir is None and formats == ["txt"]
        try:
            lines = []
            for text, spans in ear.lines(name, pcm):
                lines.append((text, spans))
                if live and text:
                    echo(text)
        except UserError as error:
            if len(files) == 1:
                raise
            failed += 1
            echo(f"sightline: {error}", err=True)
            continue
        if not live:
            _write(lines, name, formats, output_dir)
        if reference is not None:
            _show_errors(reference, " ".join(text for text, _ in lines if text))
    if failed:
        raise UserError(f"{failed} of {len(files)} files could not be read")


def _formats(wanted: str, folder: Path | None, files: Sequence[str]) -> list[str]:
    from sightline.tasks.transcribe.formats import FORMATS

    formats = [name.strip().lower() for name in wanted.split(",") if name.strip()]
    for name in formats or [wanted]:
        if name not in FORMATS:
            raise UserError(f"--output-format has {', '.join(FORMATS)}, not {name!r}")
    if folder is None and len(formats) > 1:
        raise UserError("several formats need --output-dir")
    stems = [Path(file).stem for file in files]
    if folder is not None and len({*stems}) < len(stems):
        twice = next(stem for stem in stems if stems.count(stem) > 1)
        raise UserError(f"two files are called {twice!r}; write them to folders of their own")
    return formats


def _write(
    lines: Sequence[tuple[str, list[Span]]], name: str, formats: list[str], folder: Path | None
) -> None:
    from sightline.data.durable import replace_file
    from sightline.tasks.transcribe.formats import FORMATS, SUFFIXES, cues_of

    cues: list[Cue] = cues_of(lines)
    stem = "stdin" if name == STDIN else Path(name).stem
    for each in formats:
        text = FORMATS[each](cues, stem)
        if folder is None:
            echo(text, nl=False)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{stem}{SUFFIXES.get(each, f'.{each}')}"
        replace_file(path, text.encode())
        echo(f"wrote {path}", err=True)


def _show_errors(said: str, heard: str) -> None:
    """The reference above what was written, and the rate."""
    from sightline.metrics.error_rate import edit_alignment

    pairs = edit_alignment(said.split(), heard.split())
    errors = sum(first != second for first, second in pairs)
    gap = "*"
    width = [max(len(first or gap), len(second or gap)) for first, second in pairs]
    for row in range(2):
        texts = [(pair[row] or gap).ljust(size) for pair, size in zip(pairs, width, strict=True)]
        echo("  ".join([("said ", "heard")[row], *texts]).rstrip())
    total = len(said.split())
    echo(f"{errors} errors in {total} tokens: {errors / max(1, total):.1%}")


@dataclass(frozen=True)
class _Ear:
    """A model with what was asked of it."""

    model: Describer
    beam: int | None
    figure: Path | None

    def lines(self, name: str, pcm: int | None) -> Iterator[tuple[str, list[Span]]]:
        """What each piece of a recording says, one by one or a few at a time."""
        from dataclasses import replace

        from sightline.tasks.transcribe.timing import spans

        kind = self.model.codec.vocab.kind
        ask = replace(self.model.defaults, beam=self.beam)
        number, told = 0, TOLD
        for segments in self._some(name, pcm):
            parts = [[self.reader.piece(segment)] for segment in segments]
            found = self.model.describe_inputs(parts, ask)
            for segment, description in zip(segments, found, strict=True):
                number += 1
                if self.figure is not None:
                    self._draw(segment, description, name, number)
                yield description.text, spans(description, kind)
            if segments[-1].end > told:
                echo(f"{name}: {segments[-1].end:.0f} s heard", err=True)
                told = segments[-1].end + TOLD

    @property
    def reader(self) -> Any:
        return self.model.reader

    def _some(self, name: str, pcm: int | None) -> Iterator[list[Segment]]:
        """Pieces that are searched together; of a live sound, one at a time."""
        from sightline.media.voice import segments

        live = name == STDIN and pcm is not None
        some: list[Segment] = []
        for segment in segments(_blocks(name, pcm), self.reader.longest, live=live):
            some.append(segment)
            if live or len(some) == self.reader.batch:
                yield some
                some = []
        if some:
            yield some

    def _draw(self, segment: Segment, description: Any, name: str, number: int) -> None:
        from sightline.figures.sound import draw_sound
        from sightline.media.audio import filter_banks
        from sightline.tasks.transcribe.timing import spans

        assert self.figure is not None
        self.figure.mkdir(parents=True, exist_ok=True)
        stem = "stdin" if name == STDIN else Path(name).stem
        found = [(span.start, span.end) for span in spans(description)]
        path = self.figure / f"{stem}-{number}.png"
        if description.tokens:
            draw_sound(description, path, filter_banks(segment.samples), segment.start, found)


def _blocks(name: str, pcm: int | None) -> Iterable[Floats]:
    from sightline.media.audio import raw_blocks, sound_blocks

    if name != STDIN:
        return sound_blocks(Path(name))
    stream = standard_input()
    return raw_blocks(stream, pcm) if pcm is not None else sound_blocks(stream.read())

"""`sightline prepare`: a published data set or a table → a manifest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.tasks.command_line import echo

if TYPE_CHECKING:
    from sightline.data.converters.files import Prepared

prepare = typer.Typer(
    help="Turn a data set into a manifest (JSONL), the format that training reads.",
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(help="The data set's folder, as it was published.")]
Out = Annotated[Path, typer.Option("--output", "--out", "-o", help="The manifest to write.")]


@prepare.command()
def flickr8k(folder: Folder, out: Out = Path("flickr8k.jsonl")) -> None:
    """Flickr8k: Flickr8k.token.txt, the official split files and the photos."""
    from sightline.data.converters import published

    _write(published.flickr8k(folder), out)


@prepare.command()
def flickr30k(
    folder: Folder,
    out: Out = Path("flickr30k.jsonl"),
    splits: Annotated[
        Path | None,
        typer.Option(help="Karpathy's JSON, or a folder with train.txt, val.txt, test.txt."),
    ] = None,
) -> None:
    """Flickr30k: results_20130124.token or the CSV form, and a split."""
    from sightline.data.converters import published

    _write(published.flickr30k(folder, splits), out)


@prepare.command()
def coco(folder: Folder, out: Out = Path("coco.jsonl")) -> None:
    """COCO: captions_train2014.json, captions_val2014.json (or 2017) and the pictures."""
    from sightline.data.converters import published

    _write(published.coco(folder), out)


@prepare.command()
def karpathy(
    file: Annotated[Path, typer.Argument(help="dataset_flickr8k, _flickr30k or _coco .json.")],
    images: Annotated[Path, typer.Option(help="The folder of the pictures.")],
    out: Out = Path("karpathy.jsonl"),
) -> None:
    """Any of Karpathy's dataset_*.json, with its own split."""
    from sightline.data.converters import published

    _write(published.karpathy(file, images), out)


@prepare.command()
def msrvtt(folder: Folder, out: Out = Path("msrvtt.jsonl")) -> None:
    """MSR-VTT: its videodatainfo.json files, or captions.json of a part of it, and the clips."""
    from sightline.data.converters import clips

    _write(clips.msrvtt(folder), out)


@prepare.command()
def msvd(folder: Folder, out: Out = Path("msvd.jsonl")) -> None:
    """MSVD (Youtube2Text): AllVideoDescriptions.txt, youtube_mapping.txt and the clips."""
    from sightline.data.converters import clips

    _write(clips.msvd(folder), out)


@prepare.command("csv")
def table(
    file: Annotated[Path, typer.Argument(help="A table with a header and one text per row.")],
    out: Out = Path("data.jsonl"),
    media: Annotated[
        Path | None, typer.Option(help="The folder of the files (default: the table's).")
    ] = None,
    medium: Annotated[str, typer.Option(help="image, audio, video, or source (text).")] = "image",
    media_column: Annotated[
        str | None, typer.Option(help="The column of file names (or source texts).")
    ] = None,
    text_column: Annotated[str | None, typer.Option(help="The column of texts.")] = None,
    split_column: Annotated[
        str | None, typer.Option(help="The column that says train, dev or test.")
    ] = None,
    dev: Annotated[float, typer.Option(help="Share held out, without a split column.")] = 0.1,
    test: Annotated[float, typer.Option(help="Share held out, without a split column.")] = 0.1,
) -> None:
    """Your own table: CSV, or with tabs, semicolons or bars between the columns."""
    from sightline.data.converters.tables import Columns, from_csv
    from sightline.data.manifest import MEDIA
    from sightline.errors import DataError

    if medium not in (*MEDIA, "source"):
        raise DataError(f"--medium must be image, audio, video or source, not {medium!r}")
    prepared = from_csv(
        file,
        medium=medium,  # type: ignore[arg-type]
        media_folder=media,
        columns=Columns(media_column, text_column, split_column),
        dev=dev,
        test=test,
    )
    _write(prepared, out)


Archive = Annotated[Path, typer.Argument(help="The data set's folder, or NLTK's archive of it.")]


@prepare.command()
def trec(
    source: Archive,
    out: Out = Path("trec.jsonl"),
    fine: Annotated[bool, typer.Option(help="The 50 fine classes, not the 6 coarse ones.")] = False,
) -> None:
    """TREC: questions by what they ask for (qc.zip: train.txt, test.txt)."""
    from sightline.data.converters import classes

    _write(classes.trec(source, fine=fine), out)


@prepare.command()
def polarity(source: Archive, out: Out = Path("polarity.jsonl")) -> None:
    """Film reviews, positive or negative (sentence_polarity.zip), in ten folds."""
    from sightline.data.converters import classes

    _write(classes.polarity(source), out)


@prepare.command()
def subjectivity(source: Archive, out: Out = Path("subjectivity.jsonl")) -> None:
    """Sentences that are opinions or facts (subjectivity.zip), in ten folds."""
    from sightline.data.converters import classes

    _write(classes.subjectivity(source), out)


Reference = Annotated[list[Path] | None, typer.Option(help="Another translation of the source.")]


@prepare.command()
def parallel(
    train: Annotated[tuple[Path, Path], typer.Option(metavar="SOURCE TARGET", help="To train on.")],
    dev: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="SOURCE TARGET", help="To choose the best checkpoint on."),
    ] = None,
    test: Annotated[
        tuple[Path, Path] | None, typer.Option(metavar="SOURCE TARGET", help="To report on.")
    ] = None,
    dev_reference: Reference = None,
    test_reference: Reference = None,
    out: Out = Path("parallel.jsonl"),
) -> None:
    """Pairs of text files whose lines are translations of each other."""
    from sightline.data.manifest import Split
    from sightline.data.parallel import from_parallel
    from sightline.errors import DataError

    splits: dict[Split, list[Path]] = {"train": [*train]}
    held_out: list[tuple[Split, tuple[Path, Path] | None, list[Path] | None]]
    held_out = [("dev", dev, dev_reference), ("test", test, test_reference)]
    for name, pair, more in held_out:
        if pair is not None:
            splits[name] = [*pair, *(more or [])]
        elif more:
            raise DataError(f"--{name}-reference adds to --{name} SOURCE TARGET; give that too")
    _write(from_parallel(splits, out.stem), out)


@prepare.command()
def treebank(
    path: Annotated[
        Path, typer.Argument(help="NLTK's treebank.zip, a folder of .mrg, or split<TAB>tree lines.")
    ],
    origin: Annotated[str, typer.Option(help="Of the trees: human, or machine.")] = "human",
    out: Out = Path("treebank.jsonl"),
) -> None:
    """Trees in Penn brackets, without traces and functions; the Penn sample split by files."""
    from sightline.data.converters import treebanks
    from sightline.data.manifest import ORIGINS
    from sightline.errors import DataError

    if origin not in ORIGINS:
        raise DataError(f"--origin is one of {', '.join(ORIGINS)}, not {origin!r}")
    _write(treebanks.treebank(path, origin), out)


@prepare.command()
def babi(
    folder: Annotated[Path, typer.Argument(help="The folder of qaN_…_train.txt and _test.txt.")],
    task: Annotated[list[int] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    out: Out = Path("babi.jsonl"),
) -> None:
    """bAbI: stories, questions, answers, and the facts that support them."""
    from sightline.data.converters.stories import babi as stories

    _write(stories(folder, task or ()), out)


# ---------------------------------------------------------------- speech


@prepare.command()
def speechocean762(
    folder: Folder,
    words: Annotated[bool, typer.Option(help="Words as targets, not phones.")] = False,
    out: Out = Path("speechocean762.jsonl"),
) -> None:
    """speechocean762: {train,test}.tsv and the recordings; a tenth of the speakers for dev."""
    from sightline.data.converters import speech

    _write(speech.speechocean(folder, words=words), out)


@prepare.command()
def kaldi(
    train: Annotated[
        Path, typer.Option(help="A folder with wav.scp and text (segments, utt2spk).")
    ],
    dev: Annotated[
        Path | None, typer.Option(help="The same, to choose the best checkpoint.")
    ] = None,
    test: Annotated[Path | None, typer.Option(help="The same, to report on.")] = None,
    out: Out = Path("kaldi.jsonl"),
) -> None:
    """Kaldi's data folders; what `segments` cuts out is written beside the manifest."""
    from sightline.data.converters import speech
    from sightline.data.manifest import Split

    folders: dict[Split, Path | None] = {"train": train, "dev": dev, "test": test}
    given = {split: folder for split, folder in folders.items() if folder is not None}
    _write(speech.kaldi(given, out.with_suffix("")), out)


@prepare.command()
def recordings(
    folder: Annotated[Path, typer.Argument(help="Sound files, each with a .txt of the same name.")],
    dev: Annotated[float, typer.Option(help="Share held out for dev.")] = 0.1,
    test: Annotated[float, typer.Option(help="Share held out for test.")] = 0.1,
    out: Out = Path("recordings.jsonl"),
) -> None:
    """A folder of recordings and texts: a.wav with a.txt …"""
    from sightline.data.converters import speech

    _write(speech.recordings(folder, dev=dev, test=test), out)


@prepare.command()
def timit(folder: Folder, out: Out = Path("timit.jsonl")) -> None:
    """TIMIT, for those who hold it: 48 phones; 462 speakers, 50 for dev, 24 for test."""
    from sightline.data.converters import speech
    from sightline.data.phones import timit_48

    _write(speech.timit(folder, timit_48), out)


@prepare.command()
def spoken(
    text: Annotated[Path, typer.Argument(help="Sentences of English, one a line.")],
    voices: Annotated[str, typer.Option(help="flite's voices.")] = "kal16,awb,rms,slt",
    unheard: Annotated[str, typer.Option(help="The voice that only the test split has.")] = "slt",
    most: Annotated[int, typer.Option(min=0, help="Sentences at most; 0 for all.")] = 0,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    out: Out = Path("spoken.jsonl"),
) -> None:
    """Speech made by flite, with the true time of each phone; sounds go to a folder beside OUT."""
    from sightline.data.converters import spoken as made

    names = [name.strip() for name in voices.split(",") if name.strip()]
    folder = out.with_suffix("")
    _write(made.spoken(text, folder, voices=names, unheard=unheard, most=most, seed=seed), out)


def _write(prepared: Prepared, out: Path) -> None:
    from sightline.data.manifest import write_manifest

    write_manifest(out, prepared.examples)
    for note in prepared.notes:
        echo(f"note: {note}", err=True)
    echo(f"{out}: {prepared.summary()}")

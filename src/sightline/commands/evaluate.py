"""`sightline evaluate`: a model's metrics on held-out data."""

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    model: Annotated[str, typer.Argument(help="A run's folder, a checkpoint, or a zoo name.")],
    text: Annotated[
        Path | None,
        typer.Option(help="Score this text; if not given, the held-out part of the training text."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Print a language model's nats and bits per token and its perplexity."""
    import json

    from sightline.commands import load_for
    from sightline.errors import DataError
    from sightline.media.text import read_text
    from sightline.tasks.language_model import split_text

    language_model = load_for(model, "language_model")
    recipe = language_model.recipe
    try:
        content = split_text(recipe)[1] if text is None else read_text(text)
    except DataError as error:
        hint = "; --text FILE scores another" if text is None else ""
        raise DataError(f"{error}{hint}") from None
    metrics = language_model.evaluate(content)
    if as_json:
        typer.echo(json.dumps(metrics))
        return
    unit = {"char": "character", "word": "word", "bpe": "piece"}[recipe.unit]
    what = f"held-out part of {recipe.text}" if text is None else str(text)
    typer.echo(f"{what}: {metrics['loss']:.4f} nats per {unit}")
    typer.echo(f"{metrics['bits']:.4f} bits per {unit}, perplexity {metrics['perplexity']:.3f}")

"""`sightline sample`: let a language model write."""

from pathlib import Path
from typing import Annotated

import typer

from sightline.commands import Device


def sample(
    model: Annotated[str, typer.Argument(help="A run's folder, a checkpoint, or a zoo name.")],
    prompt: Annotated[str, typer.Option(help="Begin with this.")] = "\n",
    temperature: Annotated[
        float, typer.Option(min=0, help="Below 1 is safer, above 1 wilder, 0 the likeliest.")
    ] = 0.8,
    length: Annotated[int, typer.Option(min=1, help="Tokens to write.")] = 500,
    top_k: Annotated[int, typer.Option(min=0, help="Only the k likeliest tokens; 0 for all.")] = 0,
    top_p: Annotated[
        float, typer.Option(min=0, max=1, help="Only the likeliest tokens that hold this mass.")
    ] = 1.0,
    samples: Annotated[int, typer.Option(min=1, help="How many texts.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="The same seed writes the same text.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per text and line.")
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(help="Also draw the text, each character shaded by its surprise, as PNG."),
    ] = None,
    device: Device = "auto",
) -> None:
    """Write text with a language model, as it comes."""
    import json

    from sightline.commands import one_thread
    from sightline.tasks import load_for

    language_model = load_for(model, "language_model", device=device)
    one_thread()
    options = {"length": length, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    if samples == 1 and not as_json and figure is None:
        for piece in language_model.stream(prompt, seed=seed, **options):
            typer.echo(piece, nl=False)
        typer.echo()
        return
    texts = language_model.sample(prompt, samples=samples, seed=seed, **options)
    for number, text in enumerate(texts):
        if as_json:
            typer.echo(json.dumps(text.to_json(), ensure_ascii=False))
        else:
            typer.echo(text.text + ("\n" + "─" * 40 if number + 1 < samples else ""))
    if figure is not None:
        from sightline.figures import draw_surprise

        draw_surprise(texts[0], figure)
        typer.echo(f"wrote {figure}", err=True)

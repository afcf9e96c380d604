"""`sightline sample`: let a language model write."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sightline.tasks.command_line import (
    Device,
    Output,
    Quiet,
    echo,
    echo_json,
    note,
    writing_to,
)


def sample(
    model: Annotated[str, typer.Argument(help="A run's folder, a checkpoint, or a zoo name.")],
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="Begin with this.")] = "\n",
    temperature: Annotated[
        float, typer.Option(min=0, help="Below 1 is safer, above 1 wilder, 0 the likeliest.")
    ] = 0.8,
    length: Annotated[int, typer.Option("--length", "-l", min=1, help="Tokens to write.")] = 500,
    top_k: Annotated[int, typer.Option(min=0, help="Only the k likeliest tokens; 0 for all.")] = 0,
    top_p: Annotated[float, typer.Option(min=0, max=1, help="The likeliest of this mass.")] = 1.0,
    samples: Annotated[int, typer.Option("--samples", "-n", min=1, help="How many texts.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="The same seed writes the same text.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object per text.")] = False,
    figure: Annotated[Path | None, typer.Option(help="A PNG of the text by its surprise.")] = None,
    output: Output = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Write text with a language model, as it comes."""
    from sightline.runtime.partial import Partial
    from sightline.tasks import load_for
    from sightline.tasks.command_line import one_thread

    language_model = load_for(model, "language_model", device=device)
    one_thread()
    options: dict[str, Any] = {
        "length": length, "temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed,
    }  # fmt: skip
    with writing_to(output):
        if samples == 1 and not as_json and figure is None:
            shown = 0
            for step in language_model.stream(prompt, **options):
                # half a character, of which more bytes are to come, is not shown yet
                if isinstance(step, Partial) and not step.text.endswith("\ufffd"):
                    echo(step.text[shown:], nl=False)
                    shown = len(step.text)
            echo()
            return
        first = language_model.describe(prompt, n_best=samples, **options)
        texts = [first, *first.alternatives]
        for number, text in enumerate(texts):
            if as_json:
                echo_json({**text.to_json(), "alternatives": []})
            else:
                echo(text.text + ("\n" + "─" * 40 if number + 1 < samples else ""))
    if figure is not None:
        from sightline.figures import draw_surprise

        draw_surprise(first, figure)
        note(f"wrote {figure}")


def gradients(
    models: Annotated[
        list[str] | None, typer.Argument(help="Runs; none: cells that are not trained.")
    ] = None,
    text: Annotated[Path | None, typer.Option(help="What they read; a sonnet by default.")] = None,
    steps: Annotated[int, typer.Option(min=1, max=1000, help="How far back.")] = 50,
    out: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")] = Path(
        "gradients.png"
    ),
) -> None:
    """Draw how a gradient fades or explodes on its way back through time.

    Shown is the largest singular value of the last state's Jacobian by the first: the factor by
    which a gradient grows at most.
    """
    from sightline.media.text import read_text
    from sightline.samples import FOLDER
    from sightline.tasks.language_model.gradients import draw, of_new_cells, of_runs

    content = read_text(text or FOLDER / "sonnet.txt")
    found = of_runs(models, content, steps) if models else of_new_cells(content, steps)
    shown = sorted({*(n for n in (1, 10, 25, 50, 100) if n < steps), steps})
    echo(f"{'steps back':28}{'σ(U)':>8}" + "".join(f"{n:>10}" for n in shown))
    for one in found:
        values = "".join(f"{one.after(n):>10.2g}" for n in shown)
        echo(f"{one.name:28}{one.sigma:>8.2f}{values}")
    draw(found, out)
    note(f"wrote {out}")

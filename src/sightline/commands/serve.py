"""`sightline serve`: the page and the HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from sightline.tasks.command_line import echo


def serve(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="A zoo name, a run, a checkpoint or NAME=PATH. Default: the whole zoo.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8000,
    max_queue: Annotated[int, typer.Option(min=1, help="Requests at a time; more get 503.")] = 64,
    max_batch: Annotated[
        int, typer.Option(min=1, help="Requests answered by one model call.")
    ] = 16,
    time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds for one request.")] = 30.0,
    upload_limit: Annotated[float, typer.Option(min=0.001, help="Megabytes per file.")] = 20.0,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="An origin whose pages may use the API, such as https://example.org."),
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="Require the API key that this environment variable holds.")
    ] = None,
) -> None:
    """Serve the page and the HTTP API; Ctrl-C or SIGTERM stops it when all is answered."""
    import os

    from sightline.errors import UserError
    from sightline.serve import logs
    from sightline.serve.app import Service
    from sightline.serve.limits import MEGABYTE, Limits
    from sightline.serve.models import load_models
    from sightline.serve.server import Server, bind

    key = None
    if api_key_env is not None:
        key = os.environ.get(api_key_env)
        if not key:
            raise UserError(f"--api-key-env: the environment variable {api_key_env} is not set")
    limits = Limits(
        max_queue=max_queue,
        max_batch=max_batch,
        time_limit=time_limit,
        upload_bytes=int(upload_limit * MEGABYTE),
    )
    listener = bind(host, port)
    models = load_models(model or [])
    logs.configure()
    shown = f"[{host}]" if ":" in host else host
    names = ", ".join(each.name for each in models)
    echo(f"Serving {names} at http://{shown}:{listener.getsockname()[1]}/", err=True)
    Server(Service(models, limits, key, allow_origin or [])).run([listener])

"""``bayesneg serve``: a run or an export over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesneg.cli.interrupt import told
from bayesneg.cli.output import named_as_options, say


def serve(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="a run folder, or a folder that export wrote")],
    port: Annotated[int, typer.Option(help="port to listen on; 0 for any free one")] = 8000,
    host: Annotated[str, typer.Option(help="address to listen on; there is no authentication")] = "127.0.0.1",
    exact: Annotated[bool, typer.Option("--exact", help="do not use the index of an export")] = False,
    watch: Annotated[
        float, typer.Option(metavar="SECONDS", help="how often to look for a new model in RUN; 0 for never")
    ] = 2.0,
    max_k: Annotated[int, typer.Option(help="longest list of a request")] = 1_000,
    max_ids: Annotated[int, typer.Option(help="most identifiers in a list of a request")] = 10_000,
    max_body: Annotated[int, typer.Option(metavar="BYTES", help="largest body of a request")] = 1 << 20,
) -> None:
    """Answer requests over HTTP: /recommend, /similar, /fold-in, /health, /metrics; the OpenAPI page is /docs.

    The folder is watched: a new model in it, or SIGHUP, is loaded beside the
    old one and takes its place; no request is lost. Needs the extra serve:
    pip install 'bayesneg\\[serve]'.

    \b
    Examples:
      bayesneg serve runs/bns --port 8000
      curl 'http://127.0.0.1:8000/recommend?user=196&k=10'
      curl http://127.0.0.1:8000/fold-in --json '{"items": [50, 181], "k": 5}'
    """
    from bayesneg.serving.limits import Limits
    from bayesneg.serving.server import serve as answer

    with named_as_options("port", "host", "watch", "max_k", "max_ids", "max_body"):
        limits = Limits(max_k=max_k, max_ids=max_ids, max_body=max_body)
        try:
            answer(folder, host=host, port=port, index=not exact, watch=watch, limits=limits, say=say)
        except KeyboardInterrupt as error:
            told(error, "stopped")
            raise

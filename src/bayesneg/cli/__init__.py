"""The command line: each command a few lines that call the library.

Results go to stdout only with --json; tables and progress go to stderr. Exit codes: 0 done, 2 the input is wrong, 1
anything else, 130 interrupted.
"""

from __future__ import annotations

import sys

import typer

from bayesneg import __version__
from bayesneg.cli import data, runs, training
from bayesneg.cli.output import say
from bayesneg.errors import BayesnegError

app = typer.Typer(
    name="bayesneg",
    help="Negative sampling for implicit-feedback recommendation: train, compare and judge samplers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"bayesneg {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show it."),
) -> None:
    """Negative sampling for implicit-feedback recommendation: train, compare and judge samplers.

    \b
    Example, no download needed:
      bayesneg compare synthetic --samplers rns,dns,bns --seeds 3 --epochs 40
    """


app.command()(training.train)
app.command()(training.compare)
app.command()(runs.evaluate)
app.command()(runs.recommend)
app.command()(runs.report)
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command; the user's mistakes end in one sentence and exit code 2."""
    try:
        app()
    except BayesnegError as error:
        say(f"error: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        say("interrupted; a run begun with --out goes on where it stood with the same command and --resume")
        sys.exit(130)

"""The command line: each command a few lines that call the library.

Results go to stdout, as tables or with --json as one object; progress and notes go to stderr. Exit codes: 0 done, 2 the
input is wrong, 1 anything else, 130 interrupted (Ctrl-C), 143 terminated (SIGTERM).
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated

import typer

from bayesneg import __version__
from bayesneg.cli import audit, compare, data, priors, reproduce, train, tune
from bayesneg.cli.finished import evaluate, export, recommend, report, serve, similar
from bayesneg.cli.groups import bounded
from bayesneg.cli.interrupt import ending, terminable
from bayesneg.cli.output import say, with_options_alone
from bayesneg.cli.training.listings import BriefHelp
from bayesneg.cli.training.processes import is_first, is_of_collective, leave, lost_contact, say_error
from bayesneg.cli.training.run_file import TrainCommand
from bayesneg.distributed import is_distributed
from bayesneg.errors import BayesnegError, PanicError, StorageError, file_sentence, no_panic
from bayesneg.progress import printable

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # errors of a disk, also of files of other libraries

app = typer.Typer(
    name="bayesneg",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"bayesneg {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Negative sampling for implicit-feedback recommendation: train, compare, tune and audit samplers.

    \b
    Example, no download needed:
      bayesneg compare synthetic --samplers rns,dns,bns --seeds 3 --epochs 40
    """


app.command(cls=TrainCommand)(train.train)
app.command(cls=BriefHelp)(compare.compare)
app.command(cls=BriefHelp)(tune.tune)
app.command(cls=BriefHelp)(audit.audit)
app.command()(evaluate.evaluate)
app.command()(recommend.recommend)
app.command()(similar.similar)
app.command()(report.report)
app.command()(export.export)
app.command()(serve.serve)
app.command()(priors.priors)
app.command()(reproduce.reproduce)
app.add_typer(data.app, name="data")
for _each in (*app.registered_commands, *data.app.registered_commands):
    _each.callback = _each.callback and ending(bounded(_each.callback))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit; a mistake of the user ends in one sentence and exit code 2."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr: ± must not end a command where only ASCII goes
    try:
        with terminable():
            status = _status(arguments)
    finally:
        leave()
    sys.exit(status)


def _status(arguments: Sequence[str] | None) -> int:
    try:
        with no_panic():
            return app(arguments, prog_name="bayesneg", standalone_mode=False) or 0
    except typer.TyperException as error:  # the arguments are not those of the command
        message = printable(error.format_message(), keep="")
        if message and is_first():
            end = "" if message.endswith("?") else ";"
            say(f"error: {message.rstrip('.')}{end} see {_command(arguments)} --help")
        return 2
    except BayesnegError as error:
        say_error(with_options_alone(str(error)))
        return 1 if isinstance(error, StorageError) else 2
    except PanicError as error:
        say_error(f"a table could not be read: {error}; it is damaged, write it again")
        return 2
    except MemoryError as error:
        what = f": {error}" if str(error) else ""
        say(f"error: out of memory{what}; lower dim, ensemble_size or the number of candidates")
        return 1
    except RuntimeError as error:
        if not (is_distributed() and is_of_collective(error)):
            raise
        say_error(lost_contact(error))
        return 1
    except OSError as error:
        if error.filename is None:
            if error.errno not in FULL:
                raise
            say_error(f"a file could not be written: {error.strerror}; make room on the disk")
            return 1
        say_error(file_sentence(error))
        return 2


def _command(arguments: Sequence[str] | None) -> str:
    """``bayesneg train``: the command that was called, where there is such a one."""
    called = (sys.argv[1:] if arguments is None else arguments)[:1]
    known = [each.callback.__name__ for each in app.registered_commands if each.callback] + ["data"]
    return " ".join(["bayesneg", *(name for name in called if name in known)])

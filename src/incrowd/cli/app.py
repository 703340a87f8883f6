"""Puts the command groups together and turns errors into one line and exit code 2."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from incrowd.cli.anonymity import anonymity
from incrowd.cli.assess import assess
from incrowd.cli.belief import app as belief
from incrowd.cli.console import complain
from incrowd.cli.count import count
from incrowd.cli.crowd_report import crowd_report
from incrowd.cli.demo import demo
from incrowd.cli.draft import draft
from incrowd.cli.exposure import app as exposure
from incrowd.cli.gateway import app as gateway
from incrowd.cli.info import info
from incrowd.cli.ingest import ingest
from incrowd.cli.linkability import linkability
from incrowd.cli.microdata import app as microdata
from incrowd.cli.plan import plan
from incrowd.cli.release import app as release
from incrowd.cli.serve import serve
from incrowd.cli.study import app as study
from incrowd.cli.watch import watch

app = typer.Typer(
    name="incrowd",
    help="How well do you hide in the crowd? Everything runs on this machine; nothing is sent anywhere.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from incrowd import __version__

        typer.echo(f"incrowd {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure how well a person hides in a crowd, and what would help."""


app.command()(demo)
app.command()(ingest)
app.command()(info)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(plan)
app.command()(count)
app.command()(anonymity)
app.command()(linkability)
app.command()(assess)
app.command()(draft)
app.command()(watch)
app.command()(crowd_report)
app.add_typer(microdata, name="microdata")
app.add_typer(belief, name="belief")
app.add_typer(release, name="release")
app.add_typer(gateway, name="gateway")
app.add_typer(exposure, name="exposure")
app.add_typer(study, name="study")
app.command()(serve)


def main() -> None:
    """Run the command line; a user's mistake becomes a message, never a traceback."""
    try:
        app()
    except KeyboardInterrupt:
        complain("interrupted; nothing half-written was kept")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away (`| head`): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        complain(_explain(error))
        sys.exit(2)


def _explain(error: Exception) -> str:
    from incrowd.errors import IncrowdError

    if isinstance(error, IncrowdError):
        return str(error)
    if isinstance(error, OSError):
        # e.g. disk full, no permission: the system's own words and the file name say it best.
        name = f"{error.filename}: " if error.filename else ""
        return f"{name}{error.strerror or type(error).__name__}"
    if isinstance(error, MemoryError):
        return "out of memory: give a smaller --memory budget, or fewer or smaller inputs"
    if os.environ.get("INCROWD_DEBUG"):
        raise error
    # The message of an unforeseen error may quote data, so only its type is shown.
    return f"unexpected {type(error).__name__}: set INCROWD_DEBUG=1 for the details, and please report it"

"""Puts the command groups together and turns errors into one line and exit code 2.

A registered measure that has no file of its own here gets a command, too.
"""

from __future__ import annotations

import gc
import io
import math
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence, Set
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from incrowd.cli.console import AsJson, CrowdFolder, FailAbove, complain, exit_for_risk, show, show_json
from incrowd.errors import IncrowdError, InputError, SchemaError, UnreadableSource, on_the_command_line
from incrowd.measures import REGISTERED

ABOUT_FILES = ("format", "keep-complete", "columns", "kind", "dates", "community", "yes")
"""Options of `ingest` that say how to read a file."""
_OPTION = re.compile(rf"(?<![\w-])--({'|'.join(ABOUT_FILES)})(?![\w-])")
OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""Most of what a command makes is needed until it ends: looking for garbage every 700 objects, as Python does, took a
tenth of the time of an answer."""
COMMANDS = (
    "demo",
    "ingest",
    "collect",
    "info",
    "forget",
    "plan",
    "count",
    "anonymity",
    "linkability",
    "recognition",
    "link",
    "assess",
    "draft",
    "watch",
    "crowd-report",
    "microdata",
    "belief",
    "disclosures",
    "release",
    "gateway",
    "exposure",
    "card",
    "study",
    "serve",
)
"""In the order of the help; each is a file of this folder, or in the one that `FILES` names."""
FILES = {
    **dict.fromkeys(("demo", "ingest", "info", "count"), "crowds"),
    **dict.fromkeys(("anonymity", "linkability", "recognition", "link"), "writing"),
    "crowd-report": "assess",
    "watch": "draft",
}
"""Commands that share a file."""
INTERRUPTED = 130
SETTINGS: dict[str, dict[str, Any]] = {"plan": {"allow_extra_args": True, "ignore_unknown_options": True}}


def all_commands() -> tuple[str, ...]:
    """Return the names of all commands: ours, and one for each registered measure without a file of its own."""
    return (*COMMANDS, *(name for name in REGISTERED if name not in COMMANDS))


def build(names: Sequence[str] | None = None) -> typer.Typer:
    """Put some of the commands together; reading the options of all of them takes longer than most answers."""
    app = typer.Typer(
        name="incrowd",
        help="How well do you hide in the crowd? Everything runs on this machine; "
        "nothing is sent anywhere, except by `collect`, which asks first.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in all_commands() if names is None else names:
        if name not in COMMANDS:
            app.command(name)(_command_for(name))
            continue
        function = name.replace("-", "_")
        module = import_module(f"incrowd.cli.{FILES.get(name, function)}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(context_settings=SETTINGS.get(name))(getattr(module, function))
    _check_numbers(app)
    return app


class _Checked(TyperCommand):
    """A command that refuses "nan" for any of its numbers: every comparison with it is false, so no limit stops it."""

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        for parameter in self.params:
            value = ctx.params.get(parameter.name)
            if isinstance(value, float) and math.isnan(value):
                raise InputError(f"{parameter.opts[0]}: expected a number, got nan")
        return super().invoke(ctx)


def _check_numbers(app: typer.Typer) -> None:
    for command in app.registered_commands:
        command.cls = _Checked
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _check_numbers(group.typer_instance)


def _version(wanted: bool) -> None:
    if wanted:
        from incrowd import __version__

        typer.echo(f"incrowd {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure how well a person hides in a crowd, and what would help."""


def run() -> None:
    """Run the command line; a user's mistake becomes a message, never a traceback."""
    _speak_utf8()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    with on_the_command_line():
        _run()


def _run() -> None:
    asked = sys.argv[1:2]
    interrupted = _note_interrupts()
    try:
        build(asked if asked and asked[0] in all_commands() else None)()
    except SystemExit as end:
        if interrupted and end.code == INTERRUPTED:  # Typer ends without a word
            raise KeyboardInterrupt from None
        if isinstance(end.__context__, BrokenPipeError):  # Typer ends with 1
            _stop_writing()
        raise
    except BrokenPipeError:
        _stop_writing()
    except Exception as error:
        if interrupted:  # a library's code was interrupted, and it reports something else
            raise KeyboardInterrupt from None
        about_a_file = isinstance(error, (UnreadableSource, SchemaError))
        complain(_for_the_command(str(error), _options) if about_a_file else _explain(error))
        sys.exit(2)


def _stop_writing() -> None:
    """End in peace: the reader of our output went away (`| head`). Asked about a risk, we do not know: not fine."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(int(any(word.startswith("--fail-above") for word in sys.argv)))


def _options() -> set[str]:
    """Return the options of the command that runs; where it reads another (`plan`), those about files."""
    from typer.main import get_command

    words = sys.argv[1:]
    if not words or words[0] not in all_commands() or words[0] == "plan":
        return set(ABOUT_FILES)
    found: Any = get_command(build(words[:1]))
    for word in words:
        found = getattr(found, "commands", {}).get(word, found)
    return {name.removeprefix("--") for one in found.params for name in one.opts}


def _note_interrupts() -> list[int]:
    """Return a list that holds something once Ctrl-C was pressed."""
    pressed: list[int] = []

    def note(number: int, frame: object) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, note)
    return pressed


def _speak_utf8() -> None:
    """Have output in UTF-8 where the system would use a code page: a pipe on Windows could not hold our words."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8", errors="replace")


def _explain(error: Exception) -> str:
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


def _for_the_command(message: str, options: Callable[[], Set[str]]) -> str:
    """Leave out advice to use options about files that the command does not take, and name the command that does."""
    if not _OPTION.search(message) or "incrowd " in message:  # whole commands are right as they are
        return message
    taken = options()
    sentences = re.split(r"(?<=[.!?]) +", message)
    kept = [one for one in sentences if set(_OPTION.findall(one)) <= taken]
    missing = [option for one in sentences for option in _OPTION.findall(one) if option not in taken]
    if not missing or not kept:
        return message
    named = " and ".join(f"--{option}" for option in dict.fromkeys(missing))
    return " ".join([*kept, f"Or import it into a crowd with incrowd ingest, which takes {named}."])


def _command_for(name: str) -> Callable[..., None]:
    """Return the command of one measure: one person by name, or everybody."""
    from incrowd.measures.protocol import measure_named

    def command(
        crowd: CrowdFolder,
        user: Annotated[
            str | None, typer.Option("--user", help="One person, by name; without it, everybody.")
        ] = None,
        fail_above: FailAbove = None,
        as_json: AsJson = False,
    ) -> None:
        _one_person(name, crowd, user, fail_above, as_json) if user else _everybody(name, crowd, as_json)

    command.__doc__ = measure_named(name).question
    return command


def _one_person(name: str, crowd: Path, user: str, fail_above: float | None, as_json: bool) -> None:
    from incrowd.advisor.assess import assess
    from incrowd.crowd import Crowd
    from incrowd.measures.protocol import AdvisorOptions, measure_named

    only = tuple(measure_named(name).adversaries)
    report = assess(Crowd(crowd), user, options=AdvisorOptions(adversaries=only, advice=False))
    own = [one for one in report.findings if one.assessment.measure == name]
    silent = [one for one in report.not_assessed if one.measure.split(" ")[0] == name]
    if as_json:
        show_json(
            {
                "assessments": [one.to_dict() for one in own],
                "not_assessed": [{"why": one.why, "remedy": one.remedy} for one in silent],
            }
        )
    else:
        for one in own:
            show(one.assessment)
        for missing in silent:
            show(f"[dim]Cannot tell: {missing.why}. {missing.remedy}[/dim]")
    exit_for_risk(report.risk, fail_above)


def _everybody(name: str, crowd: Path, as_json: bool) -> None:
    from incrowd.crowd import Crowd
    from incrowd.errors import InputError
    from incrowd.measures.crowd_rates import CrowdOptions
    from incrowd.measures.protocol import PreparedCrowd, measure_named
    from incrowd.result import to_plain

    rates = measure_named(name).everybody(PreparedCrowd.of(Crowd(crowd)), CrowdOptions())
    if rates is None:
        raise InputError(f"{name}: this measure tells nothing about everybody; name one person with --user")
    if as_json:
        show_json(to_plain(rates))
        return
    for spread in rates.spreads:
        below = ", ".join(f"{people.words()} below {size}" for size, people in spread.below)
        show(f"[bold]{spread.name}[/bold], {spread.people:,} {spread.who}: {below}")
    for line in rates.not_measured:
        show(f"[dim]Not measured: {line}.[/dim]")

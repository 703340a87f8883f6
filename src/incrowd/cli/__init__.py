"""The command line: one thin file per command group, no arithmetic.

Modules here import Typer only; what a command needs it imports when it runs. Measured: with everything at the top
``incrowd --help`` would take two seconds (Polars, Numba, SciPy) in place of a quarter.
"""

import sys

TYPE_CHECKING = False  # as in incrowd/__init__.py
if TYPE_CHECKING:
    from typing import Any

    import typer

    app: typer.Typer

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; Ctrl-C ends it with one line, also while it is still being loaded or already leaving."""
    try:
        try:
            from incrowd.cli.commands import run

            run()
        finally:
            _stop_listening()
    except KeyboardInterrupt:
        sys.stderr.write("incrowd: interrupted; nothing half-written was kept\n")
        # Python remembers an interrupt of code it was compiling from text, and would end by the signal instead of with
        # our exit code; compiling something else makes it forget.
        exec("")  # noqa: S102
        sys.exit(130)


def _stop_listening() -> None:
    """Let another Ctrl-C change nothing: the work has ended.

    While it leaves, Python gives the signal back to the system, which would end us by it: without a word, and with an
    exit code that is not ours. Only then is the signal ignored, because child processes would inherit that.
    """
    import atexit
    import signal
    import threading

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda *_: None)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def __getattr__(name: str) -> "Any":
    """Put all commands together for whoever asks for `app`."""
    if name != "app":
        raise AttributeError(f"module 'incrowd.cli' has no attribute {name!r}")
    from incrowd.cli.commands import build

    return globals().setdefault("app", build())

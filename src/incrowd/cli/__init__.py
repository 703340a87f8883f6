"""The command line: one thin file a command group, no arithmetic.

Modules here import Typer only; what a command needs it imports when it runs. Measured: with everything at the top
``incrowd --help`` would take two seconds (Polars, Numba, SciPy) in place of a quarter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.cli.commands import build, main

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    """Put all commands together for whoever asks for `app`."""
    if name != "app":
        raise AttributeError(f"module 'incrowd.cli' has no attribute {name!r}")
    return globals().setdefault("app", build())

"""The command line: one thin file a command group, no arithmetic.

Modules here import Typer only; what a command needs it imports when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

from incrowd.cli.app import app, main

__all__ = ["app", "main"]

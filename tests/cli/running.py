"""Runs the command line as a person does, in this process."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from incrowd.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def incrowd(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Outcome:
    """Run `incrowd ARGUMENTS` and return its exit code and what it printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["incrowd", *map(str, arguments)])
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        else:
            code = 0
    captured = capsys.readouterr()
    return Outcome(code, captured.out, captured.err)

"""Writes the pages that are made from the code itself, so that the two cannot drift apart.

The list of commands, and the picture of layers on the architecture page.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from incrowd.cli import app

DOCS = Path(__file__).parent
LAYERS = runpy.run_path(str(DOCS / "layers.py"))
ARCHITECTURE = DOCS / "explanation" / "architecture.md"
START, END = "<!-- layers: written by docs/generate.py -->", "<!-- end of layers -->"
HEAD = """# Commands

Every command takes `--help`. Exit codes: 0 fine, 1 the risk is above `--fail-above`, 2 bad input.
This page is written by `make docs` from the commands themselves.
"""


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name, groups after their parents."""
    yield path, command
    for name, child in sorted(getattr(command, "commands", {}).items()):
        yield from commands(child, f"{path} {name}")


def cell(text: str) -> str:
    """Make a text safe inside a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def option_rows(command: Any) -> Iterator[str]:
    """Yield a table row for each argument and option."""
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        names = " ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        if parameter.param_type_name == "argument":
            names = f"`{parameter.metavar or parameter.name.upper()}`"
        default = parameter.default
        shown = "" if default is None or callable(default) or default in ((), [], False) else f"`{default}`"
        if isinstance(told := getattr(parameter, "show_default", None), str):
            shown = told
        text = getattr(parameter, "help", None) or ""
        yield f"| {cell(names)} | {cell(text)} | {cell(shown)} |"


def section(path: str, command: Any) -> str:
    """Describe one command."""
    rows = list(option_rows(command))
    text = (command.help or "").strip().split("\f")[0]
    table = "\n".join(["| option | meaning | default |", "|---|---|---|", *rows]) if rows else ""
    return f"## {path}\n\n{text}\n\n{table}\n"


def page() -> str:
    """Return the whole page."""
    root = get_command(app)
    return "\n".join([HEAD, *(section(path, command) for path, command in commands(root, "incrowd"))])


def architecture() -> str:
    """Return the architecture page with today's layers between its markers."""
    before, rest = ARCHITECTURE.read_text("utf-8").split(START)
    after = rest.split(END)[1]
    return f"{before}{START}\n{LAYERS['written']()}\n{END}{after}"


def files() -> dict[Path, str]:
    """Return every generated file."""
    return {
        DOCS / "reference" / "commands.md": page(),
        ARCHITECTURE: architecture(),
        DOCS / "images" / "layers.svg": LAYERS["picture"](),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(DOCS.parent)}")

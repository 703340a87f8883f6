"""Writes docs/reference/commands.md from the command line itself, so that the two cannot drift apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from incrowd.cli import app

PAGE = Path(__file__).parent / "reference" / "commands.md"
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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(Path.cwd())}" if PAGE.is_relative_to(Path.cwd()) else f"wrote {PAGE}")

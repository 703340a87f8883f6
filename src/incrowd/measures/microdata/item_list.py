"""Reads a person's own list of items: one a line, a JSON list, or a table with a column "item"."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from incrowd.errors import InputError, UnreadableSource


def read_items(path: str | Path) -> list[str]:
    """Return the items of a file, repeats and blanks left out, in order."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSource(
            f"{path}: expected a text file of items, but it cannot be read ({type(error).__name__})"
        ) from None
    try:
        return parse_items(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def parse_items(text: str) -> list[str]:
    """Return the items of a text.

    >>> parse_items("a\\n\\nb\\na")
    ['a', 'b']
    >>> parse_items("user,item\\nme,a\\nme,b")
    ['a', 'b']
    """
    stripped = text.strip()
    if stripped.startswith("["):
        return _tidy(_json_list(stripped))
    lines = stripped.splitlines()
    for mark in ("\t", ",", ";"):
        names = [name.strip().lower().split(":")[0] for name in lines[0].split(mark)] if lines else []
        if len(names) > 1 and "item" in names:
            column = names.index("item")
            rows = csv.reader(io.StringIO("\n".join(lines[1:])), delimiter=mark)
            return _tidy([row[column] for row in rows if len(row) > column])
    return _tidy(lines)


def _json_list(text: str) -> list[str]:
    try:
        return [str(one["item"] if isinstance(one, dict) else one) for one in json.loads(text)]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise InputError(
            "expected a JSON list of items (or of objects with an 'item'), got something else"
        ) from None


def _tidy(items: list[str]) -> list[str]:
    return list(dict.fromkeys(item.strip() for item in items if item.strip()))

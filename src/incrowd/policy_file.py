"""Reading a policy from a TOML file into frozen dataclasses, strict about names and types.

A mistyped setting must not weaken a policy, so whatever is not known is refused, and no type is guessed. msgspec checks
the types; loading it takes 30 ms, so commands import this module when they need a policy.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from incrowd.errors import InputError, UnreadableSource

Made = TypeVar("Made")
WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text in quotes",
    "path": "a file name in quotes",
    "object": "a table",
    "array": "a list",
}
"""How msgspec calls a type -> how a person would."""


TITLE = "policy"
"""How a message begins."""


def load_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise UnreadableSource(
            f"{path}: expected a policy file, could not read it: there is no such file"
        ) from None
    except OSError:
        raise UnreadableSource(f"{path}: expected a policy file, could not read it") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: this is no TOML file ({error})") from None


def read_settings(kind: type[Made], content: Any, *, folder: Path = Path()) -> Made:
    """Make a dataclass, and those inside it, from the tables of a policy; file names in it are relative to `folder`."""
    _refuse_unknown(kind, content, "")

    def file_name(wanted: Any, value: Any) -> Any:
        if wanted is Path and isinstance(value, str):
            return folder / value
        raise msgspec.ValidationError(f"Expected `path`, got `{type(value).__name__}`")

    try:
        return msgspec.convert(content, kind, strict=True, dec_hook=file_name)
    except msgspec.ValidationError as error:
        raise InputError(_in_words(str(error), kind, content)) from None


def _refuse_unknown(kind: Any, content: Any, where: str) -> None:
    """Look for names that no dataclass has, in every table; msgspec would pass over them."""
    place = f"{TITLE}, {where}" if where else TITLE
    if not isinstance(content, Mapping):
        got = type(content).__name__
        raise InputError(f"{place}: expected a table{f' [{where}]' if where else ''}, got {got}")
    hints = get_type_hints(kind)
    known = {one.name for one in fields(kind)}
    unknown = sorted(set(content) - known)
    if unknown:
        raise InputError(
            f"{place}: unknown setting '{unknown[0]}'; expected some of {', '.join(sorted(known))}"
        )
    for name in content:
        inside = f"{where}.{name}" if where else name
        if is_dataclass(hints[name]):
            _refuse_unknown(hints[name], content[name], inside)
        elif get_origin(hints[name]) is Mapping and is_dataclass(get_args(hints[name])[1]):
            for key, entry in _table(content[name], inside).items():
                _refuse_unknown(get_args(hints[name])[1], entry, f"{inside}.{key}")


def _table(content: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise InputError(f"{TITLE}, {where}: expected a table [{where}], got {type(content).__name__}")
    return content


def _in_words(message: str, kind: Any, content: Any) -> str:
    """Say in plain words what msgspec says in types, and where."""
    said, _, path = message.partition(" - at `$")
    path = _named(kind, content, path.rstrip("`").lstrip("."))
    joined = f"{TITLE}, {path}" if path else TITLE
    missing = re.fullmatch(r"Object missing required field `(\w+)`", said)
    if missing:
        return f"{joined}: '{missing[1]}' is missing"
    types = re.fullmatch(r"Expected `([^`]*)`, got `([^`]*)`", said)
    if types:
        wanted = next(name for name in types[1].split(" | ") if name != "null")
        return f"{joined}: expected {WORDS.get(wanted, wanted)}, got {types[2]}"
    if said.startswith(TITLE):  # a check of our own, which says where
        return said
    return f"{joined}: {said[0].lower()}{said[1:]}"


def _named(kind: Any, content: Any, path: str) -> str:
    """Put the name of the entry in place of msgspec's `[...]`: the first that cannot be read by itself."""
    before, dots, after = path.partition("[...]")
    if not dots:
        return path
    for step in before.split("."):
        hint, content = get_type_hints(kind)[step], content[step]
        kind = get_args(hint)[1] if get_origin(hint) is Mapping else hint
    for key, entry in content.items():
        try:
            msgspec.convert(entry, kind, strict=True, dec_hook=lambda wanted, value: value)
        except msgspec.ValidationError:
            return f"{before}.{key}{after}"
    return path

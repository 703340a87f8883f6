"""Reading a policy from TOML: strict about names and types, so that a typing mistake cannot weaken it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from incrowd.errors import InputError, UnreadableSource
from incrowd.gateway.policy import (
    AccountPolicy,
    AttributeSource,
    BudgetPolicy,
    DatabasePolicy,
    Filter,
    LimitPolicy,
    Organisation,
    Policy,
    ReleasePolicy,
    SnapshotPolicy,
)

SECTIONS: dict[str, type[Any]] = {
    "release": ReleasePolicy,
    "accounts": AccountPolicy,
    "snapshots": SnapshotPolicy,
    "budget": BudgetPolicy,
    "limits": LimitPolicy,
}
Made = TypeVar("Made")


def read_policy_file(path: Path) -> Policy:
    """Read a policy; paths in it are relative to the file."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError:
        raise UnreadableSource(f"{path}: expected a policy file, could not read it") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: this is no TOML file ({error})") from None
    return read_policy(content, path.parent)


def read_policy(content: Mapping[str, Any], folder: Path = Path()) -> Policy:
    """Make a policy from what a TOML file says."""
    allowed = {"database", "organisations", "allow_weak", *SECTIONS}
    _refuse_unknown(content, allowed, "policy")
    if "database" not in content:
        raise InputError("policy: [database] is missing; it says which tables and columns there are")
    sections = {name: _read(kind, content.get(name, {}), name) for name, kind in SECTIONS.items()}
    organisations = {
        name: _read(Organisation, one, f"organisations.{name}")
        for name, one in _table(content.get("organisations", {}), "organisations").items()
    }
    allow_weak = content.get("allow_weak", False)
    if not isinstance(allow_weak, bool):
        raise InputError("policy, allow_weak: expected true or false")
    database = _database(_table(content["database"], "database"), folder)
    return Policy(database=database, organisations=organisations, allow_weak=allow_weak, **sections)


def _database(content: Mapping[str, Any], folder: Path) -> DatabasePolicy:
    filters = {
        name: _filter(name, one)
        for name, one in _table(content.get("filters", {}), "database.filters").items()
    }
    attributes = {
        name: _read(AttributeSource, _with_path(one, folder, name), f"database.attributes.{name}")
        for name, one in _table(content.get("attributes", {}), "database.attributes").items()
    }
    plain = {key: value for key, value in content.items() if key not in ("filters", "attributes")}
    return _read(DatabasePolicy, {**plain, "filters": filters, "attributes": attributes}, "database")


def _filter(name: str, content: Any) -> Filter:
    """`age = "integer"` is short for a column of the same name."""
    if isinstance(content, str):
        return Filter(column=name, type=content)
    return _read(
        Filter, {"column": name, **_table(content, f"database.filters.{name}")}, f"database.filters.{name}"
    )


def _with_path(content: Any, folder: Path, name: str) -> dict[str, Any]:
    made = dict(_table(content, f"database.attributes.{name}"))
    if isinstance(made.get("aliases"), str):
        made["aliases"] = folder / made["aliases"]
    return made


def _read(kind: type[Made], content: Any, where: str) -> Made:
    content = _table(content, where)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # all are dataclasses
    _refuse_unknown(content, set(known), f"policy, {where}")
    for name, field in known.items():
        if name not in content and field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"policy, {where}: '{name}' is missing")
    return kind(
        **{name: _typed(value, str(known[name].type), f"{where}.{name}") for name, value in content.items()}
    )


def _typed(value: Any, kind: str, where: str) -> Any:
    expected = {
        "int": ("a whole number", isinstance(value, int) and not isinstance(value, bool)),
        "int | None": ("a whole number", isinstance(value, int) and not isinstance(value, bool)),
        "float": ("a number", isinstance(value, int | float) and not isinstance(value, bool)),
        "bool": ("true or false", isinstance(value, bool)),
        "str": ("text in quotes", isinstance(value, str)),
        "Path | None": ("a file name in quotes", isinstance(value, Path)),
    }
    wanted, fits = expected.get(kind, ("", True))
    if not fits:
        raise InputError(f"policy, {where}: expected {wanted}, got {type(value).__name__}")
    return float(value) if kind == "float" else value


def _table(content: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise InputError(f"policy, {where}: expected a table [{where}], got {type(content).__name__}")
    return content


def _refuse_unknown(content: Mapping[str, Any], allowed: set[str], where: str) -> None:
    unknown = sorted(set(content) - allowed)
    if unknown:
        raise InputError(
            f"{where}: unknown setting '{unknown[0]}'; expected some of {', '.join(sorted(allowed))}"
        )

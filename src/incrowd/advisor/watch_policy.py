"""The lines a person draws: when to say something. As values, from a TOML file, or sensible ones without it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.advisor.watch_levels import watchable_questions
from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.lines import Line, LineReading
from incrowd.measures.protocol import ThemeName, measure_named, moved_by_posts

SINKS = ("jsonl", "webhook", "desktop", "terminal")


def is_crossed(line: Line, reading: LineReading) -> bool:
    """Say whether a number is on the wrong side of a line."""
    return measure_named(line.measure).is_crossed(line, reading)


def say_line(line: Line, reading: LineReading) -> str:
    """Say where the person stands, in plain words."""
    where = line.community or "this crowd"
    if not reading.defined:
        place = f"from {where} to {line.target}" if line.target else f"in {where}"
        return f"Cannot tell for your line on {line.measure} {place}: {reading.reason}."
    if reading.silent:
        return f"Nothing you wrote in {where} points to {line.topic} in particular."
    return f"{measure_named(line.measure).say_reading(line, reading)}; your line is {line.at:,}."


@dataclass(frozen=True, kw_only=True)
class WatchPolicy:
    """All lines, and where alerts go."""

    lines: tuple[Line, ...] = ()
    questions: tuple[ThemeName, ...] = ()
    """Questions of the label: say so when one comes to another level."""
    jsonl: Path | None = None
    """A file that gets one JSON object a line."""
    webhook: str | None = None
    """An address on this machine that gets each alert as a POST."""
    desktop: Path | None = None
    """A folder that gets a text file for each alert."""
    terminal: bool = True

    def __post_init__(self) -> None:
        if not self.lines and not self.questions:
            raise InputError("policy: expected at least one [[line]], got none; see the how-to on watching")
        twice = len({line.key for line in self.lines}) < len(self.lines)
        if twice or len(set(self.questions)) < len(self.questions):
            raise InputError("policy: the same line stands there twice; leave it in once")


def load_policy(path: Path | str) -> WatchPolicy:
    """Read a policy from a TOML file; paths in it are relative to it."""
    place = Path(path)
    try:
        plain = tomllib.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnreadableSource(f"{path}: no such policy file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UnreadableSource(f"{path}: expected a TOML file with [[line]] tables: {problem}") from None
    if unknown := set(plain) - {"line", "alerts"}:
        raise InputError(f"{path}: unknown table '{min(unknown)}'; a policy has [[line]] and [alerts]")
    tables = plain.get("line", [])
    if not isinstance(tables, list):
        raise InputError(f"{path}: write lines as [[line]], with double brackets")
    lines, questions = list[Line](), list[ThemeName]()
    for number, table in enumerate(tables, 1):
        where = f"{path}, line {number}"
        if isinstance(table, Mapping) and "question" in table:
            questions.append(_question(table, where))
        else:
            lines.append(_line(table, where))
    alerts = _alerts(plain.get("alerts", {}), place)
    return WatchPolicy(lines=tuple(lines), questions=tuple(questions), **alerts)


def _question(table: Mapping[str, Any], where: str) -> ThemeName:
    known = {str(name): name for name in watchable_questions()}
    if table["question"] not in known:
        raise InputError(f"{where}: 'question' must be one of {', '.join(known)}; got {table['question']!r}")
    if unknown := set(table) - {"question"}:
        raise InputError(f"{where}: unknown key '{min(unknown)}'; a line with a question has nothing else")
    return known[table["question"]]


def _line(table: Any, where: str) -> Line:
    measure: Any = table.get("measure") if isinstance(table, Mapping) else None
    watched = {one.name: one for one in moved_by_posts() if one.line_keys}
    if measure not in watched:
        raise InputError(
            f"{where}: 'measure' must be one of {', '.join(watched)}, or name a 'question'; got {measure!r}"
        )
    wanted, optional = watched[measure].line_keys, watched[measure].optional_line_keys
    if unknown := set(table) - {"measure", *wanted}:
        raise InputError(
            f"{where}: unknown key '{min(unknown)}'; a line of {measure} has: {', '.join(wanted)}"
        )
    missing = [name for name in wanted if name not in table and name not in optional]
    if missing:
        raise InputError(f"{where}: '{missing[0]}' is missing; a line of {measure} has: {', '.join(wanted)}")
    at = table[wanted[-1]]
    if not isinstance(at, int) or isinstance(at, bool):
        raise InputError(f"{where}: '{wanted[-1]}' must be a whole number, got {at!r}")
    names = {name: table[name] for name in wanted[:-1] if name in table}
    if not all(isinstance(name, str) for name in names.values()):
        raise InputError(f"{where}: names of communities and topics are text")
    return Line(
        measure=measure,
        community=names.get("community", names.get("source")),
        target=names.get("target"),
        topic=names.get("topic"),
        at=at,
    )


def _alerts(table: Any, place: Path) -> dict[str, Any]:
    if not isinstance(table, Mapping) or (unknown := set(table) - set(SINKS)):
        named = f"unknown key '{min(unknown)}'" if isinstance(table, Mapping) else "expected a table"
        raise InputError(f"{place}, [alerts]: {named}; alerts go to: {', '.join(SINKS)}")
    kinds = {"jsonl": str, "webhook": str, "desktop": str, "terminal": bool}
    for name, value in table.items():
        if not isinstance(value, kinds[name]):
            raise InputError(
                f"{place}, [alerts]: '{name}' must be {'true or false' if name == 'terminal' else 'text'}"
            )
    chosen = dict(table)
    for name in ("jsonl", "desktop"):
        if name in chosen:
            chosen[name] = place.absolute().parent / chosen[name]
    return chosen


def default_policy() -> WatchPolicy:
    """Return what somebody watches who drew no lines: every question of the label that a post can move."""
    return WatchPolicy(questions=watchable_questions())

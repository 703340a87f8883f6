"""The lines a person draws: when to say something. As values, from a TOML file, or sensible ones without it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, Literal, get_args

from incrowd.errors import InputError, UnreadableSource

Measure = Literal["anonymity", "linkability", "exposure"]
FIELDS: dict[str, tuple[str, ...]] = {
    "anonymity": ("community", "below"),
    "linkability": ("source", "target", "below"),
    "exposure": ("community", "topic", "rank"),
}
"""What a line of each measure says; an exposure line without a community is about the whole crowd."""
SINKS = ("jsonl", "webhook", "desktop", "terminal")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One measured number of one line."""

    value: float
    """People to hide among, or a rank; NaN: cannot tell."""
    of: int
    score: float = math.inf
    """For a rank, the score behind it: without any score nobody is exposed, whatever their rank."""
    looks: str = ""
    """For a rank, what it looks like, where that is less than it seems."""
    reason: str = ""
    """Why it cannot be told."""

    @property
    def defined(self) -> bool:
        """False if it cannot be told."""
        return not math.isnan(self.value)

    @property
    def silent(self) -> bool:
        """True for a rank that is only shared with everybody who never wrote about the topic."""
        return self.score <= 0


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line: say so when the number falls to it."""

    measure: Measure
    community: str | None
    """For linkability: where the adversary starts."""
    at: int
    """People to hide among (alert below it), or a rank (alert at it or before it)."""
    target: str | None = None
    topic: str | None = None

    def __post_init__(self) -> None:
        if self.at < 1:
            raise InputError(f"policy: a line of {self.measure} must be at least 1, got {self.at}")
        if self.measure == "linkability" and self.community == self.target:
            raise InputError(
                f"policy: source and target are both '{self.target}'; linking needs two communities"
            )

    @property
    def key(self) -> str:
        """What makes it the same line after a restart."""
        parts = (self.measure, self.community, self.target, self.topic, self.at)
        return "|".join(str(part) for part in parts if part is not None)

    def is_crossed(self, reading: Reading) -> bool:
        """Say whether the number is on the wrong side."""
        if not reading.defined or reading.silent:
            return False
        return reading.value <= self.at if self.measure == "exposure" else reading.value < self.at

    def sentence(self, reading: Reading) -> str:
        """Say where the person stands, in plain words."""
        where = self.community or "this crowd"
        if not reading.defined:
            place = f"from {where} to {self.target}" if self.target else f"in {where}"
            return f"Cannot tell for your line on {self.measure} {place}: {reading.reason}."
        if reading.silent:
            return f"Nothing you wrote in {where} points to {self.topic} in particular."
        value = int(reading.value)
        if self.measure == "anonymity":
            told = f"In {where}, {value:,} of {reading.of:,} people write as you do, you included"
        elif self.measure == "linkability":
            told = (
                f"Somebody who starts from your profile in {where} has {value:,} of {reading.of:,} people in "
                f"{self.target} to consider before, or together with, you"
            )
        else:
            told = f"For {self.topic} in {where} you are number {value:,} of {reading.of:,} (1 is the most exposed)"
            told += f", which looks like {reading.looks}" if reading.looks else ""
        return f"{told}; your line is {self.at:,}."


@dataclass(frozen=True, kw_only=True)
class WatchPolicy:
    """All lines, and where alerts go."""

    lines: tuple[Line, ...]
    jsonl: Path | None = None
    """A file that gets one JSON object a line."""
    webhook: str | None = None
    """An address on this machine that gets each alert as a POST."""
    desktop: Path | None = None
    """A folder that gets a text file for each alert."""
    terminal: bool = True

    def __post_init__(self) -> None:
        if not self.lines:
            raise InputError("policy: expected at least one [[line]], got none; see the how-to on watching")
        if len({line.key for line in self.lines}) < len(self.lines):
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
    lines = tuple(_line(table, f"{path}, line {number}") for number, table in enumerate(tables, 1))
    return WatchPolicy(lines=lines, **_alerts(plain.get("alerts", {}), place))


def _line(table: Any, where: str) -> Line:
    measure: Any = table.get("measure") if isinstance(table, Mapping) else None
    if measure not in get_args(Measure):
        raise InputError(f"{where}: 'measure' must be one of {', '.join(get_args(Measure))}; got {measure!r}")
    wanted = FIELDS[measure]
    if unknown := set(table) - {"measure", *wanted}:
        raise InputError(
            f"{where}: unknown key '{min(unknown)}'; a line of {measure} has: {', '.join(wanted)}"
        )
    missing = [name for name in wanted if name not in table and (measure, name) != ("exposure", "community")]
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


def default_policy(
    communities: Sequence[str], topics: Sequence[str], people: Mapping[str, int], *, wanted: int
) -> WatchPolicy:
    """Return lines for somebody who drew none: a crowd of `wanted` people everywhere, no place among the first.

    `people` says how many write in each community; one in a hundred of them are the first.
    """
    if not communities:
        raise InputError(
            "this person has not written anything yet, so there is nothing to watch without a --policy"
        )
    lines = [Line(measure="anonymity", community=name, at=wanted) for name in communities]
    lines += [
        Line(measure="linkability", community=source, target=target, at=wanted)
        for source, target in permutations(communities, 2)
    ]
    lines += [
        Line(measure="exposure", community=name, topic=topic, at=max(1, people[name] // 100))
        for name in communities
        for topic in topics
    ]
    return WatchPolicy(lines=tuple(lines))

"""What a provider publishes and a client downloads: versioned JSON, everything needed to score oneself."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.crowd.disk import PUBLIC, hand_over
from incrowd.errors import SchemaError, UnreadableSource
from incrowd.measures.microdata.definition import Floats
from incrowd.measures.microdata.expected_crowd import Activity
from incrowd.measures.microdata.spec import Knowledge

FORMAT = "incrowd-microdata-statistics"
VERSION = 1


@dataclass(frozen=True)
class Group:
    """One group of like risk."""

    centre: float
    """Average score, 0 (riskiest) to 1 (safest)."""
    people: int


@dataclass(frozen=True)
class Taste:
    """People of like taste, with their own popularities."""

    people: int
    activity_shares: Floats
    popularity: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """A release. All counts are of people, rounded so that none of them points at one."""

    users: int
    rare_below: int
    log_base: float
    raw_min: float
    raw_max: float
    groups: tuple[Group, ...]
    """Riskiest first."""
    knowledge: Knowledge
    """The adversary the expected crowd is computed for."""
    activity: Activity
    unlisted: float
    """About how many people share an item that is not listed."""
    popularity: dict[str, float]
    """Item -> about how many people have it. An item that is missing is rare."""
    number: int
    date: str
    parameters: dict[str, Any] = field(default_factory=dict)
    taste: tuple[Taste, ...] = ()

    def __repr__(self) -> str:
        size = f"{self.users:,} people, {len(self.popularity):,} items"
        return f"Statistics(release {self.number} of {self.date}: {size})"

    @property
    def borders(self) -> Floats:
        """Scores that separate neighbouring groups."""
        centres = np.array([group.centre for group in self.groups])
        return np.asarray((centres[1:] + centres[:-1]) / 2)

    def told(self, items: list[str]) -> Floats:
        """Return about how many people have each item; NaN where it is not listed."""
        return np.array(list(map(self.popularity.get, items)), dtype=np.float64)  # None becomes NaN

    def people_with(self, items: list[str]) -> Floats:
        """Return the same with the typical unlisted count where an item is not listed."""
        told = self.told(items)
        return np.where(np.isnan(told), self.unlisted, told)

    def to_dict(self) -> dict[str, Any]:
        """Return the document that is published."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "release": self.number,
            "date": self.date,
            "users": self.users,
            "parameters": {
                "rare_below": self.rare_below,
                "log_base": self.log_base,
                "knowledge": self.knowledge.to_dict(),
                **self.parameters,
            },
            "scale": {"raw_min": self.raw_min, "raw_max": self.raw_max},
            "groups": [{"centre": group.centre, "people": group.people} for group in self.groups],
            "activity": {"shares": self.activity.shares.tolist(), "levels": self.activity.levels.tolist()},
            "unlisted": self.unlisted,
            "popularity": _by_count(self.popularity),
            "taste": [
                {
                    "people": one.people,
                    "activity_shares": one.activity_shares.tolist(),
                    "popularity": _by_count(one.popularity),
                }
                for one in self.taste
            ],
        }

    def write(self, path: str | Path) -> None:
        """Write the JSON document; the file appears whole or not at all."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        hand_over(path, text, PUBLIC)

    @classmethod
    def from_dict(cls, plain: Any) -> Statistics:
        """Read what :meth:`to_dict` wrote."""
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise SchemaError(f"statistics: expected a document of format '{FORMAT}', got something else")
        if plain.get("version") != VERSION:
            raise SchemaError(
                f"statistics: expected version {VERSION}, got {plain.get('version')!r}; update incrowd"
            )
        try:
            return _read(cls, plain)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SchemaError(
                f"statistics: a part is missing or malformed ({type(error).__name__}); download it again"
            ) from None


def _read(cls: type[Statistics], plain: dict[str, Any]) -> Statistics:
    parameters = dict(plain["parameters"])
    numbers = {name: float(plain["scale"][name]) for name in ("raw_min", "raw_max")}
    if not all(map(math.isfinite, numbers.values())) or not plain["groups"]:
        raise ValueError("no scale")
    return cls(
        users=int(plain["users"]),
        rare_below=int(parameters.pop("rare_below")),
        log_base=float(parameters.pop("log_base")),
        knowledge=Knowledge.from_dict(parameters.pop("knowledge")),
        **numbers,
        groups=tuple(Group(float(one["centre"]), int(one["people"])) for one in plain["groups"]),
        activity=Activity(
            np.array(plain["activity"]["shares"], float), np.array(plain["activity"]["levels"], float)
        ),
        unlisted=float(plain["unlisted"]),
        popularity=_flat(plain["popularity"]),
        number=int(plain["release"]),
        date=str(plain["date"]),
        parameters=parameters,
        taste=tuple(
            Taste(int(one["people"]), np.array(one["activity_shares"], float), _flat(one["popularity"]))
            for one in plain["taste"]
        ),
    )


def _by_count(popularity: dict[str, float]) -> list[dict[str, Any]]:
    """Group items that are told the same count: shorter to write, and nothing but the band shows."""
    bands: dict[float, list[str]] = {}
    for item, people in popularity.items():
        bands.setdefault(people, []).append(item)
    return [{"people": people, "items": sorted(bands[people])} for people in sorted(bands)]


def _flat(bands: list[dict[str, Any]]) -> dict[str, float]:
    """Turn bands back into item -> count, in one pass: a million items must load in less than a second."""
    items = chain.from_iterable(band["items"] for band in bands)
    people = chain.from_iterable(repeat(float(band["people"]), len(band["items"])) for band in bands)
    return dict(zip(items, people, strict=True))


def load_statistics(path: str | Path) -> Statistics:
    """Load a downloaded release."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSource(
            f"{path}: expected a statistics file, but it cannot be read ({type(error).__name__})"
        ) from None
    try:
        return Statistics.from_dict(json.loads(text))
    except json.JSONDecodeError:
        raise UnreadableSource(
            f"{path}: expected JSON, got something else; download the statistics again"
        ) from None
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None

"""What a provider publishes and a client downloads: versioned JSON, everything needed to score oneself."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from incrowd.arrays import Floats, Ints
from incrowd.crowd.disk import PUBLIC, hand_over
from incrowd.errors import CrowdDamaged, SchemaError, UnreadableSource
from incrowd.measures.microdata.expected_crowd import ActivityGroups
from incrowd.measures.microdata.spec import Knowledge, ReleaseSpec

# Turns private counts into publishable ones, so that neither a count nor a change of one points at a person.
#
# Three rules, with k = ``ReleaseSpec.crowd`` (derivation in NOTES.md):
#
# * an item is listed only if more than k people have it, and its count is told as a band at least k wide;
# * what was told of an item is told again until at least k people more (or fewer) have it: releases mostly repeat
#   themselves, and a change is about at least k people;
# * where the lines lie is secret: each item's count is shifted by a secret 0..k-1 before it is banded, and the
#   change that opens a band again is k plus a secret 0..k-1.
#
# Even somebody who knows everybody else's profile gains at most 2/k from all releases together on whether one
# person has one item (total variation distance), against certainty with exact counts.

STATE_SCHEMA: dict[str, pl.DataType] = {
    "item": pl.String(),
    "base": pl.Int64(),
    "shift": pl.Int64(),
    "step": pl.Int64(),
    "told": pl.Float64(),
}


@dataclass(frozen=True)
class ReleaseState:
    """What a provider keeps between releases, and keeps secret."""

    secret: bytes
    number: int
    """Of the last release; 0 before the first."""
    items: pl.DataFrame
    """Per item: its count when last told, its secret shift and step, and what was told (0: not listed)."""

    @classmethod
    def fresh(cls, secret: bytes | None = None) -> ReleaseState:
        """Start with nothing released. A given secret makes the releases repeatable (tests, studies)."""
        return cls(secret or secrets.token_bytes(32), 0, pl.DataFrame(schema=STATE_SCHEMA))

    def __repr__(self) -> str:
        return f"ReleaseState(number={self.number}, items={self.items.height:,}, secret=hidden)"


@dataclass(frozen=True)
class Bands:
    """The lines between published counts. Band b holds shifted counts from edges[b] up to edges[b + 1]."""

    edges: Ints
    people: Floats
    """What a band says: about so many people."""

    def tell(self, shifted: Ints) -> Floats:
        """Return what is said of shifted counts; 0 below the first line."""
        band = np.searchsorted(self.edges, shifted, side="right") - 1
        return np.where(band < 0, 0.0, self.people[np.maximum(band, 0)])


def make_bands(largest: int, threshold: int, spec: ReleaseSpec) -> Bands:
    """Draw the lines for counts up to `largest`; one lies where items turn from rare to popular."""
    if spec.literal:
        every = np.arange(1, largest + 2)
        return Bands(every, every.astype(np.float64))
    k = spec.crowd
    line = threshold + k // 2  # in shifted counts, which are (k - 1) / 2 too large on average
    edges = [line if 2 * k < line < 3 * k else 2 * k]
    while edges[-1] <= largest + k:
        following = max(edges[-1] + k, int(np.ceil(edges[-1] * spec.step)))
        # A band may be a little wider, never narrower, to end exactly on the line.
        edges.append(line if edges[-1] < line < following + k and line - edges[-1] >= k else following)
    lines = np.array(edges)
    people = np.sqrt(lines[:-1] * (lines[1:] - 1.0)) - (k - 1) / 2
    return Bands(lines[:-1], people.round(1))


def release_counts(
    counts: pl.DataFrame, state: ReleaseState, threshold: int, spec: ReleaseSpec
) -> tuple[pl.DataFrame, ReleaseState]:
    """Return the listed items with what is told of them, and what to keep secret for the next release.

    `counts` has columns item and people. Items that vanished count as zero people.
    """
    merged = counts.join(state.items, on="item", how="full", coalesce=True).sort("item")
    new = merged["base"].is_null().to_numpy()
    count, base, shift, step = (
        merged[name].fill_null(0).to_numpy().astype(np.int64) for name in ("people", "base", "shift", "step")
    )
    told = merged["told"].fill_null(0.0).to_numpy().copy()
    new_shift, new_step, next_step = _draws(state.secret, state.number + 1, 3 * len(count), spec).reshape(
        3, -1
    )
    shift[new], step[new] = new_shift[new], new_step[new]
    # Release by release nothing but a large enough change opens an item's band again.
    opened = np.ones(len(count), dtype=bool) if spec.literal else np.abs(count - base) >= spec.crowd + step
    bands = make_bands(int(count.max(initial=0)), threshold, spec)
    told[opened] = bands.tell((count + shift)[opened])
    base[opened], step[opened] = count[opened], next_step[opened]
    kept = pl.DataFrame(
        {"item": merged["item"], "base": base, "shift": shift, "step": step, "told": told},
        schema=STATE_SCHEMA,
    )
    listed = kept.filter(pl.col("told") > 0).select("item", people="told")
    return listed, ReleaseState(state.secret, state.number + 1, kept)


def _draws(secret: bytes, number: int, count: int, spec: ReleaseSpec) -> NDArray[np.int64]:
    """Return secret numbers 0..k-1 that nobody without the secret can predict."""
    if spec.literal:
        return np.zeros(count, dtype=np.int64)
    stream = hashlib.shake_256(secret + number.to_bytes(8, "big")).digest(8 * count)
    return (np.frombuffer(stream, dtype="<u8") % np.uint64(spec.crowd)).astype(np.int64)


def release_number_of(people: int, spec: ReleaseSpec) -> int:
    """Round a count of people in a large group down, so that one more or fewer rarely shows."""
    return people if spec.literal else people // spec.crowd * spec.crowd


# Keeps a provider's secrets between releases in a private folder.

RECORD = "release.json"
STATE_FORMAT = "incrowd-microdata-release-state"


def save_state(state: ReleaseState, folder: str | Path) -> None:
    """Write the state; only its owner may read it. The record names the table, so both change at once."""
    home = Path(folder)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    table = home / f"items-{state.number}.parquet"
    _private(table)
    state.items.write_parquet(table)
    record = {
        "format": STATE_FORMAT,
        "version": 1,
        "number": state.number,
        "secret": state.secret.hex(),
        "items": table.name,
    }
    unfinished = home / (RECORD + ".tmp")
    _private(unfinished)
    unfinished.write_text(json.dumps(record), encoding="utf-8")
    unfinished.replace(home / RECORD)
    for old in home.glob("items-*.parquet"):
        if old.name != table.name:
            old.unlink()


def load_state(folder: str | Path) -> ReleaseState:
    """Read the state of the last release; a fresh one if there was none."""
    record_path = Path(folder) / RECORD
    if not record_path.exists():
        return ReleaseState.fresh()
    try:
        record = json.loads(record_path.read_text(encoding="utf-8"))
        items = pl.read_parquet(record_path.parent / record["items"]).select(list(STATE_SCHEMA))
        return ReleaseState(bytes.fromhex(record["secret"]), int(record["number"]), items)
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise CrowdDamaged(
            f"{folder}: expected the secrets of the last release, but they cannot be read "
            f"({type(error).__name__}). "
            "Restore the folder from a backup: starting over would let releases be compared."
        ) from None


def _private(path: Path) -> None:
    """Make an empty file that nobody else can read, before anything is written into it."""
    os.close(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))


FORMAT = "incrowd-microdata-statistics"
VERSION = 1


@dataclass(frozen=True)
class RiskGroup:
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
    groups: tuple[RiskGroup, ...]
    """Riskiest first."""
    knowledge: Knowledge
    """The adversary the expected crowd is computed for."""
    activity: ActivityGroups
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
        groups=tuple(RiskGroup(float(one["centre"]), int(one["people"])) for one in plain["groups"]),
        activity=ActivityGroups(
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
    """RiskGroup items that are told the same count: shorter to write, and nothing but the band shows."""
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

"""Numbered copies of the data: held so that any class is counted quickly, taken anew, and compared with older ones."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from incrowd.crowd.disk import PRIVATE, Disk
from incrowd.gateway.databases import Database
from incrowd.gateway.ledger import Ledger
from incrowd.gateway.people import Numbers, collect_listed, count_listed
from incrowd.gateway.policy import GatewayPolicy
from incrowd.gateway.predicate import EVERYBODY
from incrowd.measures.release import HolderIndex
from incrowd.measures.release.canonical import read_aliases, uncounted_names

Codes = NDArray[np.int32]
Fingerprints = NDArray[np.uint64]


@dataclass(frozen=True, eq=False, repr=False)
class AttributeIndex:
    """Who lists what of one attribute, both ways round; values are numbered in the order of their names."""

    values: tuple[str, ...]
    index: HolderIndex
    """Value number -> people."""
    starts: NDArray[np.int64]
    codes: Codes
    """Person -> value numbers: `codes[starts[p]:starts[p + 1]]`."""
    offset: int
    """Added to a value number it is different from every value number of other attributes."""

    def __repr__(self) -> str:
        return f"AttributeIndex({len(self.values)} values, {len(self.codes)} entries)"

    @cached_property
    def code_of(self) -> Mapping[str, int]:
        """Value -> its number."""
        return {value: code for code, value in enumerate(self.values)}

    def holders(self, code: int) -> Numbers:
        """Return the people who list a value, in rising order."""
        return self.index.holders(code)

    def listed(self, members: Numbers, wanted: NDArray[np.bool_]) -> tuple[Numbers, Codes]:
        """Return pairs (person, value number) of these people and the values flagged as wanted, by person."""

        return collect_listed(self.starts, self.codes, members, wanted)

    def supports(self, members: Numbers) -> NDArray[np.int64]:
        """For each value how many of these people list it."""

        return count_listed(self.starts, self.codes, members, len(self.values))

    def flags(self, codes: Iterable[int]) -> NDArray[np.bool_]:
        """Flag some values."""
        made = np.zeros(len(self.values), dtype=np.bool_)
        made[np.fromiter(codes, dtype=np.int64)] = True
        return made

    def fingerprints(self, key: bytes) -> Fingerprints:
        """For each person a number that changes when what they list changes."""
        each = np.array([_fingerprint(value, key) for value in self.values], dtype=np.uint64)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(each[self.codes], dtype=np.uint64)])
        return np.asarray(sums[self.starts[1:]] - sums[self.starts[:-1]])


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """One numbered state of the data."""

    number: int
    size: int
    """People ever seen: numbers are below this."""
    users: int
    """People in this snapshot."""
    attributes: Mapping[str, AttributeIndex]

    def __repr__(self) -> str:
        return f"Snapshot({self.number}, {self.users} people, {len(self.attributes)} attributes)"


def load_snapshot(database: Database, number: int, policy: GatewayPolicy) -> Snapshot:
    """Read a snapshot's values into memory."""

    size, offset = database.people(), 0
    attributes: dict[str, AttributeIndex] = {}
    for name, source in policy.database.attributes.items():
        holders = dict(database.holders(number, name))
        if source.aliases is not None:
            holders = _brought_together(holders, read_aliases(source.aliases))
        attributes[name] = _indexed(holders, size, offset)
        offset += len(holders)
    users = len(database.members(number, EVERYBODY))
    return Snapshot(number=number, size=size, users=users, attributes=attributes)


def _indexed(holders: Mapping[str, Numbers], size: int, offset: int) -> AttributeIndex:
    names = tuple(sorted(holders))
    lists = [np.unique(holders[name]).astype(np.int32) for name in names]
    members = np.concatenate([np.zeros(0, np.int32), *lists])
    value_starts = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    codes = np.repeat(np.arange(len(names), dtype=np.int32), np.diff(value_starts))
    by_person = np.argsort(members, kind="stable")
    return AttributeIndex(
        values=names,
        index=HolderIndex(tuple(range(len(names))), value_starts, members, size),
        starts=np.searchsorted(members[by_person], np.arange(size + 1)).astype(np.int64),
        codes=codes[by_person],
        offset=offset,
    )


def _brought_together(holders: Mapping[str, Numbers], aliases: Mapping[str, str]) -> dict[str, Numbers]:
    """Merge spellings of one name. Which one is shown depends on the alias file alone, never on who chose it."""
    merged: dict[str, list[Numbers]] = {}
    for spelling, name in uncounted_names(holders, aliases).items():
        merged.setdefault(name, []).append(holders[spelling])
    return {name: np.unique(np.concatenate(people)) for name, people in merged.items()}


def _fingerprint(value: str, key: bytes) -> int:
    word = value.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(word, key=key, digest_size=8).digest(), "big")


def save_fingerprints(folder: Path, snapshot: Snapshot, key: bytes) -> None:
    """Remember what everybody listed, as fingerprints, so that later snapshots can tell who changed."""
    disk = Disk()
    disk.make_folder(folder, 0o700)
    scratch = folder / f"{snapshot.number}.scratch"
    with disk.open(scratch, PRIVATE) as file:
        made = {f"a_{name}": one.fingerprints(key) for name, one in snapshot.attributes.items()}
        np.savez(file, allow_pickle=False, **made)
        disk.sync(file)
    disk.rename(scratch, folder / f"{snapshot.number}.npz")


def load_fingerprints(folder: Path, number: int, attribute: str) -> Fingerprints | None:
    """Return the fingerprints of an earlier snapshot, if they are still kept and whole."""
    try:
        with (folder / f"{number}.npz").open("rb") as file, np.load(file) as kept:
            return np.asarray(kept[f"a_{attribute}"], dtype=np.uint64) if f"a_{attribute}" in kept else None
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error):
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class SnapshotStore:
    """The snapshots of one gateway."""

    database: Database
    policy: GatewayPolicy
    ledger: Ledger
    folder: Path
    """Where fingerprints of what people listed are kept."""
    key: bytes
    _changes: dict[tuple[int, int, str], NDArray[np.bool_] | None] = field(default_factory=dict)

    def current(self) -> Snapshot | None:
        """Return the snapshot that was in use before, if it is still there and made of the same tables."""
        known, kept = self.ledger.snapshot(), self.database.snapshots()
        if known is None or known[0] not in kept or known[2] != self._source():
            return None
        return load_snapshot(self.database, known[0], self.policy)

    def take(self, now: float) -> Snapshot:
        """Copy the data as they are now; the snapshot is in use once the ledger knows of it."""
        known = self.ledger.snapshot()
        number = 1 + max([known[0] if known else 0, *self.database.snapshots()])
        self.database.take(number, self.policy.database, self._cutoff(now))
        snapshot = load_snapshot(self.database, number, self.policy)
        save_fingerprints(self.folder, snapshot, self.key)
        self.ledger.begin(number, now, self._source())
        self._forget(number)
        return snapshot

    def changed(self, snapshot: Snapshot, origin: int, attribute: str) -> NDArray[np.bool_] | None:
        """Flag who lists something else now than in an earlier snapshot; None if that is not known any more."""
        key = (snapshot.number, origin, attribute)
        if key not in self._changes:
            then = load_fingerprints(self.folder, origin, attribute)
            now = snapshot.attributes[attribute].fingerprints(self.key)
            self._changes[key] = None if then is None else np.pad(then, (0, len(now) - len(then))) != now
        return self._changes[key]

    def oldest(self, number: int) -> int:
        """Return the first snapshot that is still remembered when this one is in use."""
        return number - self.policy.snapshots.history + 1

    def _cutoff(self, now: float) -> datetime | None:
        """Return the moment before which an account must have been made (UTC)."""
        if not self.policy.database.created:
            return None
        age = timedelta(days=self.policy.accounts.min_age_days)
        return (datetime.fromtimestamp(now, UTC) - age).replace(tzinfo=None)

    def _forget(self, number: int) -> None:
        """Drop what is no longer needed; the last snapshot but one stays for questions that are under way."""
        for old in self.database.snapshots():
            if old < number - 1:
                self.database.drop(old)
        needed = self.ledger.forget(self.oldest(number)) | {number - 1, number}
        for path in self.folder.glob("*.npz"):
            if int(path.stem) not in needed:
                path.unlink()
        self._changes.clear()

    def _source(self) -> bytes:
        """16 bytes that stand for the tables and columns that snapshots are made of."""
        database = self.policy.database
        plain = [database.users, database.id, database.created, self.policy.accounts.min_age_days]
        filters = sorted((name, one.column, one.type) for name, one in database.filters.items())
        attributes = sorted(
            (name, one.table, one.user, one.value) for name, one in database.attributes.items()
        )
        return blake2b(json.dumps([plain, filters, attributes]).encode(), digest_size=16).digest()

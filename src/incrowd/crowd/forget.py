"""Forgetting: rows leave every part, every cache and the collector's journal, and nothing points back at them.

Parts are written anew without the rows, in their order, and the manifest's rename is the commit, as in an import. What
can be computed again is deleted: it was computed from everybody.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from incrowd.crowd import manifest as manifests
from incrowd.crowd.disk import import_lock
from incrowd.crowd.manifest import JOURNAL_FOLDER, PARTS_FOLDER, STAGING_FOLDER, StoredTable, TablePart
from incrowd.crowd.row_groups import read_groups
from incrowd.crowd.schema import KINDS, Kind
from incrowd.crowd.staging import add_hashes
from incrowd.crowd.tables import connect, read_links, write_links, write_parts
from incrowd.errors import CrowdBusy

if TYPE_CHECKING:
    from incrowd.crowd.store import Crowd

JOURNAL_NAME = "journal.sqlite"
WATCH_FOLDER = "watch"
"""What `incrowd watch` remembers, and posts that reached it; after a forgetting it looks at everything anew."""
FORGOTTEN = "forgotten"
"""Why the journal leaves a person out: they are not collected again."""


@dataclass(frozen=True, kw_only=True)
class Forgotten:
    """What was removed, and what is left."""

    removed: Mapping[str, int]
    left: Mapping[str, int]
    people_left: int

    @property
    def rows(self) -> int:
        """Rows removed from all tables."""
        return sum(self.removed.values())

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return {"removed": dict(self.removed), "left": dict(self.left), "people_left": self.people_left}


class _Chosen:
    """Which rows go: those of some people, those before a time, posts whose id has some hash."""

    def __init__(self, *, ids: list[str], before: int | None = None, keys: list[bytes] | None = None) -> None:
        halves = np.frombuffer(b"".join(keys or []), dtype=">u8").reshape(-1, 2).astype(np.uint64)
        self.ids, self.before = ids, before
        self._ids = pl.Series(ids, dtype=pl.String).implode()
        self._keys = (
            pl.DataFrame({"id_hi": halves[:, 0], "id_lo": halves[:, 1]}).unique().with_columns(gone=True)
        )

    def among(self, rows: pl.DataFrame) -> pl.Series:
        """Return which rows go."""
        gone = rows["user"].is_in(self._ids)
        if self.before is not None and "time" in rows.columns:
            gone = gone | (rows["time"] < self.before).fill_null(value=False)
        if self._keys.height and "id_hi" in rows.columns:
            both = ["id_hi", "id_lo"]
            marked = rows.select(both).join(self._keys, on=both, how="left", maintain_order="left")
            gone = gone | marked["gone"].fill_null(value=False)
        return gone


def forget(crowd: Crowd, *, ids: Iterable[str] = (), before: int | None = None) -> Forgotten:
    """Remove the rows of some people (by id), or before some UTC second, and what the collector knows of them.

    Rows without a time stay when a time is given: nobody knows whether they are meant.
    """
    chosen = _Chosen(ids=list(ids), before=before)
    path = crowd.path / JOURNAL_FOLDER / JOURNAL_NAME
    crowd.disk.remove(crowd.path / WATCH_FOLDER)
    if not path.exists():
        return _removed(crowd, chosen)[0]
    with closing(_journal(path)) as journal:
        # Opened before anything is removed: no collection may be running.
        journal.execute("BEGIN IMMEDIATE")
        done, keys = _removed(crowd, chosen)
        _clean_journal(journal, crowd, chosen, keys)
        journal.execute("COMMIT")
        journal.execute("VACUUM")
    return done


def remove(crowd: Crowd, *, ids: Iterable[str] = (), keys: Iterable[bytes] = ()) -> Forgotten:
    """Remove the rows of some people, and posts by the hash of their id; the collector keeps its own journal."""
    return _removed(crowd, _Chosen(ids=list(ids), keys=list(keys)))[0]


def forget_everything(crowd: Crowd) -> None:
    """Delete a crowd's folder with all that is in it."""
    with import_lock(crowd.path):
        _close_journal(crowd.path)
        shutil.rmtree(crowd.path, ignore_errors=True)
    shutil.rmtree(crowd.path, ignore_errors=True)  # the lock itself, where it could not be removed while held


class _Removal:
    """One removal; the caller holds the lock."""

    def __init__(self, crowd: Crowd, chosen: _Chosen) -> None:
        self._crowd, self._chosen = crowd, chosen
        self.keys: list[bytes] = []
        self._hashes = (0, 0)

    def __enter__(self) -> _Removal:
        self._sql = connect(2**28, self._crowd.path / STAGING_FOLDER / "spill")
        return self

    def __exit__(self, *_: object) -> None:
        self._sql.close()

    def run(self) -> dict[str, int]:
        """Write the parts anew, commit, and delete what is left of the rows elsewhere."""
        crowd = self._crowd
        old = crowd.state
        tables = dict(old.tables)
        removed: dict[str, int] = {}
        for kind in KINDS:
            tables[kind], removed[kind] = self._without(kind, old.tables[kind], old.generation + 1)
        links = read_links(crowd.path)
        write_links(crowd.path, crowd.disk, links.filter(~self._chosen.among(links)))
        if sum(removed.values()):
            new = replace(old, generation=old.generation + 1, tables=tables)
            manifests.save(new, crowd.path, crowd.disk)
            crowd.reload()
            for name in old.files - new.files:
                crowd.disk.remove(crowd.path / PARTS_FOLDER / name)
        for folder in (crowd.cache, crowd.path / STAGING_FOLDER):
            for path in folder.iterdir():
                crowd.disk.remove(path)
        return removed

    def _without(self, kind: Kind, table: StoredTable, run: int) -> tuple[StoredTable, int]:
        """Return a table without the chosen rows, and how many they were; parts without any stay as they are."""
        parts: list[TablePart] = []
        removed = 0
        self._hashes = table.row_hashes
        for part in table.parts:
            path = self._crowd.path / PARTS_FOLDER / part.file
            count = sum(int(self._chosen.among(rows).sum()) for rows in _batches(path, narrow=True))
            if not count:
                parts.append(part)
                continue
            removed += count
            schema = dict(pl.read_parquet_schema(path))
            kept = self._kept(kind, path)
            written = write_parts(kind, kept, schema, self._crowd.path, self._crowd.disk, run=run)
            # Rows keep their order, so they stay part of the sorted run they came from.
            parts += [replace(piece, run=part.run) for piece in written]
        return StoredTable(parts=tuple(parts), row_hashes=self._hashes), removed

    def _kept(self, kind: Kind, path: Path) -> Iterator[pl.DataFrame]:
        for rows in _batches(path):
            gone = self._chosen.among(rows)
            if gone.any():
                self._note(kind, rows.filter(gone))
            yield rows.filter(~gone)

    def _note(self, kind: Kind, rows: pl.DataFrame) -> None:
        """Take rows out of the table's hash, and remember posts for the journal."""
        if kind == "posts":
            hashed = rows
            named = rows.filter(pl.col("id_hi").is_not_null())
            both = named.select("id_hi", "id_lo").to_numpy().astype(">u8")
            self.keys += [row.tobytes() for row in both]
        else:
            numbered = rows.with_row_index("row").with_columns(id=pl.lit(None, dtype=pl.String))
            hashed = add_hashes(self._sql, numbered, kind)
        self._hashes = (
            (self._hashes[0] - sum(hashed["content_hi"].to_list())) % 2**64,
            (self._hashes[1] - sum(hashed["content_lo"].to_list())) % 2**64,
        )


def _removed(crowd: Crowd, chosen: _Chosen) -> tuple[Forgotten, list[bytes]]:
    """Remove rows; return what is left, and the hashes of the posts' ids."""
    with import_lock(crowd.path):
        crowd.reload()
        with _Removal(crowd, chosen) as work:
            removed = work.run()
    people = pl.concat([frame.select("user") for frame in (crowd.posts(), crowd.items(), crowd.attributes())])
    done = Forgotten(
        removed=removed,
        left={kind: crowd.state.tables[kind].rows for kind in KINDS},
        people_left=int(people.select(pl.col("user").n_unique()).collect(engine="streaming").item()),
    )
    return done, work.keys


def _clean_journal(sql: sqlite3.Connection, crowd: Crowd, chosen: _Chosen, keys: list[bytes]) -> None:
    """Take the rows out of what the collector remembers; people who were forgotten are not collected again."""
    names, ids = crowd.naming(), set(chosen.ids)
    users = sql.execute("SELECT user FROM people UNION SELECT user FROM staged").fetchall()
    for (user,) in users:
        if names.of(user) in ids:
            _forget_user(sql, user)
    marks = [(identity, FORGOTTEN) for identity in ids]
    sql.executemany("INSERT OR REPLACE INTO left_out VALUES (?, ?, 1)", marks)
    if chosen.before is not None:
        sql.execute("DELETE FROM staged WHERE time < ?", (chosen.before,))
        sql.execute("INSERT OR REPLACE INTO meta VALUES ('before', ?)", (str(chosen.before),))
    for table in ("seen", "edited"):
        sql.executemany(f"DELETE FROM {table} WHERE key = ?", [(key,) for key in keys])


def _forget_user(sql: sqlite3.Connection, user: str) -> None:
    accounts = [account for (account,) in sql.execute("SELECT account FROM people WHERE user = ?", (user,))]
    for account in accounts:
        ending = f"/{account}"
        # By the ends of names and not with LIKE, to which the _ of many accounts means any letter.
        for (listing,) in sql.execute(f"SELECT id FROM listings WHERE {_ends('base')}", (ending,)).fetchall():
            sql.execute("DELETE FROM seen WHERE listing = ?", (listing,))
        sql.execute(f"DELETE FROM listings WHERE {_ends('base')}", (ending,))
        for table in ("walks", "cursors"):
            sql.execute(f"DELETE FROM {table} WHERE {_ends('name')}", (ending,))
    sql.execute("DELETE FROM people WHERE user = ?", (user,))
    sql.execute("DELETE FROM staged WHERE user = ?", (user,))


def _ends(column: str) -> str:
    return f"substr({column}, -length(?1)) = ?1"


def _journal(path: Path) -> sqlite3.Connection:
    sql = sqlite3.connect(path, isolation_level=None, timeout=2.0)
    try:
        sql.execute("PRAGMA secure_delete = ON")
        sql.execute("SELECT count(*) FROM meta").fetchone()
    except sqlite3.OperationalError:
        sql.close()
        raise CrowdBusy(
            f"{path.parent.parent}: a collection is running into this crowd. Wait for it to end."
        ) from None
    return sql


def _close_journal(folder: Path) -> None:
    """Refuse to delete a crowd that is being collected into."""
    path = folder / JOURNAL_FOLDER / JOURNAL_NAME
    if path.exists() and os.path.getsize(path):
        _journal(path).close()


def _batches(path: Path, *, narrow: bool = False) -> Iterator[pl.DataFrame]:
    """Yield a part's rows in order; `narrow`: only the columns by which rows are chosen."""
    names = [name for name in pl.read_parquet_schema(path) if name in ("user", "time", "id_hi", "id_lo")]
    return read_groups(path, names if narrow else None)

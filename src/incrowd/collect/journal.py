"""The journal: what a collection has asked, what it got, and whom it met; every page is one transaction.

It lies inside the crowd's folder, for its owner alone, and is what makes a killed collection go on where it was. A
*run* walks *listings* (a community's newest posts, a person's posts) page by page. Posts wait here until they are
imported. Between runs the journal keeps the accounts it met, to ask again, and hashes of every post a listing showed
with its place in it, to notice what was deleted or edited since; no text and no name of a post's author beyond that.

:mod:`incrowd.crowd.forget` takes people and times out of it, too.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from incrowd.collect.services.base import Page, Post
from incrowd.crowd.forget import JOURNAL_NAME
from incrowd.crowd.manifest import JOURNAL_FOLDER
from incrowd.crowd.readers.source import storable
from incrowd.errors import CrowdBusy, CrowdDamaged

VERSION = 2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS runs(run INTEGER PRIMARY KEY, finished INTEGER NOT NULL DEFAULT 0,
    requests INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS walks(run INTEGER, name TEXT, posts INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'open', PRIMARY KEY (run, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cursors(place INTEGER PRIMARY KEY, run INTEGER, name TEXT, cursor TEXT,
    asked INTEGER NOT NULL DEFAULT 0, UNIQUE (run, name, cursor));
CREATE TABLE IF NOT EXISTS listings(id INTEGER PRIMARY KEY, name TEXT UNIQUE, base TEXT,
    run INTEGER NOT NULL DEFAULT 0, posts INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS seen(listing INTEGER, key BLOB, place INTEGER, was INTEGER, run INTEGER,
    words BLOB, PRIMARY KEY (listing, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS edited(key BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS people(account TEXT PRIMARY KEY, user TEXT, checked INTEGER NOT NULL,
    visited INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS people_by_name ON people(user);
CREATE INDEX IF NOT EXISTS people_by_visit ON people(visited DESC);
CREATE INDEX IF NOT EXISTS people_unchecked ON people(checked) WHERE NOT checked;
CREATE TABLE IF NOT EXISTS left_out(id TEXT PRIMARY KEY, reason TEXT, cleared INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS staged(place INTEGER PRIMARY KEY, id TEXT, user TEXT, community TEXT, time INTEGER,
    text TEXT);
"""
OPEN, ENDED, LIMITED = "open", "ended", "limited"
ROUND = 10**9
"""Later rounds of a run find newer posts: their places lie before those of the first."""


@dataclass(frozen=True)
class Walk:
    """How far a listing was walked in this run."""

    name: str
    posts: int
    state: str


def clean(post: Post) -> Post:
    """Return a post as an import would store it, so that its hash is the store's."""
    identity = None if post.id is None else storable(post.id)
    # Absurd times are left for the import to set aside, within what a table can hold.
    time = None if post.time is None else max(-1, min(post.time, 2**53))
    user, community = storable(post.user).strip(), storable(post.community).strip()
    return Post(identity, user, community, time, storable(post.text))


def post_key(post: Post) -> bytes:
    """Return what identifies a clean post in the crowd: the hash the store keeps beside its rows."""
    if post.id is not None:
        return sha256(f"id\0{post.community}\0{post.id}".encode()).digest()[:16]
    return sha256(f"post\0{post.user}\0{post.community}\0{post.time}\0{post.text}".encode()).digest()[:16]


def words_key(post: Post) -> bytes:
    """Return what tells two versions of a post apart."""
    return sha256(post.text.encode()).digest()[:8]


class Journal:
    """The journal of one crowd; whoever has it open keeps others out."""

    def __init__(self, crowd: Path) -> None:
        self.folder = crowd / JOURNAL_FOLDER
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self.folder / JOURNAL_NAME
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self._sql = sqlite3.connect(path, isolation_level=None, timeout=2.0)
        try:
            self._prepare(crowd)
        except CrowdDamaged:
            self._sql.close()
            raise
        except sqlite3.OperationalError:
            self._sql.close()
            raise CrowdBusy(
                f"{crowd}: another collection is running into this crowd. Wait for it to end."
            ) from None
        except sqlite3.DatabaseError:
            self._sql.close()
            raise CrowdDamaged(f"{path}: not readable. Delete it: the next collection begins anew.") from None
        self.run = self._unfinished()
        self._count()

    def _prepare(self, crowd: Path) -> None:
        sql = self._sql
        sql.execute("PRAGMA locking_mode = EXCLUSIVE")
        sql.execute("PRAGMA journal_mode = WAL")
        sql.execute(
            "PRAGMA synchronous = FULL"
        )  # what is asked for once is not asked for again after a power cut
        sql.execute("PRAGMA secure_delete = ON")
        sql.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        sql.execute("INSERT OR IGNORE INTO meta VALUES ('version', ?)", (str(VERSION),))
        if self.meta("version") != str(VERSION):
            raise CrowdDamaged(
                f"{crowd}: the journal of the last collection is of another version. Delete the folder "
                f"'{JOURNAL_FOLDER}' in it: the next collection begins anew."
            )

    def close(self) -> None:
        """Let others in; leave no second file behind."""
        if self.folder.exists():
            self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._sql.close()

    def meta(self, name: str) -> str | None:
        """Return a remembered fact."""
        row = self._sql.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    # Runs

    def _unfinished(self) -> int | None:
        row = self._sql.execute("SELECT max(run) FROM runs WHERE NOT finished").fetchone()
        return None if row[0] is None else int(row[0])

    @property
    def requests(self) -> int:
        """How many pages the unfinished run has."""
        asked = "SELECT count(*) FROM cursors WHERE run = ? AND asked"
        return 0 if self.run is None else int(self._sql.execute(asked, (self.run,)).fetchone()[0])

    def begin(self) -> int:
        """Go on with the unfinished run, or begin a new one."""
        if self.run is None:
            (last,) = self._sql.execute("SELECT coalesce(max(run), 0) FROM runs").fetchone()
            self.run = int(last) + 1
            self._sql.execute("INSERT INTO runs(run) VALUES (?)", (self.run,))
        self._count()
        return self.run

    def finish(self) -> None:
        """End the run: its pages need not be remembered any more."""
        with self._transaction():
            self._sql.execute("DELETE FROM cursors")
            self._sql.execute("DELETE FROM walks")
            self._sql.execute("UPDATE runs SET finished = 1")
        self.run = None

    # Walks

    def walk(self, name: str) -> Walk:
        """Return how far a listing was walked; a new walk begins at its first page."""
        row = self._walk_row(name)
        if row is None:
            with self._transaction():
                self._sql.execute("INSERT INTO walks(run, name) VALUES (?, ?)", (self.run, name))
                self._add_cursors(name, ("",))
            row = (0, OPEN)
        return Walk(name, row[0], row[1])

    def _walk_row(self, name: str) -> tuple[int, str] | None:
        rows = self._sql.execute(
            "SELECT posts, state FROM walks WHERE run = ? AND name = ?", (self.run, name)
        )
        found: tuple[int, str] | None = rows.fetchone()
        return found

    def next_cursor(self, name: str) -> str | None:
        """Return the next page to ask for, if there is one."""
        row = self._sql.execute(
            "SELECT cursor FROM cursors WHERE run = ? AND name = ? AND NOT asked ORDER BY place LIMIT 1",
            (self.run, name),
        ).fetchone()
        return None if row is None else str(row[0])

    def _add_cursors(self, name: str, cursors: Iterable[str]) -> None:
        # A cursor that was asked for before is not asked for again: that is how loops end.
        self._sql.executemany(
            "INSERT OR IGNORE INTO cursors(run, name, cursor) VALUES (?, ?, ?)",
            [(self.run, name, cursor) for cursor in cursors],
        )

    def add(self, name: str, cursor: str, page: Page, *, checked: bool, round_number: int = 1) -> int:
        """Take a page in, whole; return how many of its posts this listing did not show before."""
        base = base_of(name)
        with self._transaction():
            self._sql.execute(
                "UPDATE cursors SET asked = 1 WHERE run = ? AND name = ? AND cursor = ?",
                (self.run, name, cursor),
            )
            self._add_cursors(name, page.cursors)
            self._add_people(page.people, checked=checked)
            new = self._add_posts(base, page, round_number)
            self._sql.execute(
                "UPDATE walks SET posts = posts + ? WHERE run = ? AND name = ?",
                (page.found, self.run, name),
            )
        return new

    def _add_people(self, people: Sequence[tuple[str, str]], *, checked: bool) -> None:
        added = self._sql.executemany(
            "INSERT OR IGNORE INTO people(account, user, checked) VALUES (?, ?, ?)",
            [(account, user, int(checked)) for account, user in people],
        )
        self._known_people += max(0, added.rowcount)

    def _add_posts(self, base: str, page: Page, round_number: int) -> int:
        listing, counted = self._listing(base, page.part)
        start = counted - (round_number - 1) * ROUND
        posts = [clean(post) for post in page.posts]
        keys = [post_key(post) for post in posts]
        words = [words_key(post) for post in posts]
        known = self._known(listing, keys)
        fresh = {
            key: post for key, post, said in zip(keys, posts, words, strict=True) if known.get(key) != said
        }
        self._sql.executemany(
            "INSERT OR IGNORE INTO edited VALUES (?)", [(key,) for key in fresh if key in known]
        )
        self._sql.executemany(
            """
            INSERT INTO seen(listing, key, place, run, words) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT(listing, key) DO UPDATE SET
                was = CASE WHEN run < excluded.run THEN place ELSE was END, place = excluded.place, run = excluded.run,
                words = excluded.words
            """,
            [
                (listing, key, start + at, self.run, said)
                for at, (key, said) in enumerate(zip(keys, words, strict=True))
            ],
        )
        self._sql.executemany(
            "INSERT INTO staged(id, user, community, time, text) VALUES (?, ?, ?, ?, ?)",
            [(post.id, post.user, post.community, post.time, post.text) for post in fresh.values()],
        )
        self._sql.execute("UPDATE listings SET posts = ? WHERE id = ?", (counted + len(keys), listing))
        self._staged_posts += len(fresh)
        return sum(key not in known for key in fresh)

    def _listing(self, base: str, part: str) -> tuple[int, int]:
        """Return the number of a listing, and how many posts it showed in this run so far."""
        name = f"{base}|{part}"
        self._sql.execute("INSERT OR IGNORE INTO listings(name, base) VALUES (?, ?)", (name, base))
        self._sql.execute(
            "UPDATE listings SET run = ?, posts = 0 WHERE name = ? AND run < ?", (self.run, name, self.run)
        )
        row = self._sql.execute("SELECT id, posts FROM listings WHERE name = ?", (name,)).fetchone()
        return int(row[0]), int(row[1])

    def _known(self, listing: int, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return which posts a listing showed before, and what tells that version of them from another."""
        known: dict[bytes, bytes] = {}
        for at in range(0, len(keys), 500):
            some = keys[at : at + 500]
            marks = ", ".join("?" * len(some))
            rows = self._sql.execute(
                f"SELECT key, words FROM seen WHERE listing = ? AND key IN ({marks})", (listing, *some)
            )
            known.update(rows)
        return known

    def end_walk(
        self, name: str, state: str, most_listed: int | None = None, *, ordered: bool = True
    ) -> None:
        """Close a walk, and note which posts the listing no longer shows."""
        with self._transaction():
            self._sql.execute(
                "UPDATE walks SET state = ? WHERE run = ? AND name = ?", (state, self.run, name)
            )
            if "#" not in name.partition("/")[0]:
                for listing, posts in self._parts(base_of(name)):
                    ended = state == ENDED and (most_listed is None or posts < 0.9 * most_listed)
                    self._note_gone(listing, posts, ended=ended, ordered=ordered)

    def _parts(self, base: str) -> list[tuple[int, int]]:
        """Return the lists of a listing, and how many posts each showed in this run."""
        return self._sql.execute(
            "SELECT id, CASE WHEN run = ? THEN posts ELSE 0 END FROM listings WHERE base = ?",
            (self.run, base),
        ).fetchall()

    def _note_gone(self, listing: int, posts: int, *, ended: bool, ordered: bool) -> None:
        """Mark what is missing: all of it if the list was walked to its end, else what lay between posts still shown.

        Places are compared, never times: clocks jump, and people date their posts as they like.
        """
        (last,) = self._sql.execute(
            "SELECT max(was) FROM seen WHERE listing = ? AND run = ?", (listing, self.run)
        ).fetchone()
        missing = "listing = ? AND run < ? AND run > 0"
        if ended:
            self._sql.execute(f"UPDATE seen SET run = 0 WHERE {missing}", (listing, self.run))
        elif ordered and last is not None:
            self._sql.execute(
                f"UPDATE seen SET run = 0 WHERE {missing} AND place < ?", (listing, self.run, last)
            )
            self._sql.execute(
                f"UPDATE seen SET place = place - ? + ? WHERE {missing}", (last, posts, listing, self.run)
            )

    def gone(self) -> list[bytes]:
        """Return the posts that a listing has lost and no listing of this run shows."""
        rows = self._sql.execute(
            "SELECT DISTINCT key FROM seen WHERE run = 0 "
            "AND key NOT IN (SELECT key FROM seen WHERE run = ? AND key IN (SELECT key FROM seen WHERE run = 0))",
            (self.run,),
        )
        return [key for (key,) in rows]

    def drop_gone(self) -> None:
        """Forget the posts that were marked as missing: they are removed from the crowd."""
        self._sql.execute("DELETE FROM seen WHERE run = 0")

    # People

    def next_person(self, *, only_new: bool = False) -> tuple[str, str] | None:
        """Return the account and name of somebody not visited in this run: known people first, then as met."""
        limit = 1 if only_new else self.run
        row = self._sql.execute(
            "SELECT account, user FROM people WHERE visited < ? ORDER BY visited DESC, rowid LIMIT 1",
            (limit,),
        ).fetchone()
        return None if row is None else (str(row[0]), str(row[1]))

    def next_unchecked(self) -> tuple[str, str] | None:
        """Return somebody whose wish about being collected is not known yet."""
        row = self._sql.execute("SELECT account, user FROM people WHERE NOT checked LIMIT 1").fetchone()
        return None if row is None else (str(row[0]), str(row[1]))

    def visited(self, account: str, *, only_checked: bool = False) -> None:
        """Note that a person was asked about, or at least their wish."""
        self._sql.execute("UPDATE people SET checked = 1 WHERE account = ?", (account,))
        if not only_checked:
            done = self._sql.execute(
                "UPDATE people SET visited = ? WHERE account = ? AND visited < ?",
                (self.run, account, self.run),
            )
            self._visited_people += done.rowcount

    def people(self) -> tuple[int, int]:
        """Return how many people were visited in this run, and how many are known."""
        return self._visited_people, self._known_people

    def _count(self) -> None:
        """Count what is asked for at every page, so that it need not be counted there."""
        one = "SELECT count(*) FROM"
        visited = self._sql.execute(f"{one} people WHERE visited = ?", (self.run or 0,)).fetchone()[0]
        self._visited_people = int(visited) if self.run else 0
        self._known_people = int(self._sql.execute(f"{one} people").fetchone()[0])
        self._staged_posts = int(self._sql.execute(f"{one} staged").fetchone()[0])

    def leave_out(self, identity: str, reason: str) -> None:
        """Note, by pseudonym, a person who does not want to be in the crowd."""
        self._sql.execute(
            "INSERT INTO left_out(id, reason) VALUES (?, ?) ON CONFLICT(id) DO UPDATE SET reason = excluded.reason",
            (identity, reason),
        )

    def welcome(self, identity: str) -> None:
        """Note that a person no longer asks to be left out."""
        self._sql.execute("DELETE FROM left_out WHERE id = ?", (identity,))

    def left_out(self) -> dict[str, str]:
        """Return whom to leave out, by pseudonym, and why."""
        return dict(self._sql.execute("SELECT id, reason FROM left_out").fetchall())

    def to_clear(self) -> list[str]:
        """Return those left out whose posts may still be in the crowd."""
        return [identity for (identity,) in self._sql.execute("SELECT id FROM left_out WHERE NOT cleared")]

    def cleared(self) -> None:
        """Note that nothing of those left out is in the crowd any more."""
        self._sql.execute("UPDATE left_out SET cleared = 1")

    # Posts that wait to be imported

    def staged(self) -> int:
        """Return how many posts wait."""
        return self._staged_posts

    def waiting(self) -> Iterator[tuple[int, Post]]:
        """Yield the posts that may be imported, those whose authors' wish is known; the newest version of one first."""
        rows = self._sql.execute(
            "SELECT place, id, user, community, time, text FROM staged "
            "WHERE user NOT IN (SELECT user FROM people WHERE NOT checked) ORDER BY place DESC"
        )
        for place, *values in rows:
            yield int(place), Post(*values)

    def edited(self) -> list[bytes]:
        """Return the posts of which another version waits than the one in the crowd."""
        return [key for (key,) in self._sql.execute("SELECT key FROM edited")]

    def imported(self, last: int) -> None:
        """Drop the posts up to a place: they are in the crowd, or are not meant to be."""
        self._sql.execute("DELETE FROM edited")
        self._sql.execute(
            "DELETE FROM staged WHERE place <= ? AND user NOT IN (SELECT user FROM people WHERE NOT checked)",
            (last,),
        )
        self._count()

    def _transaction(self) -> _Transaction:
        return _Transaction(self._sql)


class _Transaction:
    """All of a block, or nothing of it."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql

    def __enter__(self) -> None:
        self._sql.execute("BEGIN")

    def __exit__(self, kind: object, *_: object) -> None:
        self._sql.execute("COMMIT" if kind is None else "ROLLBACK")


def base_of(name: str) -> str:
    """Return a listing's name without the round in which it is walked: ``community#2/tea`` is ``community/tea``."""
    kind, _, rest = name.partition("/")
    return f"{kind.partition('#')[0]}/{rest}"

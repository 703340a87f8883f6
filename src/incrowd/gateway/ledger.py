"""What every organisation was told, on the disk before they are told it.

One SQLite file. An entry is committed, and flushed to the disk, before its answer leaves; whatever happens after
that, the gateway remembers. The file holds values and classes: it is for the provider alone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

from incrowd.errors import IncrowdError
from incrowd.gateway.monitoring import logger
from incrowd.gateway.people import Words, packed, unpacked
from incrowd.gateway.query import Answer
from incrowd.gateway.state import BrokenState, Secret, SteadyClock, belongings

NAME = "ledger.sqlite"
TABLES = """
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY,
    asked REAL NOT NULL,
    client TEXT NOT NULL,
    organisation TEXT NOT NULL,
    scope TEXT NOT NULL,
    snapshot INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    attribute TEXT NOT NULL,
    key BLOB NOT NULL,
    question TEXT NOT NULL,
    digest BLOB NOT NULL,
    people BLOB,
    class_size INTEGER NOT NULL,
    withheld INTEGER NOT NULL,
    rule TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS spent ON entries (organisation, asked);
CREATE INDEX IF NOT EXISTS told ON entries (scope, snapshot, key);
CREATE INDEX IF NOT EXISTS asked_before ON entries (key, asked);
CREATE TABLE IF NOT EXISTS charges (
    id INTEGER PRIMARY KEY,
    entry INTEGER NOT NULL UNIQUE,
    asked REAL NOT NULL,
    scope TEXT NOT NULL,
    settings TEXT NOT NULL,
    people BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS charged ON charges (scope, id);
CREATE TABLE IF NOT EXISTS snapshots (number INTEGER PRIMARY KEY, taken REAL NOT NULL, source BLOB NOT NULL) STRICT;
"""
SEAL_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS seals (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    row INTEGER NOT NULL,
    people BLOB,
    sum BLOB NOT NULL
) STRICT;
"""
FACTS = frozenset({"identity", "alive", "audited", "people", "reset"})
FACTS_SUM = "sum"
"""Name of the fact that is a keyed sum over the others."""
SEAL_NAME = "ledger.seal"
"""Number and sum of the last seal, beside the ledger: an older ledger, or one with its end cut off, shows."""
COLUMNS = (
    "asked, client, organisation, scope, snapshot, origin, attribute, key, question, digest, people, class_size, "
    "withheld, rule, body"
)


SEALED = {
    "entries": f"id, {COLUMNS.replace('people, ', '')}, people",
    "charges": "id, entry, asked, scope, settings, people",
    "snapshots": "number, taken, source, NULL",
}
"""What a seal covers of each table: the row's number first, the class last."""
EVERYONE = "*"
OVER_TIME = "over-time"
"""Rule of an entry that told nothing: nobody's list was looked at to the end."""
_IN_SCOPE = f"(entries.scope IN (?, '{EVERYONE}') OR ? = '{EVERYONE}')"
"""What everyone was told and what one organisation was told count for each other, whatever the scope is now."""
AWAY = 3 * 86400.0
"""Seconds a gateway may be stopped. Longer, and it is as likely that the clock jumped: the time is not counted."""


@dataclass(frozen=True)
class EarlierAnswer:
    """An answer that was given before, and how it came about."""

    entry: int
    body: bytes
    asked: float
    rule: str
    private: bool
    """Whether it was decided by the private mechanism."""


_TOLD = "entries.id, body, asked, rule, id IN (SELECT entry FROM charges)"


@dataclass(frozen=True)
class Charge:
    """One question that was counted against people's budgets."""

    entry: int
    asked: float
    settings: str
    """Under which the question was decided; empty: not by the private mechanism."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """One question that was decided, and what was answered."""

    asked: float
    client: str
    organisation: str
    scope: str
    """Whose ledger: the organisation's, or everyone's."""
    snapshot: int
    origin: int
    """The snapshot the answer was made from; an earlier one if it was carried over."""
    attribute: str
    key: bytes
    question: str
    digest: bytes
    """Stands for the people of the class."""
    people: Words | None
    """The people of the class as bits; None if it was long ago."""
    class_size: int
    withheld: int
    rule: str
    """Why nothing was released; empty if something was."""
    body: bytes

    def __repr__(self) -> str:
        return f"Entry({self.organisation!r}, snapshot {self.snapshot}, {self.attribute!r})"

    @property
    def values(self) -> tuple[str, ...]:
        """The released values."""
        return Answer.from_body(self.body).values


class Ledger:
    """The entries of all organisations.

    With a secret, every row is sealed: a keyed sum over it and the seal before. At the next start all of them are
    checked, and the ledger is refused if a byte of a row was changed, a row is gone, or belongs to another gateway.
    """

    def __init__(self, state: Path, secret: Secret | None = None) -> None:
        self._state, self._secret = state, secret
        path = state / NAME
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = path.exists()
        if not before and (kept := belongings(state)):
            raise BrokenState(state, f"expected the file '{NAME}' beside '{kept[0].name}', there is none")
        path.touch(mode=0o600)
        self._lock = Lock()
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._last, self._sum = 0, b""
        self._seal_file: int | None = None
        try:
            entries = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'")
            if before and entries.fetchone() is None:
                raise BrokenState(state, f"expected what was told in '{NAME}', it is empty")
            # WAL with FULL: a commit has reached the disk when it returns.
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            if secret is not None:
                self._open_sealed(secret, before)
            self._connection.executescript(TABLES)
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # it quotes what is damaged, in whatever bytes
            self._connection.close()
            raise IncrowdError(
                f"{path}: expected the gateway's ledger, could not read it. Put back a copy; without its ledger "
                "the gateway must not answer, since it would not know what was said before"
            ) from None
        except BaseException:
            self._connection.close()
            raise

    # Seals

    def _open_sealed(self, secret: Secret, before: bool) -> None:
        """Check what is there, and seal what version 0.1 wrote."""
        if before and self._connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
            raise self._damaged("it is damaged")
        self._allow_again()
        self._connection.executescript(TABLES + SEAL_TABLES)
        with closing(sqlite3.connect(":memory:")) as plain:
            plain.executescript(TABLES + SEAL_TABLES)
            if _columns(self._connection) != _columns(plain):
                raise self._damaged("its tables have other columns")
        self._key = secret.key("ledger seals")
        identity = self._fact("identity")
        noted = self._noted()
        if identity is None and noted is None:
            self._seal_everything(secret, old=before)
        elif identity != secret.identity:
            raise BrokenState(
                self._state, f"expected the '{NAME}' of this gateway, got another one's, or another secret"
            )
        else:
            self._check_facts()
            self._check_seals(noted)
        flags = os.O_WRONLY | os.O_CREAT
        self._seal_file = os.open(self._state / SEAL_NAME, flags, 0o600)
        self._note_seal()

    def _damaged(self, what: str) -> BrokenState:
        return BrokenState(self._state, f"expected '{NAME}' as it was written, {what}")

    def _allow_again(self) -> None:
        """Let a question be decided again in one snapshot, once its window has passed: older tables refused that."""
        made = self._connection.execute("SELECT sql FROM sqlite_master WHERE name = 'entries'").fetchone()
        if made and "UNIQUE" in made[0]:
            with self._transaction():
                self._connection.execute("ALTER TABLE entries RENAME TO older_entries")
                self._connection.execute(TABLES.split(";")[0])
                self._connection.execute("INSERT INTO entries SELECT * FROM older_entries")
                self._connection.execute("DROP TABLE older_entries")

    def _seal_everything(self, secret: Secret, *, old: bool) -> None:
        """Seal a new ledger, or one that version 0.1 wrote, row by row."""
        with self._transaction():
            self._connection.execute("DELETE FROM seals")
            self._last, self._sum = 0, b""
            for kind, row in self._rows():
                self._seal(kind, row)
            self._set_facts(identity=secret.identity)
        if old:
            logger.info("the ledger of version 0.1 was sealed: from now on lost or changed rows show")

    def _check_seals(self, noted: tuple[int, bytes] | None) -> None:
        """Compute every sum again; raise at the first row that is not as it was sealed."""
        rows = self._connection.execute(
            "SELECT number, kind, row, people, sum FROM seals ORDER BY number"
        ).fetchall()
        there = sum(self._connection.execute(f"SELECT count(*) FROM {kind}").fetchone()[0] for kind in SEALED)
        if there != len(rows):
            raise BrokenState(self._state, f"expected {len(rows)} rows in '{NAME}', got {there}")
        reached = noted is None or noted[0] == 0
        for number, kind, row, people, total in rows:
            found = self._row(kind, row) if kind in SEALED else None  # one at a time: classes are large
            if number != self._last + 1 or found is None or self._sum_of(kind, found, people) != total:
                raise self._damaged(f"seal {number} does not fit")
            self._last, self._sum = number, total
            reached = reached or noted == (number, total)
        if not reached:
            raise BrokenState(
                self._state, f"expected a '{NAME}' that holds what was told last, got an older one"
            )

    def _rows(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield every row that is sealed, its number first."""
        for kind, columns in SEALED.items():
            for row in self._connection.execute(f"SELECT {columns} FROM {kind} ORDER BY 1"):
                yield kind, row

    def _sum_of(self, kind: str, row: tuple[Any, ...], people: bytes | None) -> bytes:
        """Return the keyed sum over a row and the seal before; classes that were forgotten count by their own sum."""
        *plain, packed = row
        if packed is not None and people is not None and blake2b(packed, digest_size=16).digest() != people:
            return b""
        made = blake2b(self._sum, key=self._key, digest_size=16)
        for part in (kind, *plain, people):
            word = part if isinstance(part, bytes) else repr(part).encode("utf-8", "surrogatepass")
            made.update(len(word).to_bytes(8, "big") + word)
        return made.digest()

    def _seal(self, kind: str, row: tuple[Any, ...]) -> None:
        people = None if row[-1] is None else blake2b(row[-1], digest_size=16).digest()
        total = self._sum_of(kind, row, people)
        self._last, self._sum = self._last + 1, total
        self._connection.execute(
            "INSERT INTO seals VALUES (?, ?, ?, ?, ?)", (self._last, kind, row[0], people, total)
        )

    def _seal_new(self, kind: str, row: int | None) -> None:
        """Seal a row that was just written."""
        if self._secret is not None:
            self._seal(kind, self._row(kind, row))

    def _row(self, kind: str, number: int | None) -> Any:
        """Return what is sealed of one row; None if it is not there."""
        sql = f"SELECT {SEALED[kind]} FROM {kind} WHERE {SEALED[kind].split(',')[0]} = ?"
        return self._connection.execute(sql, (number,)).fetchone()

    def _noted(self) -> tuple[int, bytes] | None:
        """Return number and sum of the last seal that was noted beside the ledger."""
        path = self._state / SEAL_NAME
        if not path.exists():
            return None
        try:
            number, _, total = path.read_text("ascii").partition(" ")
            noted = int(number), bytes.fromhex(total)
            if bool(noted[0]) != bool(noted[1]):  # before the first row both are empty, from then on neither
                raise ValueError
            return noted
        except ValueError:
            logger.error("%s is damaged; the ledger itself is whole as far as its own seals tell", SEAL_NAME)
            return 0, b""

    def _note_seal(self) -> None:
        # After the commit and without waiting for the disk: it never says more than the ledger holds.
        if self._seal_file is not None:
            os.pwrite(self._seal_file, f"{self._last:020d} {self._sum.hex():32}\n".encode(), 0)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Write all of it or nothing; what is sealed is noted once it is on the disk."""
        last = (self._last, self._sum)
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._last, self._sum = last
            self._connection.execute("ROLLBACK")
            raise
        self._note_seal()

    def _fact(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def _set_facts(self, **facts: str) -> None:
        """Write facts and the sum over all of them; inside a transaction."""
        write = "INSERT OR REPLACE INTO facts VALUES (?, ?)"
        self._connection.executemany(write, facts.items())
        self._connection.execute(write, (FACTS_SUM, self._sum_of_facts()[1]))

    def _sum_of_facts(self) -> tuple[dict[str, str], str]:
        """Return all facts, and the keyed sum that should be among them."""
        there = dict(self._connection.execute("SELECT name, value FROM facts ORDER BY name"))
        known = [(name, value) for name, value in there.items() if name != FACTS_SUM]
        return there, blake2b(repr(known).encode(), key=self._key, digest_size=16).hexdigest()

    def _check_facts(self) -> None:
        """Raise if a fact is not as it was written; a ledger of before they were summed up gets its sum."""
        there, total = self._sum_of_facts()
        if not set(there) <= {*FACTS, FACTS_SUM} or there.get(FACTS_SUM, total) != total:
            raise self._damaged("what it says about itself does not fit")
        with self._transaction():
            self._set_facts()

    def write_probe(self, now: float, audited: int) -> None:
        """Note a sign of life and how long the audit log is, to find out whether anything can still be written."""
        with self._lock, self._transaction():
            self._set_facts(alive=repr(now), audited=str(audited))

    def same_people(self, column: str) -> bool:
        """Note by which column people are told apart; False if it was another one when something was told."""
        with self._lock, self._transaction():
            told = self._connection.execute("SELECT 1 FROM entries LIMIT 1").fetchone()
            if told and self._fact("people") not in (None, column):
                return False
            self._set_facts(people=column)
            return True

    @property
    def started_anew(self) -> float:
        """When the state was reset, so that nobody knows what was told before; 0 if it never was."""
        with self._lock:
            return float(self._fact("reset") or 0.0)

    def mark_reset(self, now: float) -> None:
        """Note that what was told before this moment is not known."""
        with self._lock, self._transaction():
            self._set_facts(reset=repr(now))

    def heal_times(self, now: float) -> float:
        """Keep everything as old as it was at the last sign of life if the clock went back, or ahead by days.

        Otherwise what was told would count from a moment in the future, or be forgotten because of a clock that was
        wrong for a minute. Returns by how many seconds it was moved.
        """
        moments = [("entries", "asked"), ("charges", "asked"), ("snapshots", "taken")]
        with self._lock, self._transaction():
            known = [float(self._fact(name) or 0) for name in ("alive", "reset")]
            for table, column in moments:
                known.append(
                    self._connection.execute(f"SELECT max({column}) FROM {table}").fetchone()[0] or 0
                )
            gap = now - max(known)
            if not max(known) or -SteadyClock.DRIFT <= gap <= AWAY:
                return 0.0
            for table, column in moments if gap < 0 else moments[:2]:  # an old snapshot is due, not healed
                self._connection.execute(f"UPDATE {table} SET {column} = {column} + ?", (gap,))
            moved = {name: self._fact(name) for name in ("alive", "reset")}
            self._set_facts(**{name: repr(float(moment) + gap) for name, moment in moved.items() if moment})
            if self._secret is not None:
                self._connection.execute("DELETE FROM seals")
                self._last, self._sum = 0, b""
                for kind, row in self._rows():
                    self._seal(kind, row)
        return gap

    # Entries

    def record(self, entry: Entry, charge: tuple[str, Words] | None = None) -> None:
        """Write an entry so that it survives anything; only then may the answer leave.

        A charge says under which settings whose budgets were spent; both are written, or neither. What spends no
        budget is answered once a snapshot.
        """
        people = None if entry.people is None else packed(entry.people)
        row = (
            entry.asked,
            entry.client,
            entry.organisation,
            entry.scope,
            entry.snapshot,
            entry.origin,
            entry.attribute,
            entry.key,
            entry.question,
            entry.digest,
            people,
            entry.class_size,
            entry.withheld,
            entry.rule,
            entry.body,
        )
        marks = ", ".join("?" * len(row))
        before = "SELECT 1 FROM entries WHERE scope = ? AND snapshot = ? AND key = ?"
        with self._lock, self._transaction():
            told = (entry.scope, entry.snapshot, entry.key)
            if charge is None and self._connection.execute(before, told).fetchone():
                raise sqlite3.IntegrityError("this question was answered in this snapshot")
            made = self._connection.execute(f"INSERT INTO entries ({COLUMNS}) VALUES ({marks})", row)
            self._seal_new("entries", made.lastrowid)
            if charge is not None:
                spent = self._connection.execute(
                    "INSERT INTO charges (entry, asked, scope, settings, people) VALUES (?, ?, ?, ?, ?)",
                    (made.lastrowid, entry.asked, entry.scope, charge[0], packed(charge[1])),
                )
                self._seal_new("charges", spent.lastrowid)

    def body(self, scope: str, snapshot: int, key: bytes) -> bytes | None:
        """Return what was answered to this question before, byte for byte."""
        sql = f"SELECT body FROM entries WHERE {_IN_SCOPE} AND snapshot = ? AND key = ? ORDER BY id LIMIT 1"
        with self._lock:
            row = self._connection.execute(sql, (scope, scope, snapshot, key)).fetchone()
        return None if row is None else bytes(row[0])

    def private_answer(self, scope: str, organisation: str, key: bytes, since: float) -> EarlierAnswer | None:
        """Return the newest answer to this question since a moment.

        It was decided privately, or this organisation has it anyway: telling it again tells nothing new.
        """
        sql = (
            f"SELECT {_TOLD} FROM entries WHERE key = ? AND asked >= ? AND {_IN_SCOPE} "
            "AND (organisation = ? OR id IN (SELECT entry FROM charges)) ORDER BY id DESC LIMIT 1"
        )
        with self._lock:
            row = self._connection.execute(sql, (key, since, scope, scope, organisation)).fetchone()
        return None if row is None else EarlierAnswer(row[0], row[1], row[2], row[3], bool(row[4]))

    def first_told(self, scope: str, entry: Entry) -> EarlierAnswer:
        """Return how an answer that is given again came about: the first one to this question or about these people."""
        sql = (
            f"SELECT {_TOLD} FROM entries WHERE {_IN_SCOPE} AND attribute = ? AND origin = ? "
            "AND (key = ? OR digest = ?) ORDER BY id LIMIT 1"
        )
        about = (scope, scope, entry.attribute, entry.origin, entry.key, entry.digest)
        with self._lock:
            row = self._connection.execute(sql, about).fetchone()
        return EarlierAnswer(row[0], row[1], row[2], row[3], bool(row[4]))

    def charges(self, scope: str, since: float, after: int) -> list[Charge]:
        """Return what was asked since a moment by entries above `after`, oldest first.

        What another rule told is in it, too: it was told without a budget. What ran out of time told nothing.
        """
        sql = (
            "SELECT entries.id, entries.asked, coalesce(settings, '') FROM entries "
            f"LEFT JOIN charges ON charges.entry = entries.id WHERE {_IN_SCOPE} AND entries.asked >= ? "
            "AND entries.id > ? AND (settings IS NOT NULL OR rule != ?) ORDER BY entries.id"
        )
        with self._lock:
            rows = self._connection.execute(sql, (scope, scope, since, after, OVER_TIME)).fetchall()
        return [Charge(*row) for row in rows]

    def charged(self, entry: int) -> Words | None:
        """Return who was counted, as bits; None if that is not known any more."""
        sql = (
            "SELECT coalesce(charges.people, entries.people) FROM entries "
            "LEFT JOIN charges ON charges.entry = entries.id WHERE entries.id = ?"
        )
        with self._lock:
            row = self._connection.execute(sql, (entry,)).fetchone()
        return None if row[0] is None else unpacked(row[0])

    def spent(self, organisation: str, since: float) -> int:
        """Count the questions of an organisation that were decided since a moment; repeats are not."""
        sql = "SELECT count(*) FROM entries WHERE organisation = ? AND asked >= ?"
        with self._lock:
            return int(self._connection.execute(sql, (organisation, since)).fetchone()[0])

    def told(self, scope: str, since_snapshot: int, *, before: int = 2**62) -> list[Entry]:
        """Return a scope's entries of this snapshot and later ones, oldest first; of those `before` an entry."""
        sql = f"SELECT {COLUMNS} FROM entries WHERE {_IN_SCOPE} AND snapshot >= ? AND id < ? ORDER BY id"
        about = (scope, scope, since_snapshot, before)
        with self._lock:
            return [_entry(row) for row in self._connection.execute(sql, about)]

    def replay(self) -> Iterator[Entry]:
        """Yield every entry ever written, oldest first."""
        last = 0
        while True:
            sql = f"SELECT {COLUMNS}, id FROM entries WHERE id > ? ORDER BY id LIMIT 1000"
            with self._lock:
                rows = self._connection.execute(sql, (last,)).fetchall()
            if not rows:
                return
            yield from map(_entry, rows)
            last = rows[-1][-1]

    def begin(self, snapshot: int, taken: float, source: bytes) -> None:
        """Note that a snapshot is in use from now on; `source` stands for what was copied."""
        with self._lock, self._transaction():
            self._connection.execute("INSERT INTO snapshots VALUES (?, ?, ?)", (snapshot, taken, source))
            self._seal_new("snapshots", snapshot)

    def snapshot(self) -> tuple[int, float, bytes] | None:
        """Return number, time and source of the snapshot in use."""
        sql = "SELECT number, taken, source FROM snapshots ORDER BY number DESC LIMIT 1"
        with self._lock:
            row = self._connection.execute(sql).fetchone()
        return None if row is None else (int(row[0]), float(row[1]), bytes(row[2]))

    def forget(self, before_snapshot: int) -> set[int]:
        """Drop the classes of older entries; return the snapshots that the others were made from."""
        with self._lock:
            self._connection.execute(
                "UPDATE entries SET people = NULL WHERE snapshot < ? AND people IS NOT NULL",
                (before_snapshot,),
            )
            rows = self._connection.execute("SELECT DISTINCT origin FROM entries WHERE people IS NOT NULL")
            return {row[0] for row in rows}

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
            if self._seal_file is not None:
                os.close(self._seal_file)
                self._seal_file = None


def audited(state: Path) -> int:
    """Return how many records the audit log had when the gateway last looked."""
    return int(_noted_fact(state, "audited") or 0)


def reset_at(state: Path) -> float:
    """Return when the state was reset, in seconds since 1970; 0 if it never was."""
    return float(_noted_fact(state, "reset") or 0)


def _noted_fact(state: Path, name: str) -> str | None:
    """Read a fact from the file alone: whoever decides may hold the ledger."""
    try:
        with closing(sqlite3.connect(f"{(state / NAME).absolute().as_uri()}?mode=ro", uri=True)) as ledger:
            row = ledger.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    except sqlite3.OperationalError:  # there is none, or it is one of version 0.1
        return None
    return None if row is None else str(row[0])


def _columns(connection: sqlite3.Connection) -> list[list[Any]]:
    tables = (*SEALED, "facts", "seals")
    return [connection.execute(f"PRAGMA table_info({table})").fetchall() for table in tables]


def _entry(row: tuple) -> Entry:  # type: ignore[type-arg]  # as SQLite gives it
    people = None if row[10] is None else unpacked(row[10])
    names = [name.strip() for name in COLUMNS.split(",")]
    fields = dict(zip(names, row[: len(names)], strict=True))
    return Entry(**{**fields, "people": people})

"""PostgreSQL: snapshots are tables in a schema of the gateway's own, taken in one repeatable-read transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from incrowd.errors import BudgetExceeded, IncrowdError
from incrowd.gateway.databases.common import Dialect, Numbers, Select, missing, not_unique, unfit
from incrowd.gateway.policy import DatabasePolicy
from incrowd.gateway.predicate import Predicate, compile_predicate

TYPES = {
    "text": "TEXT",
    "integer": "BIGINT",
    "number": "DOUBLE PRECISION",
    "latitude": "DOUBLE PRECISION",
    "longitude": "DOUBLE PRECISION",
    "date": "DATE",
    "boolean": "BOOLEAN",
}
PACKED = "string_agg(int4send(number), ''::bytea)"
"""Numbers as one string of bytes: a hundred thousand of them arrive as one value."""
FETCHED_VALUES = 1000


class Postgres:
    """A PostgreSQL database as source.

    The role needs SELECT on the named tables and CREATE on the database (or on a schema made for it); it
    should own nothing else.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._dialect = Dialect(placeholder="%s", types=TYPES)
        self._schema = ""
        self._seconds = 2.0
        self._idle: list[psycopg.Connection[Any]] = []
        self._lock, self._taking = Lock(), Lock()

    def __repr__(self) -> str:
        return "Postgres(hidden)"  # the URL may hold a password

    def open(self, state: Path, label: str, seconds: float) -> None:
        """Make the schema for snapshots, unless it is there."""
        self._seconds = seconds
        self._schema = f"incrowd_gateway_{label}"
        self._dialect = Dialect(placeholder="%s", types=TYPES, schema=f'"{self._schema}".')
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._connect() as own:
            # Asking first lets a role work that may not make schemas, in one that was made for it.
            there = own.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self._schema]).fetchone()
            if there is None:
                own.execute(f'CREATE SCHEMA "{self._schema}"')
            for sql in self._dialect.prepare():
                own.execute(sql)

    def identity(self) -> str | None:
        """Return whose snapshots these are; None if nobody's yet."""
        with self._reading() as own:
            row = own.execute(f"SELECT identity FROM {self._dialect.schema}owner").fetchone()
        return None if row is None else str(row[0])

    def claim(self, identity: str) -> None:
        """Say whose snapshots these are."""
        with self._connect() as own:
            own.execute(f"INSERT INTO {self._dialect.schema}owner VALUES (%s)", [identity])

    def check(self) -> None:
        """Raise if the server cannot be reached now."""
        with self._connect() as own:
            own.execute("SELECT 1")

    def snapshots(self) -> list[int]:
        """Return the numbers of the complete snapshots, oldest first."""
        with self._reading() as own:
            rows = own.execute(f"SELECT number FROM {self._dialect.schema}taken ORDER BY number").fetchall()
        return [row[0] for row in rows]

    def people(self) -> int:
        """How many people were ever seen."""
        with self._reading() as own:
            return int(_first(own.execute(f"SELECT count(*) FROM {self._dialect.schema}people")))

    def take(self, number: int, policy: DatabasePolicy, created_before: datetime | None) -> None:
        """Copy the source as it is now; whatever fails, nothing of it is kept."""
        with self._taking, self._connect() as own:
            try:
                with own.transaction():
                    own.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    self._copy(own, number, policy, created_before)
            except psycopg.Error as error:
                raise unfit(error) from None

    def drop(self, number: int) -> None:
        """Forget a snapshot's tables."""
        sql = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
        with self._connect() as own, own.transaction():
            own.execute(f"DELETE FROM {self._dialect.schema}taken WHERE number = %s", [number])
            for (name,) in own.execute(sql, [self._schema]).fetchall():
                if name == f"users_{number:d}" or name.startswith(f"values_{number:d}_"):
                    own.execute(f'DROP TABLE "{self._schema}"."{name}"')  # a name of our own making

    def members(self, number: int, where: Predicate) -> Numbers:
        """Return the numbers of the people for whom a condition holds, in rising order."""
        condition = compile_predicate(where, self._dialect.placeholder)
        sql = f"SELECT {PACKED} FROM {self._dialect.users(number)} WHERE {condition.sql}"
        with self._reading() as own:
            packed = _first(own.execute(sql, condition.parameters, binary=True))
        return np.sort(_unpacked(packed or b""))

    def sizes(self, number: int, filter: str) -> NDArray[np.int64]:
        """Return how many people share each value of a filter, in no order."""
        with self._reading() as own:
            rows = own.execute(self._dialect.sizes(number, filter)).fetchall()
        return np.array([row[0] for row in rows], dtype=np.int64)

    def holders(self, number: int, attribute: str) -> Iterator[tuple[str, Numbers]]:
        """Yield each value of an attribute with the numbers of those who list it."""
        table = self._dialect.values(number, attribute)
        sql = f'SELECT value, {PACKED} FROM {table} GROUP BY value ORDER BY value COLLATE "C"'
        with self._connect() as own, own.transaction(), own.cursor(name="holders", binary=True) as cursor:
            cursor.execute(sql)
            while rows := cursor.fetchmany(FETCHED_VALUES):
                for value, packed in rows:
                    yield value, _unpacked(packed)

    def erase(self) -> None:
        """Remove the schema with the snapshots."""
        self.close()
        with self._connect() as own:
            own.execute(f'DROP SCHEMA IF EXISTS "{self._schema}" CASCADE')

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def _copy(
        self,
        own: psycopg.Connection[Any],
        number: int,
        policy: DatabasePolicy,
        created_before: datetime | None,
    ) -> None:
        users = self._dialect.source_users(policy, created_before is not None)
        parts = {name: self._dialect.source_values(policy, name) for name in policy.attributes}
        for part in (users, *parts.values()):
            self._probe(own, part)
        self._stage(own, users, [] if created_before is None else [created_before])
        if _first(own.execute(self._dialect.repeated())):
            raise not_unique(policy.id)
        for sql in self._dialect.keep_users(number, policy):
            own.execute(sql)
        for name, part in parts.items():
            self._stage(own, part, [])
            for sql in self._dialect.keep_values(number, name):
                own.execute(sql)
        own.execute(f"ANALYZE {self._dialect.users(number)}")
        own.execute(f"INSERT INTO {self._dialect.schema}taken VALUES (%s)", [number])

    def _stage(self, own: psycopg.Connection[Any], part: Select, parameters: list[object]) -> None:
        own.execute("DROP TABLE IF EXISTS pg_temp.staged")
        # Bound parameters are not allowed inside CREATE TABLE AS, so rows are inserted into an empty table.
        columns = ", ".join(f"{alias} {kind}" for alias, (_, kind) in part.columns.items())
        own.execute(f"CREATE TEMP TABLE staged ({columns}) ON COMMIT DROP")
        own.execute(f"INSERT INTO pg_temp.staged {self._dialect.select(part)}", parameters)
        own.execute("ANALYZE pg_temp.staged")

    def _probe(self, own: psycopg.Connection[Any], part: Select) -> None:
        try:
            own.execute(self._dialect.probe(part))
        except psycopg.Error:
            raise missing(part) from None

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            return psycopg.connect(self._url, options="-c TimeZone=UTC", autocommit=True)
        except psycopg.Error:
            raise IncrowdError(
                "database: expected a PostgreSQL server behind the URL, could not connect. "
                "Check host, name, user and password, and that the server runs"
            ) from None

    @contextmanager
    def _reading(self) -> Iterator[psycopg.Connection[Any]]:
        """Lend a connection that cannot write and whose statements end in time."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
            connection.execute("SET default_transaction_read_only = on")
            connection.execute(f"SET statement_timeout = {max(1, round(self._seconds * 1000)):d}")
        try:
            yield connection
        except psycopg.errors.QueryCanceled:
            raise BudgetExceeded("database: the query passed its time") from None
        except psycopg.Error as error:
            raise IncrowdError(f"database: a query failed ({type(error).__name__})") from None
        finally:
            if connection.closed or connection.broken:
                connection.close()
            else:
                with self._lock:
                    self._idle.append(connection)


def _first(cursor: psycopg.Cursor[Any]) -> Any:
    row = cursor.fetchone()
    return row[0] if row else None


def _unpacked(packed: bytes) -> Numbers:
    return np.frombuffer(packed, dtype=">i4").astype(np.int32)

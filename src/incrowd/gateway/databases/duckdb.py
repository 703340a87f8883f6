"""DuckDB: the source is a file that is opened read-only while a snapshot is taken; snapshots are a file of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from threading import Lock, Timer
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from incrowd.crowd.disk import PRIVATE_FOLDER, Disk
from incrowd.crowd.tables import Shown
from incrowd.errors import BudgetExceeded, IncrowdError, UnreadableSource
from incrowd.gateway.databases.common import Dialect, Numbers, Select, missing, not_unique, unfit
from incrowd.gateway.policy import DatabasePolicy
from incrowd.gateway.predicate import Condition, Predicate, compile_predicate

DIALECT = Dialect(
    placeholder="?",
    types={
        "text": "VARCHAR",
        "integer": "BIGINT",
        "number": "DOUBLE",
        "latitude": "DOUBLE",
        "longitude": "DOUBLE",
        "date": "DATE",
        "boolean": "BOOLEAN",
    },
)
CLOSED = {
    "enable_external_access": "false",  # no file but the database itself can be reached
    "python_enable_replacements": "false",  # and no variable of ours
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


class DuckDB:
    """A DuckDB file as source."""

    def __init__(self, source: str) -> None:
        self._source = Path(source)
        self._folder: Path | None = None
        self._own: duckdb.DuckDBPyConnection | None = None
        self._seconds = 2.0
        self._taking = Lock()

    def __repr__(self) -> str:
        return f"DuckDB({str(self._source)!r})"

    def open(self, state: Path, label: str, seconds: float) -> None:
        """Open the snapshots; the source is opened when one is taken."""
        # The files in it are DuckDB's, so the folder is what is private.
        self._folder = folder = state / f"snapshots-{label}"
        Disk().make_folder(folder, PRIVATE_FOLDER)
        self._seconds = seconds
        config = {**CLOSED, "threads": "2", "memory_limit": "2GB", "temp_directory": str(folder / "spill")}
        try:
            self._own = duckdb.connect(str(folder / "snapshots.duckdb"), config=config)  # type: ignore[arg-type]
        except duckdb.Error as error:
            if "newer version of DuckDB" in str(error):
                raise IncrowdError(
                    f"{state}: expected snapshots that DuckDB {duckdb.__version__} can read, a newer one wrote them. "
                    "Nothing is lost: 'pip install --upgrade duckdb', then start again"
                ) from None
            if "lock" not in str(error):
                raise _damaged(state) from None
            raise IncrowdError(
                f"{state}: expected to open the snapshots in it, could not. Is another gateway running on it?"
            ) from None
        try:
            for sql in DIALECT.prepare():
                self._own.execute(sql)
            self._own.execute("SET lock_configuration = true")
        except duckdb.Error:
            self.close()
            raise _damaged(state) from None

    def identity(self) -> str | None:
        """Return whose snapshots these are; None if nobody's yet."""
        found = self._rows("SELECT identity FROM owner")
        return str(found[0][0]) if found else None

    def claim(self, identity: str) -> None:
        """Say whose snapshots these are."""
        with closing(self._cursor()) as own:
            own.execute("INSERT INTO owner VALUES (?)", [identity])

    def check(self) -> None:
        """Raise if the source or the snapshots cannot be reached now."""
        if not self._source.is_file():
            raise UnreadableSource(f"database: {self._source}: expected a DuckDB file, there is none")
        self._rows("SELECT 1")

    def snapshots(self) -> list[int]:
        """Return the numbers of the complete snapshots, oldest first."""
        return [row[0] for row in self._rows("SELECT number FROM taken ORDER BY number")]

    def people(self) -> int:
        """How many people were ever seen."""
        return int(self._rows("SELECT count(*) FROM people")[0][0])

    def take(self, number: int, policy: DatabasePolicy, created_before: datetime | None) -> None:
        """Copy the source as it is now; whatever fails, nothing of it is kept."""
        with self._taking, closing(self._open_source()) as source, closing(self._cursor()) as own:
            source.execute("BEGIN TRANSACTION READ ONLY")
            own.execute("BEGIN TRANSACTION")
            try:
                self._copy(source, own, number, policy, created_before)
                own.execute("COMMIT")
            except duckdb.Error as error:
                own.execute("ROLLBACK")
                raise unfit(error) from None
            except BaseException:
                own.execute("ROLLBACK")
                raise

    def drop(self, number: int) -> None:
        """Forget a snapshot's tables."""
        with closing(self._cursor()) as own:
            own.execute("DELETE FROM taken WHERE number = ?", [number])
            names = own.execute("SELECT table_name FROM information_schema.tables").fetchall()
            for (name,) in names:
                if name == DIALECT.users(number) or name.startswith(f"values_{number:d}_"):
                    own.execute(f"DROP TABLE {name}")

    def members(self, number: int, where: Predicate) -> Numbers:
        """Return the numbers of the people for whom a condition holds, in rising order."""
        condition: Condition = compile_predicate(where, DIALECT.placeholder)
        sql = f"SELECT number FROM {DIALECT.users(number)} WHERE {condition.sql}"
        with closing(self._cursor()) as own, self._in_time(own):
            found = own.execute(sql, list(condition.parameters)).fetchnumpy()["number"]
        return np.sort(np.asarray(found, dtype=np.int32))

    def sizes(self, number: int, filter: str) -> NDArray[np.int64]:
        """Return how many people share each value of a filter, in no order."""
        rows = self._rows(DIALECT.sizes(number, filter))
        return np.array([row[0] for row in rows], dtype=np.int64)

    def holders(self, number: int, attribute: str) -> Iterator[tuple[str, Numbers]]:
        """Yield each value of an attribute with the numbers of those who list it."""
        table = DIALECT.values(number, attribute)
        sql = f"SELECT value, array_agg(number) FROM {table} GROUP BY value ORDER BY value"
        with closing(self._cursor()) as own:
            try:
                own.execute(sql)
                while rows := own.fetchmany(1000):
                    for value, numbers in rows:
                        yield value, np.array(numbers, dtype=np.int32)
            except duckdb.Error:
                raise _damaged(self._folder or Path()) from None

    def erase(self) -> None:
        """Remove the file with the snapshots."""
        self.close()
        if self._folder is not None:
            Disk().remove(self._folder)

    def close(self) -> None:
        """Close the snapshots."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def _copy(
        self, source: Any, own: Any, number: int, policy: DatabasePolicy, created_before: datetime | None
    ) -> None:
        users = DIALECT.source_users(policy, created_before is not None)
        parts = {name: DIALECT.source_values(policy, name) for name in policy.attributes}
        for part in (users, *parts.values()):
            _probe(source, part)
        self._stage(source, own, users, [] if created_before is None else [created_before])
        if own.execute(DIALECT.repeated()).fetchone()[0]:
            raise not_unique(policy.id)
        for sql in DIALECT.keep_users(number, policy):
            own.execute(sql)
        for name, part in parts.items():
            self._stage(source, own, part, [])
            for sql in DIALECT.keep_values(number, name):
                own.execute(sql)
        own.execute("DROP TABLE staged")
        own.execute("INSERT INTO taken VALUES (?)", [number])

    def _stage(self, source: Any, own: Any, part: Select, parameters: list[object]) -> None:
        own.register("arriving", Shown(source.sql(DIALECT.select(part), params=parameters)))
        own.execute("CREATE OR REPLACE TEMP TABLE staged AS SELECT * FROM arriving")
        own.unregister("arriving")

    def _open_source(self) -> duckdb.DuckDBPyConnection:
        if not self._source.is_file():
            raise UnreadableSource(f"database: {self._source}: expected a DuckDB file, there is none")
        try:
            source = duckdb.connect(str(self._source), read_only=True, config=CLOSED)  # type: ignore[arg-type]
            source.execute("SET TimeZone = 'UTC'")
            source.execute("SET lock_configuration = true")
        except duckdb.Error as error:
            holder = re.search(r"\(PID (\d+)\)", str(error))
            why = (
                f"it is locked by process {holder[1]}, which has to close it first"
                if holder
                else "either it is none, or another process is writing to it and has to close it first"
            )
            raise UnreadableSource(
                f"database: {self._source}: expected a DuckDB file that can be read, could not open it: {why}"
            ) from None
        return source

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        if self._own is None:
            raise IncrowdError("database: it is not open")
        return self._own.cursor()

    def _rows(self, sql: str) -> list[Any]:
        with closing(self._cursor()) as own:
            try:
                return own.execute(sql).fetchall()
            except duckdb.Error:
                raise _damaged(self._folder or Path()) from None

    @contextmanager
    def _in_time(self, own: duckdb.DuckDBPyConnection) -> Iterator[None]:
        timer = Timer(self._seconds, own.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        except duckdb.InterruptException:
            raise BudgetExceeded("database: the query passed its time") from None
        except duckdb.Error as error:
            raise IncrowdError(f"database: a query failed ({type(error).__name__})") from None
        finally:
            timer.cancel()


def _probe(source: Any, part: Select) -> None:
    try:
        source.execute(DIALECT.probe(part)).fetchall()
    except duckdb.Error:
        raise missing(part) from None


def _damaged(folder: Path) -> IncrowdError:
    return IncrowdError(
        f"{folder}: expected the snapshots as they were written, they are damaged. Put back a copy of the whole state "
        "folder that was made after the last answer; if there is none, 'incrowd gateway reset' starts anew with all "
        "budgets spent"
    )

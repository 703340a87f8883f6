"""What the gateway asks of a database, whichever it is.

The source is only ever read, and only while a snapshot is taken: the named tables and columns are copied
into tables of the gateway's own, under a number. Queries see these copies alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InputError
from incrowd.gateway.policy import DatabasePolicy
from incrowd.gateway.predicate import Predicate, column

Numbers = NDArray[np.int32]


class Database(Protocol):
    """A source of data and a place for its snapshots."""

    def open(self, state: Path, label: str, seconds: float) -> None:
        """Get ready: `state` and `label` say where snapshots live, queries may take `seconds`."""

    def identity(self) -> str | None:
        """Return whose snapshots these are; None if nobody's yet."""

    def claim(self, identity: str) -> None:
        """Say whose snapshots these are."""

    def check(self) -> None:
        """Raise if the source or the snapshots cannot be reached now."""

    def snapshots(self) -> list[int]:
        """Return the numbers of the complete snapshots, oldest first."""

    def take(self, number: int, policy: DatabasePolicy, created_before: datetime | None) -> None:
        """Copy the source as it is now, all tables at one moment; accounts made later are left out."""

    def drop(self, number: int) -> None:
        """Forget a snapshot's tables."""

    def people(self) -> int:
        """How many people were ever seen. Each keeps one number from 0 on through all snapshots."""

    def members(self, number: int, where: Predicate) -> Numbers:
        """Return the numbers of the people for whom a checked condition holds, in rising order."""

    def sizes(self, number: int, filter: str) -> NDArray[np.int64]:
        """Return how many people share each value of a filter, in no order; for the provider's report."""

    def holders(self, number: int, attribute: str) -> Iterator[tuple[str, Numbers]]:
        """Yield each value of an attribute with the numbers of those who list it."""

    def erase(self) -> None:
        """Remove everything of the gateway's own, for one that was opened only to try."""

    def close(self) -> None:
        """Let go of everything."""


def missing(part: Select) -> InputError:
    """A table or one of its columns is not there, or may not be read."""
    names = sorted({name for name, _ in part.columns.values()} | ({part.created} - {""}))
    return InputError(
        f"database: expected table '{part.table}' with the columns {', '.join(names)}, could not read them. "
        "Compare the policy's [database] with the tables, and check permissions"
    )


def unfit(error: Exception) -> InputError:
    """A table could not be copied; the driver's own message may quote an entry, so it is left out."""
    return InputError(
        f"database: a table could not be copied ({type(error).__name__}). Most often a column does not fit the "
        "type that the policy gives its filter"
    )


def not_unique(column: str) -> InputError:
    """Several rows of the users table have one id."""
    return InputError(f"database: column '{column}' must tell people apart, but some rows have the same")


@dataclass(frozen=True)
class Select:
    """Reading some columns of one source table."""

    table: str
    columns: Mapping[str, tuple[str, str]]
    """Name in the copy -> column of the source and type."""
    required: tuple[str, ...]
    """Names of the copy that must not be empty."""
    created: str = ""
    """Column that has to lie before the cutoff, if any."""


@dataclass(frozen=True)
class Dialect:
    """How one database spells what differs."""

    placeholder: str
    types: Mapping[str, str]
    """Kind of a filter -> type."""
    schema: str = ""
    """Prefix of the gateway's own tables."""

    def users(self, number: int) -> str:
        """Name the table of a snapshot's people."""
        return f"{self.schema}users_{number:d}"

    def values(self, number: int, attribute: str) -> str:
        """Name the table of a snapshot's attribute."""
        return f"{self.schema}values_{number:d}_{column(attribute)}"

    def sizes(self, number: int, filter: str) -> str:
        """Count the people of each class that a filter makes."""
        name = column(filter)
        return f"SELECT count(*) FROM {self.users(number)} WHERE {name} IS NOT NULL GROUP BY {name}"

    def select(self, one: Select) -> str:
        """Read a source table; a cutoff for `created` is the only parameter."""
        listed = ", ".join(
            f"CAST({quoted(name)} AS {kind}) AS {alias}" for alias, (name, kind) in one.columns.items()
        )
        conditions = [f"{quoted(one.columns[alias][0])} IS NOT NULL" for alias in one.required]
        if one.created:
            conditions.append(f"CAST({quoted(one.created)} AS TIMESTAMP) <= {self.placeholder}")
        return f"SELECT {listed} FROM {quoted(one.table)} WHERE {' AND '.join(conditions)}"

    def probe(self, one: Select) -> str:
        """Read no row of a source table: fails if a name is wrong or may not be read."""
        names = {name for name, _ in one.columns.values()} | ({one.created} if one.created else set())
        return f"SELECT {', '.join(quoted(name) for name in sorted(names))} FROM {quoted(one.table)} LIMIT 0"

    def source_users(self, policy: DatabasePolicy, cutoff: bool) -> Select:
        """Say what is read of the users table."""
        columns = {"id": (policy.id, self.types["text"])}
        columns |= {column(name): (one.column, self.types[one.type]) for name, one in policy.filters.items()}
        return Select(policy.users, columns, ("id",), policy.created if cutoff else "")

    def source_values(self, policy: DatabasePolicy, attribute: str) -> Select:
        """Say what is read of an attribute's table."""
        one, text = policy.attributes[attribute], self.types["text"]
        return Select(one.table, {"id": (one.user, text), "value": (one.value, text)}, ("id", "value"))

    def prepare(self) -> list[str]:
        """Make the tables that outlive snapshots: everybody's number, and which snapshots are complete."""
        text = self.types["text"]
        return [
            f"CREATE TABLE IF NOT EXISTS {self.schema}people (id {text} PRIMARY KEY, number INTEGER NOT NULL)",
            f"CREATE TABLE IF NOT EXISTS {self.schema}taken (number INTEGER PRIMARY KEY)",
            f"CREATE TABLE IF NOT EXISTS {self.schema}owner (identity {text} PRIMARY KEY)",
        ]

    def keep_users(self, number: int, policy: DatabasePolicy) -> list[str]:
        """Number newcomers and copy the staged users under their numbers."""
        own, people = self.users(number), f"{self.schema}people"
        filters = "".join(f", staged.{column(name)}" for name in policy.filters)
        return [
            f"INSERT INTO {people} SELECT staged.id, "
            f"(SELECT count(*) FROM {people}) + row_number() OVER (ORDER BY staged.id) - 1 "
            f"FROM staged WHERE staged.id NOT IN (SELECT id FROM {people})",
            f"CREATE TABLE {own} AS SELECT known.number{filters} FROM staged "
            f"JOIN {people} known ON known.id = staged.id",
        ]

    def keep_values(self, number: int, attribute: str) -> list[str]:
        """Copy the staged values of those who are in the snapshot."""
        return [
            f"CREATE TABLE {self.values(number, attribute)} AS SELECT DISTINCT known.number, staged.value "
            f"FROM staged JOIN {self.schema}people known ON known.id = staged.id "
            f"WHERE known.number IN (SELECT number FROM {self.users(number)})"
        ]

    def repeated(self) -> str:
        """Count staged users that have the id of another."""
        return "SELECT count(*) - count(DISTINCT id) FROM staged"


def quoted(name: str) -> str:
    """Quote a name, and the schema before it if there is one."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))

"""SQL that every database understands, put together from names that the policy check has let through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from incrowd.gateway.compile import column
from incrowd.gateway.policy import DatabasePolicy


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

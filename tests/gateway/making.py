"""Small databases on both engines, and policies for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from incrowd.gateway.policy import GatewayPolicy, read_policy

NOW = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
LONG_AGO = datetime(2020, 1, 1)
TYPES = {
    "id": "VARCHAR",
    "city": "VARCHAR",
    "age": "INTEGER",
    "height": "DOUBLE PRECISION",
    "lat": "DOUBLE PRECISION",
    "lon": "DOUBLE PRECISION",
    "born": "DATE",
    "member": "BOOLEAN",
    "created": "TIMESTAMP",
}
User = Mapping[str, Any]
Likes = Mapping[str, Sequence[str]]
"""User -> the values they list."""


def person(id: str, city: str = "Denver", age: int = 30, created: datetime = LONG_AGO, **more: Any) -> User:
    return {"id": id, "city": city, "age": age, "created": created, **more}


def crowd(
    values: Mapping[str, int], *, start: int = 0, **fields: Any
) -> tuple[list[User], dict[str, list[str]]]:
    """People who list one value each: value -> how many."""
    users: list[User] = []
    likes: dict[str, list[str]] = {}
    for value, count in values.items():
        for _ in range(count):
            name = f"u{start + len(users):05d}"
            users.append(person(name, **fields))
            likes[name] = [value]
    return users, likes


def fill(connection: Any, users: Sequence[User], likes: Mapping[str, Likes], mark: str) -> None:
    """Make the tables anew: users, and one for each attribute."""
    connection.execute("DROP TABLE IF EXISTS users")
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    connection.execute(f"CREATE TABLE users ({columns})")
    _insert(connection, "users", [[user.get(name) for name in TYPES] for user in users], mark)
    for attribute, listed in likes.items():
        connection.execute(f"DROP TABLE IF EXISTS {attribute}")
        connection.execute(f"CREATE TABLE {attribute} (user_id VARCHAR, value VARCHAR)")
        rows = [[user, value] for user, values in listed.items() for value in values]
        _insert(connection, attribute, rows, mark)


def _insert(connection: Any, table: str, rows: list[list[Any]], mark: str) -> None:
    if rows:
        marks = ", ".join([mark] * len(rows[0]))
        many = connection.cursor() if mark == "%s" else connection
        many.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def fill_duckdb(path: Path, users: Sequence[User], likes: Mapping[str, Likes]) -> str:
    """Write a DuckDB file and return its URL."""
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute("BEGIN")
        fill(connection, users, likes, "?")
        connection.execute("COMMIT")
    return f"duckdb:///{path}"


def fill_postgres(url: str, users: Sequence[User], likes: Mapping[str, Likes]) -> str:
    """Fill a PostgreSQL database and return its URL."""
    import psycopg

    with psycopg.connect(url) as connection:
        fill(connection, users, likes, "%s")
    return url


def policy(**changes: Mapping[str, Any]) -> GatewayPolicy:
    """A policy for these tables; `release={"q": 5}` changes settings of a section."""
    content: dict[str, Any] = {
        "allow_weak": True,
        "database": {
            "users": "users",
            "id": "id",
            "created": "created",
            "filters": {
                "city": "text",
                "age": "integer",
                "height": "number",
                "lat": "latitude",
                "lon": "longitude",
                "born": "date",
                "is_member": {"column": "member", "type": "boolean"},
            },
            "attributes": {"movies": {"table": "movies", "user": "user_id", "value": "value"}},
        },
        "organisations": {"acme": {}, "uni": {}},
        "budget": {"scope": "organisation"},
        "release": {
            "mechanism": "q",
            "q": 5,
            "min_class": 10,
            "noise": 0,
            "known_users": 0,
            "allow_not": True,
        },
        "limits": {"solver_seconds": 5.0},  # a busy machine must not change what is tested
    }
    for section, settings in changes.items():
        content[section] = {**content.get(section, {}), **settings}
    return read_policy(content)

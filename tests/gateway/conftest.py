"""Both databases for one suite; PostgreSQL is a real server, started once a worker and only if asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import pytest
from tests.gateway.making import Likes, User, fill_duckdb, fill_postgres

Fill = Callable[[Sequence[User], Mapping[str, Likes]], str]
"""Users and attributes -> the URL of a database that holds them; called again, it fills the same database."""


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders of the user, of no concern here
        import pgserver

        server = pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    import psycopg

    with psycopg.connect(server.get_uri(), autocommit=True) as connection:  # the data are thrown away anyway
        for setting in ("fsync = off", "synchronous_commit = off", "full_page_writes = off"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
    yield server.get_uri()
    server.cleanup()


NUMBERS = count(1)


@pytest.fixture(params=["duckdb", "postgres"])
def fill(request: pytest.FixtureRequest, tmp_path: Path) -> Fill:
    """Fill an empty database of either kind."""
    if request.param == "duckdb":
        return lambda users, likes: fill_duckdb(tmp_path / "source.db", users, likes)
    import psycopg

    server = request.getfixturevalue("postgres_server")
    name = f"test_{next(NUMBERS)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = server.replace("/postgres?", f"/{name}?")
    return lambda users, likes: fill_postgres(url, users, likes)

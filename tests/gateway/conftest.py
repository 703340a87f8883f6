"""Both databases for one suite; PostgreSQL is a real server, started once a worker and only if asked for."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import pytest
from tests.gateway.making import Likes, User, fill_duckdb, fill_postgres

Fill = Callable[[Sequence[User], Mapping[str, Likes]], str]
"""Users and attributes -> the URL of a database that holds them; called again, it fills the same database."""


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    # Not pytest's folder: the server runs as a user of its own who may not enter it.
    folder = tempfile.mkdtemp(prefix="incrowd-postgres-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders of the user, of no concern here
        import pgserver

        server = pgserver.get_server(folder)
    import psycopg

    with psycopg.connect(server.get_uri(), autocommit=True) as connection:  # the data are thrown away anyway
        for setting in ("fsync = off", "synchronous_commit = off", "full_page_writes = off"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


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

"""Databases the gateway can stand in front of: how each is spelt, and how it is run."""

from __future__ import annotations

from incrowd.errors import InputError, MissingExtra
from incrowd.gateway.databases.common import Database
from incrowd.gateway.databases.duckdb import DuckDB

__all__ = ["Database", "connect"]


def connect(url: str) -> Database:
    """Return the database behind a URL; nothing is opened yet.

    ``duckdb:///shop.db`` is a file beside you, ``duckdb:////data/shop.db`` one with an absolute path;
    ``postgresql://reader@host/shop`` is a server, in any form libpq understands.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "duckdb":
        return DuckDB(rest.removeprefix("/"))
    if separator and scheme in ("postgresql", "postgres"):
        try:
            from incrowd.gateway.databases.postgres import Postgres
        except ImportError:
            raise MissingExtra("a PostgreSQL database", "postgres") from None
        return Postgres(url)
    raise InputError(
        "database: expected a URL like 'duckdb:///shop.db' or 'postgresql://reader@host/shop', "
        f"got one that starts with '{scheme[:20]}'"
    )

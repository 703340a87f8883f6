"""SQLite databases: one table with any columns, by mapping or by common names."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from incrowd.crowd.readers.base import About, Batch, Layout, Look, ReadOptions, guess, layout_of
from incrowd.crowd.readers.rows import RowBatch, Whole, batch_of
from incrowd.crowd.readers.source import decoded
from incrowd.crowd.schema import Kind, Reason
from incrowd.errors import SchemaError, Undecided, UnreadableSource

MAGIC = b"SQLite format 3\0"
TABLE = "table"
"""In `columns`: which table to read, if several could be meant."""


class Sqlite:
    """A table of a database file."""

    name = "sqlite"
    about = About("SQLite database")
    kind: Kind = "posts"

    def probe(self, look: Look) -> bool:
        """Say whether the file begins as SQLite's do."""
        return look.head.startswith(MAGIC)

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the table's rows in order."""
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as database:
                database.text_factory = bytes
                database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, options.max_line_bytes)
                database.execute("PRAGMA trusted_schema = OFF")
                table = _chosen(database, options, path)
                columns = {ours: theirs for ours, theirs in options.columns.items() if ours != TABLE}
                options = replace(options, columns=columns)
                layout = layout_of(_columns(database, table), options, f"{path}, table {table}")
                yield from _batches(database, table, layout, options)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise UnreadableSource(
                f"{path}: the SQLite database is damaged or locked away. Copy it anew."
            ) from error


def _batches(
    database: sqlite3.Connection, table: str, layout: Layout, options: ReadOptions
) -> Iterator[Batch]:
    names = Layout(kind=layout.kind, columns={name: (name,) for name in layout.sources})
    rows = RowBatch(names, options.batch_bytes)
    # Names are the database's own; quoted, they cannot be anything else.
    wanted = ", ".join(_quoted(name) for name in layout.sources)
    for number, record in enumerate(database.execute(f"SELECT {wanted} FROM {_quoted(table)}"), 1):
        texts = [_text(value) for value in record]
        if any(text is None and value is not None for text, value in zip(texts, record, strict=True)):
            rows.reject(number, Reason.WRONG_TYPE)
        else:
            rows.add(
                number, [text and text[0] for text in texts], replaced=any(text and text[1] for text in texts)
            )
        if rows.full:
            yield batch_of(rows.take(), layout, options)
    yield batch_of(rows.take(), layout, options, Whole())


def _text(value: object) -> tuple[str, bool] | None:
    if isinstance(value, bytes):
        return decoded(value)
    return None if value is None else (str(value), False)


def _chosen(database: sqlite3.Connection, options: ReadOptions, path: Path) -> str:
    listed = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    tables = [decoded(name)[0] for (name,) in database.execute(listed)]
    named = options.columns.get(TABLE)
    if named is not None and named not in tables:
        raise SchemaError(f"{path}: no table '{named}'. There are: {', '.join(tables)}.")
    fitting = [table for table in tables if {"user", "text", "item"} & set(guess(_columns(database, table)))]
    if named is None and len(fitting) > 1:
        raise Undecided(
            f"{path.name}: {len(fitting)} tables could be meant. Which one?",
            "columns",
            tuple(f"{TABLE}={table}" for table in fitting),
        )
    if named is None and not tables:
        raise SchemaError(f"{path}: the database has no tables.")
    return named or (fitting or tables)[0]


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [decoded(row[1])[0] for row in database.execute(f"PRAGMA table_info({_quoted(table)})")]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

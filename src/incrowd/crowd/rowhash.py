"""What makes two rows the same: hashes computed by DuckDB, two 64-bit halves of SHA-256 each.

`content` covers a row's visible columns. `id` is what the source says identifies the row (a post's own id in
its community), or what the table says (one row a user and item); it is null for posts without an id, which
are told apart by content and by how often it occurred before in the same source.

NUL separates the columns; validation has removed it from all of them.
"""

from __future__ import annotations

import duckdb
import polars as pl
import pyarrow as pa

from incrowd.crowd.schema import COLUMNS, Kind

SIZE: dict[Kind, str] = {"posts": "strlen(text)::UINTEGER", "items": "0", "attributes": "0"}
"""SQL for the bytes of what may be long in a row."""
HASHES = ("content_hi", "content_lo", "id_hi", "id_lo")

_IDENTITY = {
    "posts": "CASE WHEN id IS NOT NULL THEN concat('id', chr(0), community, chr(0), id) END",
    "items": "concat('item', chr(0), \"user\", chr(0), item)",
    "attributes": "concat('attribute', chr(0), \"user\", chr(0), attribute, chr(0), value)",
}
_ARROW = {pl.String(): pa.string(), pl.Int64(): pa.int64(), pl.Float64(): pa.float64()}


def hashed_schema(kind: Kind) -> pa.Schema:
    """Return the columns :func:`add_hashes` gives."""
    visible = [(name, _ARROW[dtype]) for name, dtype in COLUMNS[kind].items()]
    numbers = [(name, pa.uint64()) for name in ("row", *HASHES)]
    return pa.schema([numbers[0], *visible, ("bytes", pa.uint32()), *numbers[1:]])


def content_sql(kind: Kind) -> str:
    """Return the SQL text that spells out a row's visible columns."""
    columns = ", chr(0), ".join(f'"{name}"' for name in COLUMNS[kind])
    return f"concat('{kind}', chr(0), {columns})"


def identity_sql(kind: Kind) -> str:
    """Return the SQL text that spells out what identifies a row, or null."""
    return _IDENTITY[kind]


def halves(digest: str, name: str) -> str:
    """Return SQL for the two halves of a hexadecimal digest, as columns `name_hi` and `name_lo`."""
    hi, lo = (f"('0x' || substr({digest}, {start}, 16))::UBIGINT" for start in (1, 17))
    return f"{hi} AS {name}_hi, {lo} AS {name}_lo"


def add_hashes(connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame, kind: Kind) -> pa.Table:
    """Return the rows with `bytes` and :data:`HASHES` in place of the source's id."""
    columns = ", ".join(f'"{name}"' for name in ("row", *COLUMNS[kind]))
    connection.register("batch", rows.to_arrow())
    try:
        return connection.sql(
            f"""
            SELECT {columns}, {SIZE[kind]} AS bytes,
                   {halves("content", "content")}, {halves("identity", "id")}
            FROM (SELECT *, sha256({content_sql(kind)}) AS content, sha256({identity_sql(kind)}) AS identity
                  FROM batch)
            """
        ).to_arrow_table()
    finally:
        connection.unregister("batch")

"""Sources on their way into a crowd: read, checked, hashed and written aside, one file after the other.

What makes two rows the same are hashes computed by DuckDB, two 64-bit halves of SHA-256 each. `content` covers a
row's visible columns. `id` is what the source says identifies the row (a post's own id in its community), or what the
table says (one row a user and item); it is null for posts without an id, which are told apart by content and by how
often it occurred before in the same source. NUL separates the columns; validation has removed it from all of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa

from incrowd.crowd.disk import Disk
from incrowd.crowd.manifest import SourceRecord
from incrowd.crowd.pseudonyms import Pseudonyms
from incrowd.crowd.readers.base import Batch, empty_rejects, empty_rows
from incrowd.crowd.schema import COLUMNS, Checked, Kind, check
from incrowd.crowd.sources import Source, described
from incrowd.crowd.tables import parquet_sink

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


ROWS_NAME = "rows.parquet"
REJECTS_NAME = "rejects.parquet"
DONE_NAME = "done.json"
RULES = 1
"""Raise when validation changes: what an older release staged is then read anew."""

REJECTS = pa.schema([("row", pa.uint64()), ("reason", pa.string())])


@dataclass(frozen=True)
class Staged:
    """One source, ready to be merged."""

    folder: Path
    record: SourceRecord

    @property
    def rows(self) -> Path:
        """The checked rows."""
        return self.folder / ROWS_NAME

    @property
    def rejects(self) -> Path:
        """Rows set aside: number and reason."""
        return self.folder / REJECTS_NAME


class Tally:
    """Counts what a source brings while it is read."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.rows = self.good = self.replaced = self.skipped = 0
        self.reasons: Counter[str] = Counter()
        self.incomplete = False

    def add(self, batch: Batch, checked: Checked) -> None:
        """Count one batch."""
        self.rows += batch.rows.height + batch.rejects.height
        self.good += checked.rows.height
        self.replaced += batch.replaced + checked.replaced
        self.skipped += batch.skipped
        self.incomplete |= batch.incomplete
        for rejects in (batch.rejects, checked.rejects):
            self.reasons.update(dict(rejects["reason"].value_counts().iter_rows()))

    def onto(self, record: SourceRecord) -> SourceRecord:
        """Return the log entry with the counts in it."""
        return replace(
            record,
            kind=self.kind,
            rows=self.rows,
            added=self.good,
            reasons=dict(sorted(self.reasons.items())),
            replaced=self.replaced,
            skipped=self.skipped,
            incomplete=self.incomplete,
        )


@dataclass(frozen=True, kw_only=True)
class Stager:
    """Stages sources, one after the other."""

    folder: Path
    disk: Disk
    pseudonyms: Pseudonyms
    connection: duckdb.DuckDBPyConnection
    batch_bytes: int
    now: int
    """The time of the import, in UTC seconds: later posts are absurd."""
    report: Callable[[int, str], None]
    """Told how many rows of which source were read."""

    def record(self, source: Source) -> SourceRecord:
        """Return the log entry of a source before it is read."""
        return SourceRecord(
            name=source.name,
            content_hash=source.content_hash,
            reader=source.format,
            options=described(source.options, self.pseudonyms),
        )

    def stage(self, source: Source) -> Staged:
        """Read a source into staging, unless an earlier, interrupted import has done so."""
        record = self.record(source)
        folder = self.folder / _folder_name(record)
        finished = _finished(folder)
        if finished is not None:
            return Staged(folder, replace(finished, name=source.name))
        self.disk.remove(folder)
        self.disk.make_folder(folder)
        record = self._read(source, folder).onto(record)
        self.disk.sync_folder(folder)
        self.disk.write_whole(folder / DONE_NAME, json.dumps(asdict(record)).encode())
        return Staged(folder, record)

    def _read(self, source: Source, folder: Path) -> Tally:
        batches = source.batches(self.batch_bytes)
        first = next(batches, Batch(empty_rows("posts"), empty_rejects()))
        # A reader of tables may find out from the columns only what kind of rows it has.
        tally = Tally(first.kind)
        with (
            parquet_sink(folder / ROWS_NAME, hashed_schema(tally.kind), self.disk, compression="lz4") as good,
            parquet_sink(folder / REJECTS_NAME, REJECTS, self.disk, compression="lz4") as bad,
        ):
            for batch in chain([first], batches):
                rows, checked = self._prepare(batch.rows, tally.kind, source)
                tally.add(batch, checked)
                good.add(rows)
                bad.add(pl.concat([batch.rejects, checked.rejects]).sort("row").to_arrow())
                self.report(tally.rows, source.name)
            good.finish()
            bad.finish()
        return tally

    def _prepare(self, rows: pl.DataFrame, kind: Kind, source: Source) -> tuple[pa.Table, Checked]:
        """Check, pseudonymise and hash a batch."""
        own_export = source.options.user is not None
        checked = check(rows, kind, now=self.now, allow_bots=own_export)
        named = checked.rows.with_columns(self.pseudonyms.replace(checked.rows["user"]).alias("user"))
        return add_hashes(self.connection, named, kind), checked


def _folder_name(record: SourceRecord) -> str:
    """Name a source's staging folder after its bytes and the options that decide what is read from them."""
    digest = blake2b(repr((RULES, record.identity)).encode(), digest_size=16)
    return digest.hexdigest()


def _finished(folder: Path) -> SourceRecord | None:
    try:
        return SourceRecord(**json.loads((folder / DONE_NAME).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None

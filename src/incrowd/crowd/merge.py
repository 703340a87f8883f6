"""Merging: staged rows meet the crowd's own, duplicates fall away, sorted parts come out.

DuckDB decides on keys and hashes, within a memory limit, spilling to a folder inside the crowd; texts never
pass through it. Three rules decide:

- A row with an id wins over later rows with the same id. If they differ, they are `conflicting_id`.
- Posts without an id are the same if all their columns are, and if they are the n-th such post of their
  source: importing an overlapping export adds nothing, yet who wrote "thanks" twice keeps both.
- "Earlier" means: already in the crowd; then sources by name and hash; then rows in their order.

The order of newcomers is decided on keys alone. Then rows move: each goes into the bucket its rank falls into (a bucket
fits in memory), buckets lie on the disk until all files are read, and come out one by one, as a sorted run. Where runs
have become many, they are read side by side, a few rows of each at a time, and written as one. So what an import holds
in memory depends on what it brings, and not on what the crowd has.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl

from incrowd.crowd.disk import Disk
from incrowd.crowd.manifest import PARTS_FOLDER, STAGING_FOLDER, StoredTable, TablePart
from incrowd.crowd.row_groups import Schema, read_groups
from incrowd.crowd.schema import COLUMNS, Kind, Reason
from incrowd.crowd.staging import HASHES, Staged, halves, hashed_schema, identity_sql
from incrowd.crowd.tables import Shown, give_memory_back, in_pieces, parquet_sink, parquet_sql, write_parts

PLACE_BITS = 40
"""A row's place is (number of its file) << PLACE_BITS | (number of the row in it)."""

Numbers = np.ndarray[Any, np.dtype[np.uint64]]


class Places:
    """Which rows go where: columns `place`, `rank` and `occurrence`, sorted by place, read once."""

    def __init__(self, pieces: Iterable[pl.DataFrame]) -> None:
        self._pieces = iter(pieces)
        self._rest: pl.DataFrame | None = None

    def before(self, end: int) -> pl.DataFrame:
        """Return the rows with places below `end` that were not returned before."""
        found = [pl.DataFrame(schema=_PLACES)]
        while (rows := next(self._pieces, None) if self._rest is None else self._rest) is not None:
            count = int(rows["place"].search_sorted(end))
            found.append(rows.head(count))
            self._rest = rows.slice(count) if count < rows.height else None
            if self._rest is not None:
                break
        return pl.concat(found)


_PLACES = {"place": pl.UInt64(), "rank": pl.UInt64(), "occurrence": pl.UInt32()}


class Spill:
    """Rows on the disk, to be fetched back by bucket."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path, self._disk = path, disk
        self._file = disk.open(path)
        self._pieces: dict[int, list[tuple[int, int]]] = {}

    def put(self, bucket: int, rows: pl.DataFrame) -> None:
        """Append some rows of a bucket."""
        data = io.BytesIO()
        # Not as Polars has them in memory, where a few rows may refer to the texts of many.
        rows.write_ipc_stream(data, compat_level=pl.CompatLevel.oldest())
        self._pieces.setdefault(bucket, []).append((self._file.tell(), data.tell()))
        self._disk.write(self._file, data.getbuffer())

    def get(self, bucket: int) -> list[pl.DataFrame]:
        """Return all rows of a bucket."""
        self._file.flush()
        with self._path.open("rb") as file:
            found = []
            for start, size in self._pieces.pop(bucket, []):
                file.seek(start)
                found.append(pl.read_ipc_stream(file.read(size)))
        return found

    def close(self) -> None:
        """Forget everything."""
        self._file.close()
        self._disk.remove(self._path)


def arrange(
    files: Sequence[Path], places: Places, ends: Numbers, columns: Sequence[str], spill: Path, disk: Disk
) -> Iterator[pl.DataFrame]:
    """Yield the chosen rows of all files in the order of their ranks.

    `ends` are the ranks at which buckets end; the last is the number of rows.
    """
    selected = _selected(files, places, columns)
    if len(ends) <= 1:
        yield from _in_order(list(selected))
        return
    pieces = Spill(spill, disk)
    try:
        for rows in selected:
            _distribute(rows, ends, pieces)
            del rows  # before the next ones are read: memory would grow by what lies between
        for bucket in range(len(ends)):
            yield from _in_order(pieces.get(bucket))
    finally:
        pieces.close()


def _selected(files: Sequence[Path], places: Places, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the chosen rows of one row group after the other, with their ranks."""
    for number, path in enumerate(files):
        start = number << PLACE_BITS
        for group in read_groups(path, columns):
            chosen = places.before(start + group.height)
            if chosen.height:
                yield group[chosen["place"] - start].with_columns(chosen["rank"], chosen["occurrence"])
            start += group.height


def _distribute(rows: pl.DataFrame, ends: Numbers, pieces: Spill) -> None:
    rows = rows.sort("rank")
    buckets = np.searchsorted(ends, rows["rank"].to_numpy(), side="right")
    cuts = np.flatnonzero(np.diff(buckets)) + 1
    for first, last in zip([0, *cuts], [*cuts, len(buckets)], strict=True):
        pieces.put(int(buckets[first]), rows.slice(first, last - first))


def _in_order(frames: list[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    if frames:
        rows = pl.concat(frames)
        frames.clear()
        yield rows.sort("rank")


RUN_ROWS = 2048
"""So many rows of each run are in memory while runs are put together."""


def side_by_side(runs: Iterable[Sequence[Path]], keys: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the rows of sorted runs, each of one or more files, in the order of their keys."""
    ahead = [_frames(files) for files in runs]
    held = [next(frames, None) for frames in ahead]
    while lasts := [rows.select(keys).tail(1) for rows in held if rows is not None]:
        # No run has more rows to come that belong before the least of these.
        until = _at_most(pl.concat(lasts).sort(keys).head(1))
        ready = []
        for number, rows in enumerate(held):
            if rows is not None:
                count = rows.select(until.sum()).item()
                ready.append(rows.head(count))
                held[number] = rows.slice(count) if count < rows.height else next(ahead[number], None)
        yield pl.concat(ready).sort(keys, maintain_order=True)


def _frames(files: Sequence[Path]) -> Iterator[pl.DataFrame]:
    for path in files:
        yield from read_groups(path, most_rows=RUN_ROWS)


def _at_most(bound: pl.DataFrame) -> pl.Expr:
    """Return what says of a row that it does not come after the one given; null comes first."""

    def within(later: pl.Expr, name: str) -> pl.Expr:
        column, value = pl.col(name), pl.lit(bound[name].item(), dtype=bound.schema[name])
        before = value.is_not_null() & (column.is_null() | (column < value))
        return before | (column.eq_missing(value) & later)

    return reduce(within, reversed(bound.columns), pl.lit(value=True))


MOST_RUNS = 8
"""A table has at most this many sorted runs; one more, and they are put together."""
ROW_BYTES = 128
"""About what a row takes in memory beside its text."""

ORDER: dict[Kind, tuple[str, ...]] = {
    # One community, and one user in it, lie together: measures read them that way.
    "posts": ("community", "user", "time", "content_hi", "content_lo"),
    "items": ("user", "item"),
    "attributes": ("user", "attribute", "value"),
}
KEPT: dict[Kind, tuple[str, ...]] = {
    # Items and attributes are identified by their visible columns; posts need their hashes next time.
    "posts": ("bytes", *HASHES, "occurrence"),
    "items": (),
    "attributes": (),
}
QUARANTINE: dict[str, pl.DataType] = {"file": pl.String(), "row": pl.UInt64(), "reason": pl.String()}
KEY = "coalesce(id_hi, content_hi) AS hi, coalesce(id_lo, content_lo) AS lo"


@dataclass(frozen=True)
class Merged:
    """A table after the merge."""

    table: StoredTable
    set_aside: tuple[Counter[str], ...]
    """By source: how many rows were duplicates or conflicts."""


@dataclass(frozen=True, kw_only=True)
class Merger:
    """Merges one table after the other."""

    connection: duckdb.DuckDBPyConnection
    folder: Path
    disk: Disk
    run: int
    bucket_bytes: int

    def merge(self, kind: Kind, staged: Sequence[Staged], old: StoredTable) -> Merged:
        """Add staged sources, in order of precedence, to a table."""
        files = [source.rows for source in staged]
        self._view("staged", files, [source.record.name for source in staged])
        self._existing(kind, old.parts)
        self._judge(kind)
        if kind == "posts":
            self._judge_copies(old.parts)
        self._note_conflicts()
        keys = (*ORDER[kind], "occurrence") if KEPT[kind] else ORDER[kind]
        parts = self._with_run(kind, old.parts, self._in_order(kind, files), _schema(kind), keys)
        table = StoredTable(parts=parts, row_hashes=self._row_hashes(old))
        return Merged(table, self._set_aside(len(staged)))

    def quarantine(self, staged: Sequence[Staged], old: StoredTable) -> StoredTable:
        """List the rows that were set aside; call it after the tables are merged."""
        names = [source.record.name for source in staged]
        self._view("rejects", [source.rejects for source in staged], names)
        rows = in_pieces(
            self.connection,
            """
            SELECT file, "row", reason FROM rejects UNION ALL SELECT file, "row", reason FROM conflicts ORDER BY ALL
            """,
        )
        return StoredTable(parts=self._with_run("quarantine", old.parts, rows, QUARANTINE, list(QUARANTINE)))

    def _with_run(
        self,
        table: str,
        old: Sequence[TablePart],
        rows: Iterable[pl.DataFrame],
        schema: Schema,
        keys: Sequence[str],
    ) -> tuple[TablePart, ...]:
        """Write sorted rows as one more run of a table; where runs are many by now, put all of them together."""
        new = write_parts(table, rows, schema, self.folder, self.disk, run=self.run)
        parts = (*old, *new)
        runs = [self._paths(list(group)) for _, group in groupby(parts, key=lambda part: part.run)]
        if len(runs) <= MOST_RUNS:
            return parts
        give_memory_back()
        whole = write_parts(table, side_by_side(runs, keys), schema, self.folder, self.disk, run=self.run)
        for path in self._paths(new):
            self.disk.remove(path)
        return whole

    def _paths(self, parts: Sequence[TablePart]) -> list[Path]:
        return [self.folder / PARTS_FOLDER / part.file for part in parts]

    def _view(self, name: str, paths: Sequence[Path], labels: Sequence[str]) -> None:
        """Show files as one table, with each row's place: the number of its file, and its own in it."""
        files = pl.DataFrame({"filename": map(str, paths), "file": labels})
        files = files.with_row_index("source")
        self.connection.register("files", Shown(files))
        self.connection.execute(f"CREATE OR REPLACE TABLE {name}_files AS SELECT * FROM files")
        self.connection.unregister("files")
        self.connection.execute(
            f"""
            CREATE OR REPLACE VIEW {name} AS
            SELECT s.* EXCLUDE (filename, file_row_number), f.source, f.file,
                   (f.source::UBIGINT << {PLACE_BITS}) + s.file_row_number::UBIGINT AS place
            FROM {parquet_sql(paths, numbered=True)} AS s JOIN {name}_files AS f USING (filename)
            """
        )

    def _existing(self, kind: Kind, old: Sequence[TablePart]) -> None:
        """Show what identifies the rows the crowd already has."""
        if not old:
            rows = "SELECT 0::UBIGINT AS hi, 0::UBIGINT AS lo, 0 AS occurrence, 0::UBIGINT AS content LIMIT 0"
        elif kind == "posts":
            rows = f"SELECT {KEY}, occurrence, content_lo AS content FROM {parquet_sql(self._paths(old))}"
        else:
            rows = f"""
                SELECT id_hi AS hi, id_lo AS lo, 0 AS occurrence, 0::UBIGINT AS content
                FROM (SELECT {halves("identity", "id")} FROM (
                      SELECT sha256({identity_sql(kind)}) AS identity FROM {parquet_sql(self._paths(old))}))
                """
        self.connection.execute(f"CREATE OR REPLACE VIEW existing AS {rows}")

    def _judge(self, kind: Kind) -> None:
        """Note every row that is no newcomer, and every newcomer that repeats an earlier one."""
        # Only posts can lack an id, and only a post's id can conflict: a second rating is a repetition.
        posts = kind == "posts"
        occurrence = "row_number() OVER (PARTITION BY source, named, hi, lo ORDER BY place)"
        conflict = "named AND content <> coalesce(old_content, first_content)"
        self.connection.execute(
            f"""
            CREATE OR REPLACE TABLE exceptions AS
            WITH fresh AS (
                SELECT source, place, {KEY}, id_hi IS NOT NULL AS named, content_lo AS content
                FROM staged
            ), numbered AS (
                SELECT *, CASE WHEN named THEN 0 ELSE {occurrence if posts else 1} END AS occurrence
                FROM fresh
            ), ranked AS (
                SELECT *, row_number() OVER same AS turn, first_value(content) OVER same AS first_content
                FROM numbered
                WINDOW same AS (PARTITION BY hi, lo, occurrence ORDER BY place)
            ), met AS (
                SELECT ranked.*, existing.hi IS NOT NULL AS known, existing.content AS old_content
                FROM ranked LEFT JOIN existing USING (hi, lo, occurrence)
            ), judged AS (
                SELECT source, place, occurrence, CASE
                    WHEN turn = 1 AND NOT known THEN 'added'
                    WHEN {conflict if posts else False} THEN '{Reason.CONFLICTING_ID}'
                    ELSE '{Reason.DUPLICATE}' END AS verdict
                FROM met
            )
            SELECT * FROM judged WHERE verdict <> 'added' OR occurrence > 1
            """
        )
        self.connection.execute(
            """
            CREATE OR REPLACE VIEW newcomers AS
            SELECT s.*, coalesce(e.occurrence, CASE WHEN s.id_hi IS NULL THEN 1 ELSE 0 END) AS occurrence
            FROM staged AS s LEFT JOIN exceptions AS e USING (place)
            WHERE e.verdict IS NULL OR e.verdict = 'added'
            """
        )

    def _judge_copies(self, old: Sequence[TablePart]) -> None:
        """Note posts that came once with an id and once without: an export and a dump of the same person.

        The n-th post of a source with the same person, place, second and text is the n-th such post of another one.
        """
        columns = "content_hi, content_lo, id_hi IS NOT NULL AS named"
        known = (
            f"SELECT {columns}, id_hi, id_lo, occurrence FROM {parquet_sql(self._paths(old))}" if old else ""
        )
        both = f"SELECT {columns} FROM staged" + (
            f" UNION ALL SELECT {columns} FROM ({known})" if old else ""
        )
        ((kinds,),) = self.connection.sql(f"SELECT count(DISTINCT named) FROM ({both})").fetchall()
        if kinds < 2:
            return
        turn = (
            "CASE WHEN named THEN row_number() OVER (PARTITION BY {} ORDER BY {}) ELSE occurrence END AS turn"
        )
        fresh = turn.format("named, source, content_hi, content_lo", "place")
        stored = turn.format("named, content_hi, content_lo", "id_hi, id_lo")
        # Of the crowd's rows only those that a newcomer could be a copy of: numbering all would take memory for all.
        same = "(content_hi, content_lo) IN (SELECT (content_hi, content_lo) FROM newcomers)"
        existing = (
            f"UNION ALL SELECT content_hi, content_lo, named, {stored}, -1 FROM ({known} WHERE {same})"
            if old
            else ""
        )
        self.connection.execute(
            f"""
            CREATE OR REPLACE TABLE copies AS
            WITH numbered AS (
                SELECT source, place, occurrence, content_hi, content_lo, named, {fresh}
                FROM (SELECT *, id_hi IS NOT NULL AS named FROM newcomers)
            ), all_rows AS (
                SELECT content_hi, content_lo, named, turn, source FROM numbered {existing}
            )
            SELECT DISTINCT n.source, n.place, n.occurrence FROM numbered AS n JOIN all_rows AS a
            ON n.content_hi = a.content_hi AND n.content_lo = a.content_lo AND n.turn = a.turn
               AND n.named <> a.named AND a.source < n.source
            """
        )
        self.connection.execute("DELETE FROM exceptions WHERE place IN (SELECT place FROM copies)")
        self.connection.execute(
            f"INSERT INTO exceptions SELECT source, place, occurrence, '{Reason.DUPLICATE}' FROM copies"
        )

    def _in_order(self, kind: Kind, staged: list[Path]) -> Iterator[pl.DataFrame]:
        """Yield the newcomers, sorted."""
        order = self.folder / STAGING_FOLDER / "order.parquet"
        ends = self._sort(kind, order)
        places = in_pieces(
            self.connection,
            f"""
            SELECT place, file_row_number::UBIGINT AS rank, occurrence
            FROM {parquet_sql([order], numbered=True)} ORDER BY place
            """,
        )
        stored = [name for name in _schema(kind) if name != "occurrence"]
        yield from arrange(staged, Places(places), ends, stored, order.with_name("rows.spill"), self.disk)

    def _sort(self, kind: Kind, path: Path) -> Numbers:
        """Write the places of rows in their final order; return the ranks at which buckets end."""
        order = ", ".join(f'"{name}" NULLS FIRST' for name in (*ORDER[kind], "occurrence", "place"))
        rows = in_pieces(
            self.connection,
            f"SELECT place, occurrence::UINTEGER AS occurrence, bytes FROM newcomers ORDER BY {order}",
        )
        schema = {"place": pl.UInt64(), "occurrence": pl.UInt32()}
        ends: list[Numbers] = []
        filled = 0
        with parquet_sink(path, schema, self.disk, compression="lz4") as sink:
            for piece in rows:
                sizes = piece["bytes"].to_numpy().astype(np.uint64) + np.uint64(ROW_BYTES)
                totals = np.cumsum(np.concatenate(([np.uint64(filled)], sizes)), dtype=np.uint64)
                starts = np.flatnonzero(np.diff(totals // np.uint64(self.bucket_bytes)))
                ends.append((starts + sink.rows).astype(np.uint64))
                filled = int(totals[-1])
                sink.add(piece)
            sink.finish()
        inner = np.concatenate(ends) if ends else np.empty(0, np.uint64)
        return np.append(inner[inner > 0], np.uint64(sink.rows))

    def _row_hashes(self, old: StoredTable) -> tuple[int, int]:
        """Return the table's sums of row hashes, newcomers included."""
        sums = "coalesce(sum(content_hi), 0)::HUGEINT, coalesce(sum(content_lo), 0)::HUGEINT"
        ((hi, lo),) = self.connection.sql(f"SELECT {sums} FROM newcomers").fetchall()
        return (old.row_hashes[0] + hi) % 2**64, (old.row_hashes[1] + lo) % 2**64

    def _set_aside(self, sources: int) -> tuple[Counter[str], ...]:
        found = self.connection.sql(
            "SELECT source, verdict, count(*) FROM exceptions WHERE verdict <> 'added' GROUP BY ALL"
        ).fetchall()
        counts: tuple[Counter[str], ...] = tuple(Counter() for _ in range(sources))
        for source, verdict, count in found:
            counts[source][verdict] = count
        return counts

    def _note_conflicts(self) -> None:
        self.connection.execute(
            'CREATE TABLE IF NOT EXISTS conflicts (file VARCHAR, "row" UBIGINT, reason VARCHAR)'
        )
        self.connection.execute(
            f"""
            INSERT INTO conflicts
            SELECT file, "row", verdict FROM staged JOIN exceptions USING (place)
            WHERE verdict = '{Reason.CONFLICTING_ID}'
            """
        )


def _schema(kind: Kind) -> dict[str, pl.DataType]:
    """Return the columns of a table's parts."""
    all_columns = {**hashed_schema(kind), "occurrence": pl.UInt32()}
    return {name: all_columns[name] for name in (*COLUMNS[kind], *KEPT[kind])}

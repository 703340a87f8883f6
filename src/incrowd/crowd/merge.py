"""Merging: staged rows meet the crowd's own, duplicates fall away, sorted parts come out.

DuckDB does it within a memory limit, spilling to a folder inside the crowd. Three rules decide:

- A row with an id wins over later rows with the same id. If they differ, they are `conflicting_id`.
- Posts without an id are the same if all their columns are, and if they are the n-th such post of their
  source: importing an overlapping export adds nothing, yet who wrote "thanks" twice keeps both.
- "Earlier" means: already in the crowd; then sources by name and hash; then rows in their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa

from incrowd.crowd.database import parquet_sql
from incrowd.crowd.disk import Disk
from incrowd.crowd.manifest import Part
from incrowd.crowd.parts import PARTS_FOLDER, write_parts
from incrowd.crowd.rowhash import HASHES, content_sql, halves, identity_sql
from incrowd.crowd.schema import COLUMNS, Kind, Reason
from incrowd.crowd.staging import Staged

MOST_RUNS = 8
"""A table of this many sorted runs is rewritten as one by the next import."""
VECTOR_ROWS = 2048
"""Rows DuckDB hands over at a time."""

ORDER: dict[Kind, str] = {
    # One community, and one user in it, lie together: measures read them that way.
    "posts": 'community, "user", "time" NULLS FIRST, content_hi, content_lo, occurrence',
    "items": '"user", item',
    "attributes": '"user", attribute, value',
}
KEPT: dict[Kind, tuple[str, ...]] = {
    # Items and attributes are identified by their visible columns; posts need their hashes next time.
    "posts": (*HASHES, "occurrence"),
    "items": (),
    "attributes": (),
}
KEY = "coalesce(id_hi, content_hi) AS hi, coalesce(id_lo, content_lo) AS lo"


@dataclass(frozen=True)
class Merged:
    """A table after the merge."""

    parts: tuple[Part, ...]
    set_aside: tuple[Counter[str], ...]
    """By source: how many rows were duplicates or conflicts."""


@dataclass(frozen=True, kw_only=True)
class Merger:
    """Merges one table after the other."""

    connection: duckdb.DuckDBPyConnection
    folder: Path
    disk: Disk
    run: int

    def merge(self, kind: Kind, staged: Sequence[Staged], old: tuple[Part, ...]) -> Merged:
        """Add staged sources, in order of precedence, to a table made of `old` parts."""
        self._view("staged", [source.rows for source in staged], staged)
        self.connection.execute(f"CREATE OR REPLACE VIEW existing AS {self._existing(kind, old)}")
        self._judge(kind)
        self._note_conflicts()
        kept, rewritten = _kept_and_rewritten(old)
        return Merged(parts=(*kept, *self._write(kind, rewritten)), set_aside=self._set_aside(len(staged)))

    def quarantine(self, staged: Sequence[Staged], old: tuple[Part, ...]) -> tuple[Part, ...]:
        """List the rows that were set aside; call it after the tables are merged."""
        self._view("rejects", [source.rejects for source in staged], staged)
        self._conflicts_table()
        kept, rewritten = _kept_and_rewritten(old)
        rows = """
            SELECT file, "row", reason FROM rejects UNION ALL SELECT file, "row", reason FROM conflicts
            """
        if rewritten:
            rows += f' UNION ALL SELECT file, "row", reason FROM {self._scan(rewritten)}'
        reader = self.connection.sql(f"{rows} ORDER BY ALL").to_arrow_reader(VECTOR_ROWS)
        new = write_parts("quarantine", reader, reader.schema, self.folder, self.disk, run=self.run)
        return (*kept, *new)

    def _view(self, name: str, paths: Sequence[Path], staged: Sequence[Staged]) -> None:
        """Show the staged files of one sort as one table, with each row's source."""
        files = pl.DataFrame(
            {"filename": map(str, paths), "file": [source.record.name for source in staged]}
        ).with_row_index("source")
        self.connection.register("files", files.to_arrow())
        self.connection.execute(f"CREATE OR REPLACE TABLE {name}_files AS SELECT * FROM files")
        self.connection.unregister("files")
        self.connection.execute(
            f"""
            CREATE OR REPLACE VIEW {name} AS
            SELECT s.* EXCLUDE (filename), f.source, f.file
            FROM {parquet_sql(paths, filename=True)} AS s JOIN {name}_files AS f USING (filename)
            """
        )

    def _existing(self, kind: Kind, old: tuple[Part, ...]) -> str:
        """Return SQL for what identifies the rows the crowd already has."""
        if not old:
            return "SELECT 0::UBIGINT AS hi, 0::UBIGINT AS lo, 0 AS occurrence, 0::UBIGINT AS content LIMIT 0"
        return f"SELECT {KEY}, occurrence, content_lo AS content FROM ({self._stored(kind, old)})"

    def _stored(self, kind: Kind, parts: tuple[Part, ...]) -> str:
        """Return SQL for the rows of parts, their hashes computed anew where they were not kept."""
        scan = self._scan(parts)
        columns = ", ".join(f'"{name}"' for name in COLUMNS[kind])
        if KEPT[kind]:
            return f"SELECT {columns}, {', '.join(KEPT[kind])} FROM {scan}"
        return f"""
            SELECT {columns}, {halves("content", "content")}, {halves("identity", "id")},
                   0::UINTEGER AS occurrence
            FROM (SELECT *, sha256({content_sql(kind)}) AS content, sha256({identity_sql(kind)}) AS identity
                  FROM {scan})
            """

    def _scan(self, parts: tuple[Part, ...]) -> str:
        return parquet_sql(self.folder / PARTS_FOLDER / part.file for part in parts)

    def _judge(self, kind: Kind) -> None:
        """Note every row that is no newcomer, and every newcomer that repeats an earlier one."""
        # Only posts can lack an id, and only a post's id can conflict: a second rating is a repetition.
        posts = kind == "posts"
        occurrence = "row_number() OVER (PARTITION BY source, named, hi, lo ORDER BY ordinal)"
        conflict = "named AND content <> coalesce(old_content, first_content)"
        self.connection.execute(
            f"""
            CREATE OR REPLACE TABLE exceptions AS
            WITH fresh AS (
                SELECT source, ordinal, {KEY}, id_hi IS NOT NULL AS named, content_lo AS content
                FROM staged
            ), numbered AS (
                SELECT *, CASE WHEN named THEN 0 ELSE {occurrence if posts else 1} END AS occurrence
                FROM fresh
            ), ranked AS (
                SELECT *, row_number() OVER same AS place, first_value(content) OVER same AS first_content
                FROM numbered
                WINDOW same AS (PARTITION BY hi, lo, occurrence ORDER BY source, ordinal)
            ), met AS (
                SELECT ranked.*, existing.hi IS NOT NULL AS known, existing.content AS old_content
                FROM ranked LEFT JOIN existing USING (hi, lo, occurrence)
            ), judged AS (
                SELECT source, ordinal, occurrence, CASE
                    WHEN place = 1 AND NOT known THEN 'added'
                    WHEN {conflict if posts else False} THEN '{Reason.CONFLICTING_ID}'
                    ELSE '{Reason.DUPLICATE}' END AS verdict
                FROM met
            )
            SELECT * FROM judged WHERE verdict <> 'added' OR occurrence > 1
            """
        )

    def _write(self, kind: Kind, rewritten: tuple[Part, ...]) -> tuple[Part, ...]:
        columns = ", ".join(f's."{name}"' for name in (*COLUMNS[kind], *HASHES))
        rows = f"""
            SELECT {columns},
                   coalesce(e.occurrence, CASE WHEN s.id_hi IS NULL THEN 1 ELSE 0 END)::UINTEGER AS occurrence
            FROM staged AS s LEFT JOIN exceptions AS e ON s.source = e.source AND s.ordinal = e.ordinal
            WHERE e.verdict IS NULL OR e.verdict = 'added'
            """
        if rewritten:
            rows += f" UNION ALL BY NAME {self._stored(kind, rewritten)}"
        ordered = self.connection.sql(f"SELECT * FROM ({rows}) ORDER BY {ORDER[kind]}")
        reader = ordered.to_arrow_reader(VECTOR_ROWS)
        visible = (*COLUMNS[kind], *KEPT[kind])
        schema = pa.schema([field for field in reader.schema if field.name in visible])
        return write_parts(kind, reader, schema, self.folder, self.disk, run=self.run)

    def _set_aside(self, sources: int) -> tuple[Counter[str], ...]:
        found = self.connection.sql(
            "SELECT source, verdict, count(*) FROM exceptions WHERE verdict <> 'added' GROUP BY ALL"
        ).fetchall()
        counts: tuple[Counter[str], ...] = tuple(Counter() for _ in range(sources))
        for source, verdict, count in found:
            counts[source][verdict] = count
        return counts

    def _conflicts_table(self) -> None:
        self.connection.execute(
            'CREATE TABLE IF NOT EXISTS conflicts (file VARCHAR, "row" UBIGINT, reason VARCHAR)'
        )

    def _note_conflicts(self) -> None:
        self._conflicts_table()
        self.connection.execute(
            f"""
            INSERT INTO conflicts
            SELECT file, "row", verdict FROM staged JOIN exceptions USING (source, ordinal)
            WHERE verdict = '{Reason.CONFLICTING_ID}'
            """
        )


def _kept_and_rewritten(old: tuple[Part, ...]) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Keep a table's parts as they are, unless they have become too many sorted runs."""
    return ((), old) if len({part.run for part in old}) >= MOST_RUNS else (old, ())

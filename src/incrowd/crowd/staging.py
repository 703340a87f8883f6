"""Sources on their way into a crowd: read, checked, hashed and written aside, one file after the other.

What makes two rows the same are hashes computed by DuckDB, two 64-bit halves of SHA-256 each. `content` covers a
row's visible columns. `id` is what the source says identifies the row (a post's own id in its community), or what the
table says (one row per user and item); it is null for posts without an id, which are told apart by content and by how
often it occurred before in the same source. NUL separates the columns; validation has removed it from all of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from incrowd.crowd.disk import Disk
from incrowd.crowd.manifest import SourceRecord
from incrowd.crowd.pseudonyms import Pseudonyms
from incrowd.crowd.readers.base import Batch, empty_rejects, empty_rows
from incrowd.crowd.readers.export import OWNER
from incrowd.crowd.readers.rows import DateEvidence, DateOrderNeeded
from incrowd.crowd.schema import COLUMNS, MEANING, Checked, Kind, Reason, check
from incrowd.crowd.sources import Source, described
from incrowd.crowd.tables import Shown, fetched, links_in, parquet_sink, parquet_sql, write_links
from incrowd.errors import Undecided

SIZE: dict[Kind, str] = {"posts": "strlen(text)::UINTEGER", "items": "0", "attributes": "0"}
"""SQL for the bytes of what may be long in a row."""
HASHES = ("content_hi", "content_lo", "id_hi", "id_lo")

_IDENTITY = {
    "posts": "CASE WHEN id IS NOT NULL THEN concat('id', chr(0), community, chr(0), id) END",
    "items": "concat('item', chr(0), \"user\", chr(0), item)",
    "attributes": "concat('attribute', chr(0), \"user\", chr(0), attribute, chr(0), value)",
}


def hashed_schema(kind: Kind) -> dict[str, pl.DataType]:
    """Return the columns :func:`add_hashes` gives."""
    hashes = dict.fromkeys(HASHES, pl.UInt64())
    return {"row": pl.UInt64(), **COLUMNS[kind], "bytes": pl.UInt32(), **hashes}


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


def add_hashes(connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame, kind: Kind) -> pl.DataFrame:
    """Return the rows with `bytes` and :data:`HASHES` in place of the source's id."""
    columns = ", ".join(f'"{name}"' for name in ("row", *COLUMNS[kind]))
    connection.register("batch", Shown(rows))
    try:
        hashed = connection.sql(
            f"""
            SELECT {columns}, {SIZE[kind]} AS bytes,
                   {halves("content", "content")}, {halves("identity", "id")}
            FROM (SELECT *, sha256({content_sql(kind)}) AS content, sha256({identity_sql(kind)}) AS identity
                  FROM batch)
            """
        )
        return fetched(hashed)
    finally:
        connection.unregister("batch")


ROWS_NAME = "rows.parquet"
REJECTS_NAME = "rejects.parquet"
DONE_NAME = "done.json"
RULES = 2
"""Raise when validation changes: what an older release staged is then read anew."""

REJECTS = {"row": pl.UInt64(), "reason": pl.String()}


EXAMPLES = 3
UNDERSTOOD_NAME = "understood.json"
MISREAD = (
    Reason.BAD_JSON,
    Reason.NOT_AN_OBJECT,
    Reason.MISSING_FIELD,
    Reason.WRONG_TYPE,
    Reason.INVALID_UTF8,
    Reason.RAGGED_ROW,
    Reason.NO_AUTHOR,
    Reason.BAD_TIME,
    Reason.BAD_VALUE,
)
"""Reasons that hint at a misunderstanding; deleted accounts, bots and repetitions are part of every dump."""
MOST_MISREAD = 0.05
SHOWN_LETTERS = 60
_NAMES = re.compile(r"(?<![\w/])@[\w.-]+|\b/?u/[\w-]+|[\w.+-]+@[\w-]+\.[\w.]+")


@dataclass(frozen=True, kw_only=True)
class Understood:
    """What a source was taken for, before anything of it is in the crowd."""

    file: str
    format: str
    title: str
    """The format in words."""
    kind: str
    whose: str
    """`own`: one person's export; `chat`: of a chat, only its owner's words; `many`: data about many people."""
    owner: str | None
    columns: dict[str, str]
    """Our column -> the source's."""
    rows: int
    people: int
    first: int | None
    last: int | None
    """Earliest and latest time, UTC seconds; None: no row has one."""
    set_aside: dict[str, int]
    left: int
    """Records of other people, which were not read."""
    skipped: int
    not_read: str
    """What such a file holds besides."""
    examples: list[dict[str, Any]]
    """Up to three rows, other people's names left out."""
    unsure: list[str]
    user_given: bool = False
    user_column_named: bool = False

    def question(self) -> Undecided | None:
        """Return what only a person can decide, if there is anything."""
        misread = sum(self.set_aside.get(reason, 0) for reason in MISREAD)
        if misread > MOST_MISREAD * self.rows and misread < self.rows:
            counts = ", ".join(f"{self.set_aside[r]:,} {MEANING[r]}" for r in MISREAD if r in self.set_aside)
            return Undecided(
                f"{self.file}: {misread:,} of {self.rows:,} rows would be set aside ({counts}). Import the others?",
                "yes",
                ("yes",),
            )
        if self.whose == "many" and self.user_given and self.people > 1 and not self.user_column_named:
            column = self.columns.get("user", "user")
            return Undecided(
                f"{self.file}: you said whose it is, but its column '{column}' names {self.people:,} people. Are these "
                f"the people (user={column}), or is everything by one person (user=-)?",
                "columns",
                (f"user={column}", "user=-"),
            )
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types; the examples, which are people's words, stay out."""
        hidden = ("examples", "user_given", "user_column_named")
        return {name: value for name, value in asdict(self).items() if name not in hidden}


def _shown(row: dict[str, Any], owner: str | None) -> dict[str, Any]:
    """Return a row to be looked at: cut short, and without other people's names."""
    shown = dict(row)
    if shown.get("user") != owner or owner is None:
        shown["user"] = "…"
    if isinstance(shown.get("text"), str):
        text = _NAMES.sub("…", " ".join(shown["text"].split()))
        shown["text"] = text if len(text) <= SHOWN_LETTERS else text[:SHOWN_LETTERS] + "…"
    return shown


@dataclass(frozen=True)
class Staged:
    """One source, ready to be merged."""

    folder: Path
    record: SourceRecord

    @property
    def understood(self) -> Understood:
        """What it was taken for."""
        return Understood(**json.loads((self.folder / UNDERSTOOD_NAME).read_bytes()))

    @property
    def rows(self) -> Path:
        """The checked rows."""
        return self.folder / ROWS_NAME

    @property
    def rejects(self) -> Path:
        """Rows set aside: number and reason."""
        return self.folder / REJECTS_NAME


class RowTally:
    """Counts what a source brings while it is read."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.rows = self.good = self.replaced = self.skipped = 0
        self.reasons: Counter[str] = Counter()
        self.incomplete = False
        self.left = 0
        self.columns: dict[str, str] = {}
        self.notes: tuple[str, ...] = ()
        self.examples: list[dict[str, Any]] = []

    def add(self, batch: Batch, checked: Checked) -> None:
        """Count one batch."""
        self.rows += batch.rows.height + batch.rejects.height
        self.good += checked.rows.height
        self.replaced += batch.replaced + checked.replaced
        self.skipped += batch.skipped
        self.left += batch.left
        self.columns = self.columns or dict(batch.columns)
        self.notes = self.notes or batch.notes
        if len(self.examples) < EXAMPLES:
            self.examples += (
                checked.rows.drop("row", "id", "link", strict=False)
                .head(EXAMPLES - len(self.examples))
                .to_dicts()
            )
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
        try:
            tally = self._read(source, folder)
        except DateOrderNeeded:
            source = decided_dates(source, self.batch_bytes)
            tally = self._read(source, folder)
        record = tally.onto(record)
        about = self._understood(source, tally, folder / ROWS_NAME)
        self.disk.write_whole(folder / UNDERSTOOD_NAME, json.dumps(asdict(about)).encode())
        self.disk.sync_folder(folder)
        self.disk.write_whole(folder / DONE_NAME, json.dumps(asdict(record)).encode())
        return Staged(folder, record)

    def _understood(self, source: Source, tally: RowTally, rows: Path) -> Understood:
        """Say what a source was taken for; people and dates are counted over all of its rows."""
        times = "min(time), max(time)" if tally.kind != "attributes" else "NULL, NULL"
        sql = f'SELECT count(DISTINCT "user"), {times} FROM {parquet_sql([rows])}'
        ((people, first, last),) = self.connection.sql(sql).fetchall()
        about, options = source.about, source.options
        owner = tally.examples[0]["user"] if about.whose != "many" and tally.examples else None
        notes = list(tally.notes)
        if about.whose == "own" and owner == OWNER and options.user is None:
            notes.append(
                f"the file does not say whose it is, so it is kept under the name '{OWNER}': --user NAME"
            )
        if tally.replaced:
            notes.append(
                f"in {tally.replaced:,} rows some letters could not be read, and became \ufffd; if the file is not in "
                "UTF-8, save it as UTF-8 to keep them"
            )
        if options.dates is not None:
            read = {"dmy": "day before month", "mdy": "month before day"}[options.dates]
            notes.append(f"dates were read with the {read}")
        return Understood(
            file=source.name,
            format=source.format,
            title=about.title,
            kind=tally.kind,
            whose=about.whose,
            owner=owner,
            columns=tally.columns or dict(about.columns),
            rows=tally.rows,
            people=people,
            first=first,
            last=last,
            set_aside=dict(sorted(tally.reasons.items())),
            left=tally.left,
            skipped=tally.skipped,
            not_read=about.left,
            examples=[_shown(row, owner) for row in tally.examples],
            unsure=notes,
            user_given=options.user is not None,
            user_column_named="user" in options.columns,
        )

    def _read(self, source: Source, folder: Path) -> RowTally:
        batches = source.batches(self.batch_bytes)
        first = next(batches, Batch(empty_rows("posts"), empty_rejects()))
        # A reader of tables may find out from the columns only what kind of rows it has.
        tally = RowTally(first.kind)
        links: list[pl.DataFrame] = []
        with (
            parquet_sink(folder / ROWS_NAME, hashed_schema(tally.kind), self.disk, compression="lz4") as good,
            parquet_sink(folder / REJECTS_NAME, REJECTS, self.disk, compression="lz4") as bad,
        ):
            for batch in chain([first], batches):
                rows, checked, linked = self._prepare(batch.rows, tally.kind, source)
                links += linked
                tally.add(batch, checked)
                good.add(rows)
                bad.add(pl.concat([batch.rejects, checked.rejects]).sort("row"))
                self.report(tally.rows, source.name)
            good.finish()
            bad.finish()
        if links:
            write_links(folder, self.disk, pl.concat(links))
        return tally

    def _prepare(
        self, rows: pl.DataFrame, kind: Kind, source: Source
    ) -> tuple[pl.DataFrame, Checked, list[pl.DataFrame]]:
        """Check, pseudonymise and hash a batch; of somebody's own export, also keep where the posts are."""
        own_export = source.options.user is not None
        checked = check(rows, kind, now=self.now, allow_bots=own_export)
        named = checked.rows.with_columns(self.pseudonyms.replace(checked.rows["user"]).alias("user"))
        own = kind == "posts" and (own_export or source.about.whose == "own")
        return add_hashes(self.connection, named, kind), checked, [links_in(named)] if own else []


def _folder_name(record: SourceRecord) -> str:
    """Name a source's staging folder after its bytes and the options that decide what is read from them."""
    digest = blake2b(repr((RULES, record.identity)).encode(), digest_size=16)
    return digest.hexdigest()


def decided_dates(source: Source, batch_bytes: int) -> Source:
    """Look through a source until a day above 12 tells the order of its dates; ask if none does."""
    evidence = DateEvidence()
    for _ in source.with_dates(evidence).batches(batch_bytes):
        if evidence.order is not None:
            return source.with_dates(evidence.order)
    raise DateOrderNeeded(source.name)


def _finished(folder: Path) -> SourceRecord | None:
    try:
        if not (folder / UNDERSTOOD_NAME).exists():
            return None
        return SourceRecord(**json.loads((folder / DONE_NAME).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None

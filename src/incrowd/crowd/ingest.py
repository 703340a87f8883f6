"""One import: sources in, a new state of the crowd out, or nothing changed at all.

::

    sources -> staging (one folder per source) -> merge (one table after the other) -> parts -> manifest

Everything before the manifest's rename can be thrown away; the next import does so.
"""

from __future__ import annotations

import errno
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import duckdb

from incrowd.crowd.disk import Disk, disk_full
from incrowd.crowd.manifest import PARTS_FOLDER, STAGING_FOLDER, Manifest, SourceRecord, load, save
from incrowd.crowd.merge import Merger
from incrowd.crowd.pseudonyms import Pseudonyms
from incrowd.crowd.schema import KINDS, MEANING
from incrowd.crowd.sources import Source
from incrowd.crowd.staging import DONE_NAME, MISREAD, Staged, Stager, Understood
from incrowd.crowd.tables import add_links, connect, explained, give_memory_back, parquet_sql
from incrowd.errors import BudgetExceeded, CrowdError, InputError

SPILL_NAME = "spill"
COMMITTING = "committing"
"""Said to whoever follows the progress, right before the new state takes the place of the old."""
MIB = 2**20
LIBRARIES = 160 * MIB
"""What Python and the libraries hold before the first row is read."""
LEAST = 512 * MIB
DATABASE_SHARE = 0.45
"""DuckDB may exceed its limit by a part of it, so it gets less than half of the rest."""
BATCHES_AT_ONCE = 72
"""Parsing, checking, hashing and writing a batch hold it in several forms at once."""
BUCKETS_AT_ONCE = 48
"""A bucket is held unsorted, sorted and being written."""
ROOM_OVER_TEXT = 2.5
"""Rows lie twice on the disk before the import is done, once with hashes; measured: 2.1 bytes for a byte of text."""
LEAST_BATCH, MOST_BATCH = 1 * MIB, 32 * MIB


@dataclass(frozen=True)
class ImportBudget:
    """Bytes for each step."""

    database: int
    """The memory limit of DuckDB."""
    batch: int
    """How much of a source is read at a time."""
    bucket: int
    """How much is sorted at a time."""

    @classmethod
    def of(cls, memory: int) -> ImportBudget:
        """Share out a number of bytes; too few are refused rather than exceeded."""
        if memory < LEAST:
            raise BudgetExceeded(
                f"--memory: an import needs at least {LEAST // MIB} MiB, got {memory / MIB:,.0f} MiB."
            )
        free = memory - LIBRARIES
        batch = min(MOST_BATCH, max(LEAST_BATCH, free // BATCHES_AT_ONCE))
        return cls(database=int(free * DATABASE_SHARE), batch=batch, bucket=free // BUCKETS_AT_ONCE)


Confirm = Callable[[Sequence[Understood]], None]
"""Shown what was understood before anything is changed; it raises to stop the import."""


def stop_at_questions(understood: Sequence[Understood]) -> None:
    """Stop at the first question that only a person can answer."""
    for one in understood:
        question = one.question()
        if question is not None:
            raise question


class Progress(Protocol):
    """Called with work done so far and, where known, the total, and a word on what is going on."""

    def __call__(self, done: float, total: float | None, what: str) -> None:
        """Take note."""
        ...


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """What an import did: totals, and one entry per source."""

    sources: tuple[SourceRecord, ...]
    """Sources that were read, in order of precedence."""
    known: tuple[str, ...]
    """Names of sources whose very bytes were imported before."""
    data_hash: str
    understood: tuple[Understood, ...] = ()
    """What each new source was taken for."""
    people: int = 0
    """Different people in all of them."""

    @property
    def rows(self) -> int:
        """Rows read, good or bad."""
        return sum(source.rows for source in self.sources)

    @property
    def added(self) -> int:
        """Rows the crowd did not have before."""
        return sum(source.added for source in self.sources)

    @property
    def reasons(self) -> Mapping[str, int]:
        """Rows set aside, by reason code."""
        total: Counter[str] = Counter()
        for source in self.sources:
            total.update(source.reasons)
        return dict(sorted(total.items()))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return {
            **self._in_short(),
            "rows": self.rows,
            "added": self.added,
            "reasons": dict(self.reasons),
            "replaced": sum(source.replaced for source in self.sources),
            "known_sources": list(self.known),
            "data_hash": self.data_hash,
            "sources": [asdict(source) for source in self.sources],
            "understood": [one.to_dict() for one in self.understood],
        }

    def _in_short(self) -> dict[str, Any]:
        """Return what was understood of all sources together; one value where they agree, else None."""
        taken = self.understood

        def common(values: list[Any]) -> Any:
            return values[0] if values and all(value == values[0] for value in values) else None

        return {
            "format": common([one.format for one in taken]),
            "kind": common([one.kind for one in taken]),
            "columns": common([one.columns for one in taken]) or {},
            "people": self.people,
            "set_aside": sum(self.reasons.values()),
        }


@dataclass(frozen=True, kw_only=True)
class Import:
    """The state an import starts from and the means it has; the caller holds the lock."""

    folder: Path
    disk: Disk
    manifest: Manifest
    pseudonyms: Pseudonyms
    budget: ImportBudget
    progress: Progress
    confirm: Confirm | None = None
    dry_run: bool = False

    def run(self, sources: Sequence[Source]) -> tuple[Manifest, ImportReport]:
        """Import sources, in order of precedence, and commit."""
        for name in (PARTS_FOLDER, STAGING_FOLDER):
            self.disk.make_folder(self.folder / name)
        self._tidy(self.manifest.files)
        try:
            return self._with_database(sources)
        except Exception as error:
            # Free the disk now if that is possible; if not, the next import will. A failure may come after
            # the commit, so the state is read anew.
            with suppress(OSError, CrowdError):
                self._tidy(self.manifest.files | load(self.folder).files)
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                needed = round(ROOM_OVER_TEXT * sum(source.text_bytes for source in sources))
                raise disk_full(self.folder, needed) from None
            raise

    def _with_database(self, sources: Sequence[Source]) -> tuple[Manifest, ImportReport]:
        spill = self._staging / SPILL_NAME
        connection = connect(self.budget.database, spill)
        try:
            with explained(spill):
                return self._run(sources, connection)
        finally:
            connection.close()
            give_memory_back()

    @property
    def _staging(self) -> Path:
        return self.folder / STAGING_FOLDER

    def _tidy(self, wanted: set[str]) -> None:
        """Remove parts nobody wants and unfinished staging, the remains of earlier or killed imports."""
        for path in (self.folder / PARTS_FOLDER).iterdir():
            if path.name not in wanted:
                self.disk.remove(path)
        for path in self._staging.iterdir():
            if not (path / DONE_NAME).exists():
                self.disk.remove(path)

    def _run(
        self, sources: Sequence[Source], connection: duckdb.DuckDBPyConnection
    ) -> tuple[Manifest, ImportReport]:
        stager = Stager(
            folder=self._staging,
            disk=self.disk,
            pseudonyms=self.pseudonyms,
            connection=connection,
            batch_bytes=self.budget.batch,
            now=int(time.time()),
            report=lambda rows, name: self.progress(rows, None, f"reading {name}"),
        )
        fresh, known = self._unknown(sources, stager)
        staged = [stager.stage(source) for source in fresh]
        understood = tuple(source.understood for source in staged)
        people = _people(staged, understood, connection)
        if self.confirm is not None:
            self.confirm(understood)
        if self.dry_run:
            self._clear_staging()
            found = tuple(source.record for source in staged)
            report = ImportReport(
                sources=found,
                known=known,
                data_hash=self.manifest.data_hash,
                understood=understood,
                people=people,
            )
            return self.manifest, report
        _refuse_if_useless(staged)
        manifest = self.manifest
        records: tuple[SourceRecord, ...] = ()
        if staged:
            merger = Merger(
                connection=connection,
                folder=self.folder,
                disk=self.disk,
                run=manifest.generation + 1,
                bucket_bytes=self.budget.bucket,
            )
            manifest, records = self._merge(staged, merger)
            # Before the commit: an address too many harms nobody, one that is missing would never come.
            add_links(self.folder, self.disk, (source.folder for source in staged))
            self.progress(1, 1, COMMITTING)
            save(manifest, self.folder, self.disk)
        self._clear_staging()
        return manifest, ImportReport(
            sources=records,
            known=known,
            data_hash=manifest.data_hash,
            understood=understood,
            people=people,
        )

    def _unknown(self, sources: Sequence[Source], stager: Stager) -> tuple[list[Source], tuple[str, ...]]:
        """Separate new sources from those imported before or named twice."""
        seen = {record.identity for record in self.manifest.imports}
        fresh: list[Source] = []
        known: list[str] = []
        for source in sources:
            identity = stager.record(source).identity
            if identity in seen:
                known.append(source.name)
            else:
                fresh.append(source)
            seen.add(identity)
        return fresh, tuple(known)

    def _merge(self, staged: Sequence[Staged], merger: Merger) -> tuple[Manifest, tuple[SourceRecord, ...]]:
        tables = dict(self.manifest.tables)
        records: list[SourceRecord] = []
        for kind in KINDS:
            group = [source for source in staged if source.record.kind == kind]
            if not group:
                continue
            self.progress(0, None, f"merging {kind}")
            merged = merger.merge(kind, group, tables[kind])
            tables[kind] = merged.table
            records += [_settled(s.record, aside) for s, aside in zip(group, merged.set_aside, strict=True)]
        tables["quarantine"] = merger.quarantine(staged, tables["quarantine"])
        return self.manifest.next(tables, tuple(records)), tuple(records)

    def _clear_staging(self) -> None:
        # The import is committed: what cannot be removed now is no reason to call it a failure.
        with suppress(OSError):
            for path in self._staging.iterdir():
                self.disk.remove(path)


def _people(
    staged: Sequence[Staged], understood: Sequence[Understood], connection: duckdb.DuckDBPyConnection
) -> int:
    """Count the different people of all sources."""
    if len(staged) < 2:
        return sum(one.people for one in understood)
    users = " UNION ALL ".join(f'SELECT "user" FROM {parquet_sql([source.rows])}' for source in staged)
    ((people,),) = connection.sql(f'SELECT count(DISTINCT "user") FROM ({users})').fetchall()
    return int(people)


def _refuse_if_useless(staged: Sequence[Staged]) -> None:
    """Refuse an import without a single usable row: most likely the columns are mapped wrongly."""
    if not staged or any(source.record.added for source in staged):
        return
    reasons: Counter[str] = Counter()
    for source in staged:
        reasons.update(source.record.reasons)
    counts = ", ".join(f"{count:,} {reason} ({MEANING[reason]})" for reason, count in reasons.most_common())
    names = ", ".join(source.record.name for source in staged)
    advice = " Check --kind, --format and --columns." if set(reasons) & set(MISREAD) else ""
    raise InputError(
        f"{names}: expected at least one usable row, got: {counts or 'no rows at all'}. Nothing was imported.{advice}"
    )


def _settled(record: SourceRecord, set_aside: Counter[str]) -> SourceRecord:
    reasons = Counter(record.reasons) + set_aside
    return replace(record, added=record.added - set_aside.total(), reasons=dict(sorted(reasons.items())))

"""Counting many dump files at once: each worker reads files and counts words, the counts merge as Parquet.

Every file becomes two Parquet parts, written whole or not at all under a name made from its bytes and the
options; running the job again skips the files that have their parts. Files and `out` must lie where all
workers see them. Rows are judged as an import judges them; repeated posts are the import's business, so
give files that do not overlap.

::

    out/parts/<fingerprint>.words.parquet         user, community, word, count
    out/parts/<fingerprint>.identities.parquet    user, community, posts
    out/words.parquet, out/identities.parquet     all files together
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
import polars as pl
from scipy import sparse

from incrowd.crowd import Crowd, readers
from incrowd.crowd.disk import Disk
from incrowd.crowd.pseudonyms import KEY_NAME, Pseudonyms, make_key
from incrowd.crowd.readers.base import Batch, ReadOptions
from incrowd.crowd.row_groups import RowGroups, Schema, group_rows
from incrowd.crowd.schema import check
from incrowd.crowd.sources import require_files
from incrowd.crowd.tables import connect, explained, parquet_sql, quote
from incrowd.engine.checkpoints import fingerprint
from incrowd.engine.local import Engine, Local, Piece, Progress
from incrowd.errors import SchemaError
from incrowd.text.counting import Counts, Dropped, Filters, dropped_table, reasons
from incrowd.text.options import TextOptions
from incrowd.text.tokeniser import Tokeniser

IDENTITY = ["user", "community"]
IDENTITIES = {"user": pl.String(), "community": pl.String(), "posts": pl.Int64()}
WORDS = {"user": pl.String(), "community": pl.String(), "word": pl.String(), "count": pl.Int64()}


@dataclass(frozen=True, kw_only=True)
class CountReport:
    """What came of counting some files."""

    files: int
    posts: int
    """Posts counted."""
    set_aside: int
    """Rows that are nobody's words: deleted, empty, bots, broken."""
    identities: int
    words: int
    """Distinct (identity, word) pairs."""
    words_path: Path
    identities_path: Path

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return {name: str(v) if isinstance(v, Path) else v for name, v in asdict(self).items()}


@dataclass(frozen=True)
class FileTask:
    """One file to read."""

    number: int
    path: Path
    size: int
    changed: int

    @property
    def pairs(self) -> int:
        """Its size in bytes, for the progress bar."""
        return self.size


@dataclass(frozen=True)
class FilePlan:
    """All files of a job."""

    tasks: tuple[FileTask, ...]

    def __iter__(self) -> Iterator[FileTask]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def pairs(self) -> int:
        """Their size in bytes."""
        return sum(task.size for task in self.tasks)


@dataclass(frozen=True, kw_only=True)
class CountJob:
    """How files are counted; opened once a process."""

    folder: Path
    text: TextOptions
    format: str
    read: ReadOptions
    key: bytes | None = field(repr=False)
    now: int
    allow_bots: bool

    def open(self) -> FileCounter:
        """Nothing to prepare: every file has its own vocabulary."""
        return FileCounter(self)

    def parts(self, task: FileTask) -> tuple[Path, Path]:
        """Return where a file's words and identities go; another file or recipe has other names."""
        secret = fingerprint(self.key)  # the key itself must not be guessable from names
        recipe = (self.text.hash, self.format, self.read, secret, self.allow_bots)
        name = fingerprint(*recipe, str(task.path), task.size, task.changed)
        return self.folder / f"{name}.words.parquet", self.folder / f"{name}.identities.parquet"


@dataclass(frozen=True)
class FileCounter:
    """Counts one file after another."""

    job: CountJob
    threads: ClassVar[int | None] = None

    def __call__(self, task: FileTask) -> Piece:
        """Write the file's parts, unless they are there; return how many rows were taken and set aside."""
        words, identities = self.job.parts(task)
        if not (words.exists() and identities.exists()):
            self._count(task, words, identities)
        metadata = pl.read_parquet_metadata(identities)
        return {name: np.array([int(metadata[name])]) for name in ("posts", "set_aside")}

    def _count(self, task: FileTask, words: Path, identities: Path) -> None:
        tokeniser, people, set_aside = Tokeniser(self.job.text), [pl.DataFrame(schema=IDENTITIES)], 0
        with appearing(words, WORDS) as write:
            for batch in readers.detect(task.path, self.job.format).read(task.path, self.job.read):
                rows, rejected = self._judged(batch)
                set_aside += rejected
                people.append(rows.group_by(IDENTITY).agg(pl.len().cast(pl.Int64).alias("posts")))
                write(word_counts(rows, tokeniser))
        found = pl.concat(people).group_by(IDENTITY).agg(pl.col("posts").sum())
        metadata = {"posts": str(found["posts"].sum()), "set_aside": str(set_aside)}
        with appearing(identities, IDENTITIES, metadata) as write:
            write(found)

    def _judged(self, batch: Batch) -> tuple[pl.DataFrame, int]:
        if batch.kind != "posts":
            raise SchemaError(f"counting: expected files of posts, got {batch.kind}. Leave the others out.")
        checked = check(batch.rows, "posts", now=self.job.now, allow_bots=self.job.allow_bots)
        users = Pseudonyms(self.job.key).replace(checked.rows["user"])
        return checked.rows.with_columns(users.alias("user")), len(checked.rejects) + len(batch.rejects)


def count_files(
    files: Sequence[Path | str],
    out: Path | str,
    *,
    text: TextOptions | None = None,
    format: str = "auto",
    read: ReadOptions | None = None,
    key: bytes | None = None,
    allow_bots: bool = False,
    engine: Engine | None = None,
    memory: int = 2**30,
    progress: Progress | None = None,
) -> CountReport:
    """Count the words of every identity in many files, on all workers of an engine.

    `key` turns names into the ids of a crowd with that key; without it names stay as they are.
    """
    out = Path(out)
    (out / "parts").mkdir(parents=True, exist_ok=True)
    plan = FilePlan(tuple(_task(n, path) for n, path in enumerate(sorted(require_files(files)))))
    job = CountJob(
        folder=(out / "parts").absolute(),
        text=text or TextOptions(),
        format=format,
        read=read or ReadOptions(),
        key=key,
        now=int(time.time()),
        allow_bots=allow_bots,
    )
    totals = {"posts": 0, "set_aside": 0}

    def absorb(piece: Piece) -> None:
        for name in totals:
            totals[name] += int(piece[name][0])

    chosen: Engine = engine or Local()
    chosen.run(job, plan, absorb, progress)
    words, identities = zip(*(job.parts(task) for task in plan), strict=True)
    return CountReport(
        files=len(plan),
        words=_add_up(words, out / "words.parquet", [*IDENTITY, "word"], "count", memory),
        identities=_add_up(identities, out / "identities.parquet", IDENTITY, "posts", memory),
        words_path=out / "words.parquet",
        identities_path=out / "identities.parquet",
        **totals,
    )


def naming_key(out: Path | str, crowd: Path | str | None = None) -> bytes | None:
    """Return the key that turns names into ids: a crowd's (None if it keeps names), or the folder's own.

    The folder's is made on first use and readable by its owner alone.
    """
    if crowd is not None:
        return Crowd(crowd).naming().key
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    if not (out / KEY_NAME).exists():
        return make_key(out, Disk())
    return bytes.fromhex((out / KEY_NAME).read_text(encoding="ascii"))


def word_counts(rows: pl.DataFrame, tokeniser: Tokeniser) -> pl.DataFrame:
    """Return user, community, word, count for some posts."""
    tokens = tokeniser.numbers(rows["text"])
    post = np.repeat(np.arange(rows.height), tokens.lengths)
    said = rows.select(IDENTITY)[post].with_columns(pl.Series("number", tokens.numbers, dtype=pl.Int32))
    counted = said.group_by([*IDENTITY, "number"]).agg(pl.len().cast(pl.Int64).alias("count"))
    word = tokeniser.vocabulary().gather(counted["number"]).alias("word")
    return counted.with_columns(word).select(*IDENTITY, "word", "count")


@contextmanager
def appearing(
    path: Path, schema: Schema, metadata: Mapping[str, str] | None = None
) -> Iterator[Callable[[pl.DataFrame], Any]]:
    """Write a Parquet file frame by frame; it appears under its name once it is whole."""
    groups = RowGroups(schema, "zstd", metadata=metadata)
    beside = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        with beside.open("wb") as file:
            yield lambda frame: file.write(groups.group(frame))
            file.write(groups.end())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _task(number: int, path: Path) -> FileTask:
    status = path.stat()
    return FileTask(number, path.absolute(), status.st_size, status.st_mtime_ns)


def _add_up(parts: Iterable[Path], path: Path, keys: list[str], value: str, memory: int) -> int:
    """Add up `value` over equal keys of all parts, spilling to disk beyond `memory`; return the rows left."""
    beside = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    columns = ", ".join(f'"{key}"' for key in keys)
    query = (
        f'SELECT {columns}, sum("{value}")::BIGINT AS "{value}" FROM {parquet_sql(parts)} '
        f"GROUP BY {columns} ORDER BY {columns}"
    )
    try:
        spill = path.parent / ".spill"
        with explained(spill), connect(memory, spill) as database:
            database.execute(f"COPY ({query}) TO {quote(str(beside))} (FORMAT parquet, COMPRESSION zstd)")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return sum(group_rows(path))


# From the Parquet files of :func:`~incrowd.engine.count_files.count_files` to the counts that profiles are made of.


def read_counts(
    folder: Path | str, text: TextOptions | None = None, filters: Filters | None = None
) -> Counts:
    """Return what `count_tokens` would for the posts of all files together; `text` as given to `count_files`."""
    people = pl.read_parquet(Path(folder) / "identities.parquet")
    words = pl.read_parquet(Path(folder) / "words.parquet")
    why = _why_dropped(people, words, filters or Filters())
    kept = people.filter(why.is_null()).sort("community", "user")
    said = words.join(kept.select(IDENTITY).with_row_index("row"), on=IDENTITY)
    vocabulary = said["word"].unique().sort().rename("token")
    column = pl.DataFrame({"word": vocabulary}).with_row_index("column")
    said = said.join(column, on="word").sort("row", "column")
    starts = np.searchsorted(said["row"].to_numpy(), np.arange(len(kept) + 1))
    parts = (said["count"].to_numpy().astype(np.int32), said["column"].to_numpy().astype(np.int32), starts)
    return Counts(
        matrix=sparse.csr_matrix(parts, shape=(len(kept), len(vocabulary))),
        identities=kept,
        vocabulary=vocabulary,
        dropped=dropped_table(people, why),
        options_hash=(text or TextOptions()).hash,
    )


def _why_dropped(people: pl.DataFrame, words: pl.DataFrame, filters: Filters) -> pl.Series:
    speakers = words.select(IDENTITY).unique().with_columns(speaks=pl.lit(True))
    speaks = people.join(speakers, on=IDENTITY, how="left", maintain_order="left")["speaks"]
    silent = pl.when(speaks.is_null()).then(pl.lit(Dropped.EMPTY_PROFILE.value))
    return reasons(people, filters).fill_null(pl.select(silent).to_series())

"""What a job will cost, told from keys, sizes and first rows alone, before anything is imported or compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.crowd import readers
from incrowd.crowd.readers.base import Batch, ReadOptions
from incrowd.crowd.readers.source import extent
from incrowd.crowd.sources import Paths, require_files
from incrowd.crowd.tables import fetched
from incrowd.errors import NotInCrowd

if TYPE_CHECKING:
    import polars as pl

    from incrowd.crowd.store import Crowd

CELL_BYTES = 12
"""A count in a sparse matrix: a 4-byte column and an 8-byte value."""
DOUBT = (0.5, 3.0)
"""Estimates were within these factors of the clock on the crowds they were tried on."""


@dataclass(frozen=True, kw_only=True)
class JobStep:
    """One part of a job."""

    what: str
    rows: int = 0
    """Rows to be read."""
    estimated: bool = False
    """Whether rows and bytes were told from the beginning of a file alone."""
    text_bytes: int = 0
    identities: int = 0
    pairs: int = 0
    """Distances to be computed."""
    item_pairs: int = 0
    """Pairs of people whose items are to be compared."""
    seconds: float | None = None
    """Measured some other way; else the rates decide."""


@dataclass(frozen=True, kw_only=True)
class MachineRates:
    """How fast this machine works on this data."""

    text_bytes: float
    """Bytes of text cleaned and counted a second."""
    pairs: float
    """Distances a second."""
    cells: float
    """Different words an identity has, for each byte it wrote."""
    item_pairs: float = 1e8
    """Pairs of people whose items are compared a second; from a run on 88,162 baskets, two cores."""


TYPICAL = MachineRates(text_bytes=2e7, pairs=2e5, cells=0.1)
"""For a crowd without texts to try."""


@dataclass(frozen=True, kw_only=True)
class JobCost:
    """The cost of a job: counts of a crowd are exact; memory, time and the rows of a long file are estimates."""

    command: str
    steps: tuple[JobStep, ...]
    rates: MachineRates
    disk_bytes: int = 0
    """What it will add to the disk."""

    @property
    def memory(self) -> int:
        """Bytes for the profiles of the largest step; a --memory budget still holds for everything else."""
        most = max((step.text_bytes for step in self.steps), default=0)
        return int(most * self.rates.cells * CELL_BYTES)

    @property
    def seconds(self) -> float:
        """Best guess of the time."""
        return sum(map(self.seconds_of, self.steps))

    @property
    def worst(self) -> JobStep | None:
        """The step that takes longest."""
        return max(self.steps, key=self.seconds_of, default=None)

    def seconds_of(self, step: JobStep) -> float:
        """Return the best guess of one step's time."""
        if step.seconds is not None:
            return step.seconds
        text, pairs = step.text_bytes / self.rates.text_bytes, step.pairs / self.rates.pairs
        return text + pairs + step.item_pairs / self.rates.item_pairs

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        steps = [{**asdict(step), "seconds": self.seconds_of(step)} for step in self.steps]
        worst = max(steps, key=lambda step: step["seconds"], default=None)
        return {
            "command": self.command,
            "rows": sum(step.rows for step in self.steps),
            "rows_estimated": any(step.estimated for step in self.steps),
            "identities": sum(step.identities for step in self.steps),
            "pairs": sum(step.pairs + step.item_pairs for step in self.steps),
            "text_bytes": sum(step.text_bytes for step in self.steps),
            "memory": self.memory,
            "disk_bytes": self.disk_bytes,
            "seconds": {
                "low": self.seconds * DOUBT[0],
                "likely": self.seconds,
                "high": self.seconds * DOUBT[1],
            },
            "worst": worst,
            "steps": steps,
        }


@dataclass(frozen=True)
class Planner:
    """Counts what the communities of a crowd would cost."""

    crowd: Crowd
    sizes: pl.DataFrame
    """Columns community, rows, bytes, identities, largest community first."""
    min_posts: int

    @classmethod
    def of(cls, crowd: Crowd, min_posts: int = 1) -> Planner:
        """Read the sizes of all communities; only keys are read, no text."""
        with crowd.connect() as connection:
            counted = connection.sql(
                f"""
                SELECT community, sum(n)::BIGINT AS rows, sum(size)::BIGINT AS bytes,
                       count(*) FILTER (n >= {int(min_posts)}) AS identities
                FROM (SELECT community, "user", count(*) AS n, sum(bytes) AS size
                      FROM {crowd.source_sql("posts", extra=("bytes",))} GROUP BY ALL)
                GROUP BY community ORDER BY rows DESC, community
                """
            )
            sizes = fetched(counted)
        return cls(crowd, sizes, min_posts)

    def reading(self, communities: Iterable[str] | None = None) -> list[JobStep]:
        """Return the cost of cleaning and counting communities' texts."""
        names = self.sizes["community"].to_list() if communities is None else list(dict.fromkeys(communities))
        steps = []
        for name in names:
            rows, size, identities = self._size(name)
            steps.append(JobStep(what=f"read {name}", rows=rows, text_bytes=size, identities=identities))
        return steps

    def within(self, communities: Iterable[str] | None = None) -> list[JobStep]:
        """Return the cost of comparing everybody with everybody in each community."""
        names = self.sizes["community"].to_list() if communities is None else list(communities)
        counts = [(name, self._size(name)[2]) for name in names]
        return [JobStep(what=f"compare within {name}", pairs=n * (n - 1) // 2) for name, n in counts]

    def between(self, source: str, target: str) -> JobStep:
        """Return the cost of comparing everybody in one community with everybody in another."""
        pairs = self._size(source)[2] * self._size(target)[2]
        return JobStep(what=f"compare {source} with {target}", pairs=pairs)

    def one_against(self, communities: Sequence[str]) -> list[JobStep]:
        """Return the cost of comparing one person with everybody in some communities."""
        return [
            JobStep(what=f"compare one person with {name}", pairs=self._size(name)[2]) for name in communities
        ]

    def sample_against(
        self, communities: Sequence[str], sampled: Callable[[int], int | None]
    ) -> list[JobStep]:
        """Return the cost of comparing a sample of each community, so many of its people, with everybody in it."""
        steps = []
        for name in communities:
            people = self._size(name)[2]
            some = sampled(people)
            pairs = people * (people - 1) // 2 if some is None else some * people
            who = "everybody" if some is None else f"{some:,} people"
            steps.append(JobStep(what=f"compare {who} with everybody in {name}", pairs=pairs))
        return steps

    def communities_of(self, user: str) -> list[str]:
        """Return where a person posts, most first."""
        posts = self.crowd.posts(user=user).group_by("community").len()
        return posts.sort(["len", "community"], descending=[True, False]).collect()["community"].to_list()

    def items(self) -> JobStep:
        """Return the cost of comparing everybody's items with everybody's."""
        with self.crowd.connect() as connection:
            ((rows, users),) = connection.sql('SELECT count(*), count(DISTINCT "user") FROM items').fetchall()
        pairs = users * (users - 1) // 2
        return JobStep(what="compare everybody's items", rows=rows, identities=users, item_pairs=pairs)

    def _size(self, community: str) -> tuple[int, int, int]:
        found = self.sizes.filter(self.sizes["community"] == community)
        if found.is_empty():
            raise NotInCrowd(f"{self.crowd.path}: no community '{community}' in this crowd.")
        _, rows, size, identities = found.row(0)
        return rows, size, identities


SAMPLE_BYTES = 4 * 2**20
IMPORT_OVER_READING = 3.5
"""Checking, hashing, sorting and writing take this many times as long as parsing does."""
STORED_OVER_TEXT = 0.55
"""A crowd's size for each byte of its sources, unpacked."""


def plan_import(paths: Paths, format: str, options: ReadOptions) -> list[JobStep]:
    """Return the cost of importing files, one step per file."""
    return [_step(path, format, options) for path in require_files(paths)]


def _step(path: Path, format: str, options: ReadOptions) -> JobStep:
    reader = readers.detect(path, format)
    sampling = ReadOptions(
        kind=options.kind,
        columns=options.columns,
        community=options.community,
        user=options.user,
        dates=options.dates or "dmy",  # either order gives as many rows
        batch_bytes=SAMPLE_BYTES,
        keep_complete=True,
    )
    start = time.perf_counter()
    rows, whole = _first(reader.read(path, sampling))
    seconds = time.perf_counter() - start
    size, times = extent(path, SAMPLE_BYTES)
    if whole:
        times = 1.0  # a sample that is the whole file needs no estimate
    return JobStep(
        what=f"import {path.name}",
        rows=round(rows * times),
        text_bytes=round(size),
        estimated=not whole,
        seconds=seconds * times * IMPORT_OVER_READING,
    )


def _first(batches: Iterator[Batch]) -> tuple[int, bool]:
    """Return the rows of the first batch, and whether there is no other."""
    first = next(batches, None)
    if first is None:
        return 0, True
    return first.rows.height + first.rejects.height, next(batches, None) is None

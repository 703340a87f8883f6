"""How many people would fit on average: the paper's Monte-Carlo ground truth, computed exactly.

The pairs are counted once (:mod:`overlaps`); any number of knowledge levels is then a weighted sum of the
same histograms. Processor and graphics card count the same integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln

from incrowd.distances.all_pairs import Threads
from incrowd.engine.local import RowRange, RowRanges
from incrowd.errors import InputError, MissingExtra
from incrowd.measures.microdata.definition import Floats, Ints, known_sizes
from incrowd.measures.microdata.overlaps import (
    OverlapHistograms,
    Postings,
    Progress,
    batches,
    clean,
    histograms,
    postings,
)
from incrowd.measures.microdata.spec import Knowledge

if TYPE_CHECKING:
    from incrowd.engine.local import Engine, Piece

Device = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Marks:
    """Ratings or dates that have to agree: one row a property, aligned with the entries of a table."""

    profiles: NDArray[np.float32]
    crowd: NDArray[np.float32]
    within: tuple[float, ...]


@dataclass(frozen=True)
class Levels:
    """The knowledge levels of every profile size: sizes[starts[n]:starts[n + 1]] and their weights."""

    starts: Ints
    sizes: Ints
    weights: Floats
    wrong: int


def levels(profile_sizes: NDArray[np.int64], knowledge: Knowledge) -> Levels:
    """Tabulate the adversary's knowledge for the profile sizes that occur."""
    largest = int(profile_sizes.max(initial=0))
    lengths = np.zeros(largest + 2, dtype=np.int64)
    sizes, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
    for n in np.unique(profile_sizes):
        size, weight = known_sizes(int(n), knowledge)
        lengths[n + 1] = len(size)
        sizes.append(size)
        weights.append(weight)
    return Levels(np.cumsum(lengths), np.concatenate(sizes), np.concatenate(weights), knowledge.wrong)


def log_factorials(largest: int) -> Floats:
    """Return log(0!), log(1!), ..., log(largest!)."""
    return np.asarray(gammaln(np.arange(largest + 1) + 1.0))


def weigh(overlap: OverlapHistograms, knowledge: Knowledge) -> Floats:
    """Return the expected number of fitting people a histogram stands for, one a profile."""
    from incrowd.measures.microdata import overlaps_cpu as cpu

    sizes = np.diff(overlap.starts) - 1
    table = levels(sizes, knowledge)
    out = np.empty(len(sizes))
    cpu.weigh(overlap.starts, overlap.counts, table.starts, table.sizes, table.weights, table.wrong,
              log_factorials(int(sizes.max(initial=0))), out)  # fmt: skip
    return out


def leave_out_self(overlap: OverlapHistograms) -> OverlapHistograms:
    """Take each profile itself out of its histogram: it shares all of its items with itself."""
    counts = overlap.counts.copy()
    last = overlap.starts[1:] - 1
    if not np.all(counts[last]):
        raise InputError(
            "profiles: expected rows of the crowd, got one that nobody in the crowd has; use inside=False"
        )
    counts[last] -= 1
    return OverlapHistograms(overlap.starts, counts)


def expected_others(
    profiles: sparse.csr_matrix,
    crowd: sparse.csr_matrix,
    knowledge: Knowledge | Sequence[Knowledge],
    *,
    inside: bool = True,
    marks: Marks | None = None,
    memory: int = 2**30,
    device: Device = "cpu",
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Floats:
    """Return E|AS| - 1: how many *other* people fit on average what the adversary knows of each profile.

    Exact. Range 0 to the size of the crowd; higher is safer; E|AS| itself is one more. One row a knowledge
    level if several are given. `inside`: the profiles are rows of the crowd (and do not count as their own
    company); False for people outside it. `marks`: ratings or dates that have to agree as well. `engine`:
    where ranges of profiles are counted; None: the cores of this machine.
    """
    asked = [knowledge] if isinstance(knowledge, Knowledge) else list(knowledge)
    profiles = clean(profiles)
    if device == "gpu":
        if marks is not None:
            raise InputError("device: expected 'cpu' for an adversary who knows ratings or dates, got 'gpu'")
        out = _gpu().expected_others(profiles, clean(crowd), asked, inside=inside, progress=progress)
    else:
        job = OverlapJob(profiles, crowd, tuple(asked), inside, marks)
        out = _run(job, RowRanges.of(batches(profiles, memory), crowd.shape[0]), engine, progress)
    return np.asarray(out[0] if isinstance(knowledge, Knowledge) else out)


@dataclass(frozen=True)
class OverlapJob:
    """Everybody's expected crowd, for an engine: laid out once a process, then counted range by range."""

    profiles: sparse.csr_matrix
    crowd: sparse.csr_matrix
    asked: tuple[Knowledge, ...]
    inside: bool
    marks: Marks | None

    def open(self) -> OverlapCounter:
        """Lay the crowd out for counting."""
        return OverlapCounter(self, postings(self.crowd, None if self.marks is None else self.marks.crowd))


@dataclass(frozen=True)
class OverlapCounter:
    """Counts one range of profiles after another."""

    job: OverlapJob
    laid: Postings
    threads: ClassVar[int | None] = 1
    """Counting a range uses all cores already."""

    def __call__(self, part: RowRange) -> Piece:
        """Return the expected number of others: one row a knowledge level, one column a profile."""
        counted = self._histograms(part.rows)
        kept = leave_out_self(counted) if self.job.inside else counted
        return {
            "rows": np.arange(part.start, part.stop),
            "others": np.array([weigh(kept, one) for one in self.job.asked]).T,
        }

    def _histograms(self, rows: slice) -> OverlapHistograms:
        profiles, marks = self.job.profiles, self.job.marks
        if marks is None:
            return histograms(profiles[rows], self.laid)
        entries = slice(profiles.indptr[rows.start], profiles.indptr[rows.stop])
        return histograms(profiles[rows], self.laid, marks=marks.profiles[:, entries], within=marks.within)


def _run(job: OverlapJob, plan: RowRanges, engine: Engine | None, progress: Progress | None) -> Floats:
    out = np.empty((len(job.asked), job.profiles.shape[0]))

    def absorb(piece: Piece) -> None:
        out[:, piece["rows"]] = piece["others"].T

    (engine or Threads()).run(job, plan, absorb, progress)  # type: ignore[arg-type]
    return out


def _gpu() -> Any:
    try:
        import cupy  # noqa: F401
    except ImportError:
        raise MissingExtra("counting on a graphics card", "gpu") from None
    from incrowd.measures.microdata import overlaps_gpu

    return overlaps_gpu

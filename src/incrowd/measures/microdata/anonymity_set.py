"""How many people would fit on average: the paper's Monte-Carlo ground truth, computed exactly.

The pairs are counted once (:mod:`overlaps`); any number of knowledge levels is then a weighted sum of the
same histograms. Processor and graphics card count the same integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from incrowd.distances.all_pairs import Threads
from incrowd.engine.local import Engine, Piece, RowRange, RowRanges
from incrowd.errors import InputError, MissingExtra
from incrowd.measures.microdata.definition import (
    Floats,
    Ints,
    fit_weights,
    known_sizes,
    levels,
    log_factorials,
)
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

Device = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Marks:
    """Ratings or dates that have to agree: one row per property, aligned with the entries of a table."""

    profiles: NDArray[np.float32]
    crowd: NDArray[np.float32]
    within: tuple[float, ...]


def weigh(overlap: OverlapHistograms, knowledge: Knowledge) -> Floats:
    """Return the expected number of fitting people a histogram stands for, one a profile."""
    from incrowd.measures.microdata import kernels as cpu  # Numba takes a third of a second to load

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

    Exact. Range 0 to the size of the crowd; higher is safer; E|AS| itself is one more. One row per knowledge
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
        """Return the expected number of others: one row per knowledge level, one column per profile."""
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


# How many others fit a handful of profiles, in plain NumPy.
#
# Setting the compiled kernels up takes about a second, which is worth it for a whole crowd and not for one person.
# The overlaps are the same integers; the weights are those of :mod:`definition`.


def few_others(
    profiles: sparse.csr_matrix,
    crowd: sparse.csr_matrix,
    asked: Sequence[Knowledge],
    marks: Marks | None = None,
) -> Floats:
    """Return what :func:`anonymity_set.expected_others` does for members of the crowd: one row per knowledge."""
    crowd = clean(crowd)
    found = np.empty((len(asked), profiles.shape[0]))
    for row, size in enumerate(np.diff(profiles.indptr).tolist()):
        counts = np.bincount(_overlaps(profiles, row, crowd, marks), minlength=size + 1)
        counts[size] -= 1  # oneself
        for number, knowledge in enumerate(asked):
            found[number, row] = counts @ fit_weights(size, knowledge)
    return found


def _overlaps(profiles: sparse.csr_matrix, row: int, crowd: sparse.csr_matrix, marks: Marks | None) -> Ints:
    """Return how many of a profile's items each person of the crowd shares."""
    own = slice(profiles.indptr[row], profiles.indptr[row + 1])
    person, place, entry = _shared(profiles.indices[own], crowd)
    if marks is not None:
        agrees = np.ones(len(entry), bool)
        for known, seen, within in zip(marks.profiles[:, own], marks.crowd, marks.within, strict=True):
            # What the person has not rated nobody can know: it agrees. A rating against none does not.
            value = known[place]
            agrees &= np.isnan(value) | (np.abs(seen[entry] - value) <= np.float32(within))
        person = person[agrees]
    return np.bincount(person, minlength=crowd.shape[0])


def few_rarest_first(
    profiles: sparse.csr_matrix, crowd: sparse.csr_matrix, asked: Sequence[Knowledge]
) -> Floats:
    """Return what :func:`adversaries.rarest_first` does: one row per knowledge."""
    crowd = clean(crowd)
    popularity = np.bincount(crowd.indices, minlength=crowd.shape[1])
    found = np.empty((len(asked), profiles.shape[0]))
    for row in range(profiles.shape[0]):
        items = np.sort(profiles.indices[profiles.indptr[row] : profiles.indptr[row + 1]])
        others = _having_the_first(items[np.argsort(popularity[items], kind="stable")], crowd) - 1
        for number, knowledge in enumerate(asked):
            sizes, weights = known_sizes(len(items), knowledge)
            found[number, row] = weights @ others[sizes]
    return found


def _having_the_first(ordered: Ints, crowd: sparse.csr_matrix) -> Ints:
    """Return how many people have all of the first 0, 1, 2, ... of some items."""
    person, place, _ = _shared(ordered, crowd)
    order = np.lexsort((place, person))
    person, place = person[order], place[order]
    before = np.arange(len(person)) - np.searchsorted(person, person)
    # Nothing is missing before an entry exactly if it is its person's place-th.
    unbroken = np.bincount(person[place == before], minlength=crowd.shape[0])
    return np.cumsum(np.bincount(unbroken, minlength=len(ordered) + 1)[::-1])[::-1]


def _shared(items: Ints, crowd: sparse.csr_matrix) -> tuple[Ints, Ints, Ints]:
    """Return who has one of the items, the item's place in the list, and the crowd's entry that says so."""
    place = np.full(crowd.shape[1], -1, np.int64)
    place[items] = np.arange(len(items))
    entry = np.flatnonzero(place[crowd.indices] >= 0)
    person = np.searchsorted(crowd.indptr, entry, side="right") - 1
    return person, place[crowd.indices[entry]], entry


# The paper's simulation, readable: draw what the adversary knows, count who fits, average.
#
# The closed form replaces it; it stays as the cross-check.


@dataclass(frozen=True)
class Simulation:
    """What a number of simulated attacks on one profile gave."""

    mean: float
    """Average number of people who fit, the attacked one included if in the crowd."""
    standard_error: float
    found: float
    """Average of 1/|AS|."""
    alone: float
    """Share of the attacks that left one person."""
    rounds: int


def simulate(
    profile: sparse.csr_matrix,
    crowd: sparse.csr_matrix,
    knowledge: Knowledge,
    *,
    rounds: int = 10_000,
    seed: int = 0,
) -> Simulation:
    """Attack one row `rounds` times: sample its items, count the profiles of the crowd that have them all.

    All rounds of a batch are one matrix product: samples times (item, person), equal to the sample's size.
    """
    items = clean(profile).indices
    has = crowd[:, items].toarray().astype(np.float32).T
    rng = np.random.default_rng(seed)
    sizes, weights = known_sizes(len(items), knowledge)
    amounts = rng.choice(sizes, size=rounds, p=weights)
    fitting = np.empty(rounds)
    for start in range(0, rounds, 512):
        batch = amounts[start : start + 512]
        order = np.argsort(rng.random((len(batch), len(items))), axis=1)
        samples = np.zeros((len(batch), len(items)), dtype=np.float32)
        np.put_along_axis(samples, order, (np.arange(len(items)) < batch[:, None]).astype(np.float32), axis=1)
        fitting[start : start + 512] = ((samples @ has) >= batch[:, None] - knowledge.wrong).sum(axis=1)
    error = float(fitting.std(ddof=1) / np.sqrt(rounds))
    with np.errstate(divide="ignore"):  # an outsider may fit nobody
        return Simulation(
            float(fitting.mean()), error, float((1 / fitting).mean()), float((fitting == 1).mean()), rounds
        )

"""How many people would fit on average: the paper's ground truth, computed exactly; and stronger adversaries.

The pairs are counted once (:mod:`overlaps`); any number of knowledge levels is then a weighted sum of the
same histograms. Processor and graphics card count the same integers.

Others also know ratings or dates, know a person's rarest items, or err and still win. The first two are exact, too. The
last scores every profile against what it believes and accepts the best if it stands out (after Narayanan and
Shmatikov 2008); how often that finds somebody is simulated, with an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from incrowd.arrays import Floats, Ints
from incrowd.distances.all_pairs import Threads
from incrowd.engine.local import Engine, Piece, RowRange, RowRanges
from incrowd.errors import InputError, MissingExtra
from incrowd.measures.microdata.definition import fit_weights, known_sizes, levels, log_factorials
from incrowd.measures.microdata.overlaps import (
    OverlapHistograms,
    Postings,
    Progress,
    batches,
    clean,
    histograms,
    in_threads,
    postings,
    shares_of,
)
from incrowd.measures.microdata.set_sizes import bernstein_reach
from incrowd.measures.microdata.spec import Adversary, Knowledge
from incrowd.measures.microdata.table import ItemTable, entries_of

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


def others_against(
    table: ItemTable,
    adversary: Adversary,
    rows: NDArray[np.int64] | None = None,
    *,
    memory: int = 2**30,
    progress: Progress | None = None,
) -> Floats:
    """Return how many other people fit on average what this adversary knows of each person: exact."""
    rows = np.arange(table.matrix.shape[0]) if rows is None else np.asarray(rows)
    profiles = table.matrix[rows]
    if adversary.rarest_first:
        return rarest_first(profiles, table.matrix, adversary.knowledge)
    marks, within = table.marks(adversary.matching)
    if marks is None:
        return expected_others(profiles, table.matrix, adversary.knowledge, memory=memory, progress=progress)
    if not table.has(adversary.matching):
        raise InputError(
            f"adversary '{adversary.name}': the crowd holds no {adversary.matching.words}; choose another"
        )
    known = Marks(marks[:, entries_of(table.matrix, rows)], marks, within)
    return expected_others(
        profiles, table.matrix, adversary.knowledge, marks=known, memory=memory, progress=progress
    )


def rarest_first(
    profiles: sparse.csr_matrix, crowd: sparse.csr_matrix, knowledge: Knowledge, *, inside: bool = True
) -> Floats:
    """Return how many others have a person's s rarest items, averaged over what s the adversary may know.

    Items of equal popularity come in the crowd's own order.
    """
    from incrowd.measures.microdata import kernels as cpu  # Numba takes a third of a second to load

    profiles, crowd = clean(profiles), clean(crowd)
    columns = sparse.csc_matrix(crowd)
    popularity = np.diff(columns.indptr)
    # Within each row the rarest item first.
    row = np.repeat(np.arange(profiles.shape[0]), np.diff(profiles.indptr))
    order = np.lexsort((profiles.indices, popularity[profiles.indices], row))
    table = levels(np.diff(profiles.indptr).astype(np.int64), knowledge)
    out = np.zeros(profiles.shape[0])
    indptr = profiles.indptr.astype(np.int64)
    fixed = (
        indptr, profiles.indices[order].astype(np.int32), columns.indptr.astype(np.int64),
        columns.indices.astype(np.int32), table.starts, table.sizes, table.weights,
        crowd.shape[0], inside, out,
    )  # fmt: skip
    in_threads(lambda part: cpu.rarest_first(part, *fixed), shares_of(np.diff(indptr)))
    return out


@dataclass(frozen=True, kw_only=True)
class ScoringAttack:
    """Somebody who scores all profiles against what they believe, and accepts a clear winner."""

    knowledge: Knowledge = field(default_factory=Knowledge)
    wrong_items: int = 1
    """Items believed to be yours that are not, drawn by popularity."""
    clear: float = 1.5
    """The winner must lead the second by this many standard deviations of all scores."""
    use_ratings: bool = False
    rating_scale: float = 1.5
    use_dates: bool = False
    day_scale: float = 30.0
    rounds: int = 200
    seed: int = 0

    @property
    def words(self) -> str:
        """The adversary in plain words."""
        wrong = f"{self.wrong_items} wrong one" + ("s" if self.wrong_items != 1 else "")
        extra = " and ratings" * self.use_ratings + " and dates" * self.use_dates
        return f"{self.knowledge.words} (with {wrong}){extra}, and accepts only a clear match"


@dataclass(frozen=True)
class AttackRates:
    """How the attack ended, for each person: shares of the rounds, adding up to 1."""

    found: Floats
    mistaken: Floats
    """Somebody else was accepted."""
    undecided: Floats
    reach: Floats
    """Half width of the 95 % interval of `found`."""


def scoring_attack(
    table: ItemTable, attack: ScoringAttack, rows: NDArray[np.int64] | None = None
) -> AttackRates:
    """Attack each person `rounds` times and count how often the right profile is the clear winner.

    Score of a profile: sum over believed items it has of 1/log(1 + popularity), times how near ratings
    (exp(-difference/scale)) and dates come, if known. Undecided if the lead is not clear.
    """
    from incrowd.measures.microdata import kernels as cpu  # Numba takes a third of a second to load

    rows = np.arange(table.matrix.shape[0]) if rows is None else np.asarray(rows, dtype=np.int64)
    matrix = clean(table.matrix)
    # Each entry carries its place in the row order, where its rating and date are found.
    places = sparse.csr_matrix(
        (np.arange(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape
    ).tocsc()
    popularity = np.diff(places.indptr)
    marks, scales = _marks(table, attack)
    known = levels(np.diff(matrix.indptr).astype(np.int64), attack.knowledge)
    counts = np.zeros((len(rows), 3))
    fixed = (
        rows, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32),
        places.indptr.astype(np.int64), places.indices.astype(np.int32), places.data.astype(np.int64),
        marks, scales, 1.0 / np.log1p(popularity), np.cumsum(popularity / popularity.sum()),
        known.starts, known.sizes, known.weights,
        attack.wrong_items, attack.clear, attack.rounds, attack.seed, counts,
    )  # fmt: skip
    in_threads(lambda part: cpu.scoring_attack(part, *fixed), shares_of(np.diff(matrix.indptr)[rows], rows=4))
    found, mistaken, undecided = (counts / attack.rounds).T
    spread = attack.rounds / max(attack.rounds - 1, 1)  # as from a sample
    reach = np.array([bernstein_reach(share * (1 - share) * spread, attack.rounds) for share in found])
    return AttackRates(found, mistaken, undecided, reach)


def _marks(table: ItemTable, attack: ScoringAttack) -> tuple[NDArray[np.float32], Floats]:
    """Return the ratings and dates the attack uses, and how far apart counts as near."""
    all_marks = [
        (table.ratings, attack.rating_scale, attack.use_ratings),
        (table.days, attack.day_scale, attack.use_dates),
    ]
    used = [(values, scale) for values, scale, use in all_marks if use]
    rows = np.array([values for values, _ in used], dtype=np.float32).reshape(len(used), table.matrix.nnz)
    return rows, np.array([scale for _, scale in used], dtype=np.float64)

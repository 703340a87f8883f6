"""Stronger adversaries: who also know ratings or dates, who know your rarest items, who err and still win.

The first two are exact. The last scores every profile against what it believes and accepts the best if it
stands out (after Narayanan and Shmatikov 2008); how often that finds you is simulated, with an interval.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from incrowd.errors import InputError
from incrowd.measures.microdata.anonymity_set import Marks, expected_others
from incrowd.measures.microdata.definition import Floats, levels
from incrowd.measures.microdata.overlaps import Progress, clean, in_threads, shares_of
from incrowd.measures.microdata.set_sizes import bernstein_reach
from incrowd.measures.microdata.spec import Adversary, Knowledge
from incrowd.measures.microdata.table import ItemTable, entries_of


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

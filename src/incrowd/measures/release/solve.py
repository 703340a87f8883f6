"""Measuring q: bound, reduce, count exactly within a budget, and say which of these it was.

Bounds need no counting and are quick to compute and to check:

- upper: q is at most the number of holders of the least common value (LCV);
- lower: q is at least the *local bound*: for every user and each value they list, the number of users who
  list that value too and nothing that this user does not list.

Both are proved in NOTES.md. The local bound is at least `p_min`, the older certificate, and no withholding of
values can lower it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import BudgetExceeded
from incrowd.measures.release.definition import SOLVERS, Component, Count, compile_solver, count_groups
from incrowd.measures.release.patterns import (
    HolderIndex,
    Holders,
    PatternCounts,
    connected,
    pack,
    parts_with_places,
    redundant,
)
from incrowd.measures.release.spec import Budget, Deadline, Method, PartMeasurement, QMeasurement

COMPARISONS, LOADED_COMPARISONS = 10**6, 20_000
"""Patterns squared times values up to which the readable version is quick enough; fewer if the compiler is loaded."""


def least_common(patterns: PatternCounts) -> int:
    """LCV: how many users list the rarest released value. q is at most this."""
    return int(patterns.supports.min())


def only_value(patterns: PatternCounts) -> NDArray[np.int64]:
    """p_i: how many users list value i and no other released value."""
    return patterns.holders_by_value[1]


def p_min(patterns: PatternCounts) -> int:
    """Return the smallest p_i. q is at least this."""
    return int(only_value(patterns).min())


def local_counts(patterns: PatternCounts) -> NDArray[np.int64]:
    """Table [pattern, value]: users who list the value and nothing outside the pattern; -1 off the pattern.

    A user of the pattern accounts for the answer with probability at most one over the smallest entry of
    their row. This is the readable version: patterns squared in memory.
    """
    table = patterns.table
    outside = table.astype(np.int64) @ ~table.T  # [x, P]: values of x that P has not
    within = (outside == 0).T.astype(np.int64)  # [P, x]: x lists nothing outside P
    counts = within @ (patterns.weights[:, None] * table)
    return np.where(table, counts, -1)


def local_bound(patterns: PatternCounts, deadline: Deadline | None = None) -> int:
    """Return the smallest local count of anybody. q is at least this, whatever is withheld in addition."""
    single = p_min(patterns)
    if single > 0:
        # Somebody lists only the value with the smallest p_i, and their local count is p_i.
        return single
    limit = LOADED_COMPARISONS if "numba" in sys.modules else COMPARISONS
    if len(patterns.weights) ** 2 * len(patterns.values) <= limit:
        counts = local_counts(patterns)
        return int(counts[counts >= 0].min())
    from incrowd.measures.release.kernels import compile_local, smallest_local_count

    deadline = deadline or Deadline(math.inf)
    with deadline.not_counting():
        compile_local()
    with deadline.watch(math.inf) as stop:
        return smallest_local_count(patterns.masks, patterns.weights, len(patterns.values), 1, stop)


# Measuring q: reduce, bound, count exactly within a budget, and say which of these it was.

PARTING_SECONDS = 80e-9
"""What absorbing and parting takes a cell of the table, patterns by values; a rough figure."""
PART_SECONDS = 100e-6
"""What looking at one connected part takes at least."""
DECIDED_VALUES = 128
"""With more values than this, groups are not counted once q is known without."""


def measure_q(
    holders: Holders | PatternCounts | HolderIndex,
    *,
    budget: Budget = Budget(),  # noqa: B008  a frozen value
    threshold: int | None = None,
    posteriors: bool = False,
) -> QMeasurement:
    """Measure how sure this answer could make somebody.

    Parameters
    ----------
    holders
        Value -> the users who list it; or these users already grouped (`PatternCounts`) or indexed.
    budget
        Time and memory for exact counting. Where it ends the result is an interval, never a guess.
        Loading the solvers, once a process, comes on top; `warm_up` does that beforehand.
    threshold
        Stop as soon as q is proved to be at least this; the method is then "certified".
    posteriors
        Also return each user's probability of being tied to the answer (where everything was counted).

    Examples
    --------
    >>> measured = measure_q({"Avatar": ["A", "C", "D"], "Titanic": ["A", "B", "D"], "Terminator": ["B", "C"]})
    >>> measured.n, measured.m, str(measured.q), str(measured.method)
    (5, 3, '5/3', 'exact')
    """
    started = monotonic()
    deadline = Deadline.within(budget.seconds)
    source = (
        holders if isinstance(holders, PatternCounts | HolderIndex) else HolderIndex.from_holders(holders)
    )
    patterns = source if isinstance(source, PatternCounts) else source.patterns()
    _check_size(patterns, budget)
    if not patterns.values:
        pieces = []
    elif not posteriors and _not_worth_parting(patterns, deadline):
        pieces = [_Piece.whole(patterns, np.arange(len(patterns.values)))]
    else:
        pieces = _counted(_pieces(patterns, deadline), deadline, budget.memory, threshold)
    method, n, q, interval = _conclude(pieces, threshold)
    named = _posteriors(patterns, source, pieces) if posteriors and n is not None else None
    return QMeasurement(
        method=method,
        n=n,
        m=None if n is None else int(n / q) if q else 0,
        q=q,
        interval=interval,
        lcv=least_common(patterns) if pieces else None,
        p_min=p_min(patterns) if pieces else None,
        users=patterns.users,
        values=len(patterns.values),
        parts=tuple(piece.measurement() for piece in pieces),
        posteriors=named,
        seconds=monotonic() - started - deadline.set_aside,
        budget=budget,
    )


def warm_up() -> None:
    """Compile everything, so that the first real question finds it ready."""
    from incrowd.measures.release.kernels import compile_greedy_release, compile_local, compile_tally

    for solver in SOLVERS:
        compile_solver(solver)
    compile_local()
    compile_tally()
    compile_greedy_release()


def _not_worth_parting(patterns: PatternCounts, deadline: Deadline) -> bool:
    """Say whether q is known already, or the table so large that taking it apart would pass the budget."""
    if len(patterns.values) > DECIDED_VALUES and least_common(patterns) == 1:
        # Among many values one with a single holder: q is 1, whatever n may be.
        return True
    return PARTING_SECONDS * patterns.cells > deadline.left


@dataclass(frozen=True, eq=False, kw_only=True)
class _Piece:
    """One connected part on its way: bounds first, then perhaps the exact count."""

    places: NDArray[np.int64]
    part: Component
    at_least: Fraction
    at_most: Fraction
    count: Count | None = None

    @classmethod
    def whole(cls, patterns: PatternCounts, places: NDArray[np.int64]) -> _Piece:
        """Everything as one part, with the bounds that take no time."""
        low, high = max(1, p_min(patterns)), least_common(patterns)
        return cls(places=places, part=Component(patterns), at_least=Fraction(low), at_most=Fraction(high))

    @classmethod
    def bounded(cls, places: NDArray[np.int64], patterns: PatternCounts, deadline: Deadline) -> _Piece:
        part = Component(patterns)
        if len(places) == 1:  # any one holder accounts for a single value
            users = patterns.users
            count = Count(groups=users, each=(1,), solver="single value")
            return cls(
                places=places, part=part, at_least=Fraction(users), at_most=Fraction(users), count=count
            )
        low = 1 if deadline.passed else local_bound(patterns, deadline)
        high = least_common(patterns)
        return cls(places=places, part=part, at_least=Fraction(low), at_most=Fraction(high))

    def counted(self, count: Count) -> _Piece:
        q = Fraction(count.groups, max(count.each))
        return _Piece(places=self.places, part=self.part, at_least=q, at_most=q, count=count)

    def measurement(self) -> PartMeasurement:
        return PartMeasurement(
            values=self.part.values,
            users=self.part.patterns.users,
            at_least=self.at_least,
            at_most=self.at_most,
            solver=self.count.solver if self.count else "",
        )


def _check_size(patterns: PatternCounts, budget: Budget) -> None:
    needed = 8 * len(patterns.weights) * len(patterns.values)
    if needed > budget.memory:
        raise BudgetExceeded(
            f"measuring q: {len(patterns.weights)} patterns of {len(patterns.values)} values need about "
            f"{needed >> 20} MiB, the budget is {budget.memory >> 20} MiB; "
            "withhold rare values first, or give more memory"
        )


def _pieces(patterns: PatternCounts, deadline: Deadline) -> list[_Piece]:
    kept = np.flatnonzero(~redundant(patterns))
    smaller = patterns.select(kept)
    part_of = connected(smaller)
    if PART_SECONDS * (part_of.max() + 1) > deadline.left:
        return [_Piece.whole(smaller, kept)]
    pieces = parts_with_places(smaller, part_of)
    return [_Piece.bounded(kept[places], part, deadline) for places, part in pieces]


def _counted(pieces: list[_Piece], deadline: Deadline, memory: int, threshold: int | None) -> list[_Piece]:
    """Count each part that is not certified already, small ones first."""
    done = list(pieces)
    low, high = _bounds(pieces)
    for i in sorted(range(len(pieces)), key=lambda i: pieces[i].part.values):
        piece = pieces[i]
        if deadline.passed:
            break
        if piece.count is None and (threshold is None or piece.at_least < threshold):
            # Where q is known already, n alone is not worth an open-ended search.
            count = count_groups(piece.part, deadline, memory, persist=low != high)
            done[i] = piece.counted(count) if count else piece
            low, high = _bounds(done)
    return done


def _bounds(pieces: Sequence[_Piece]) -> tuple[Fraction, Fraction]:
    """Parts are independent: q is the smallest q of a part."""
    return min(piece.at_least for piece in pieces), min(piece.at_most for piece in pieces)


def _conclude(
    pieces: Sequence[_Piece], threshold: int | None
) -> tuple[Method, int | None, Fraction | None, tuple[Fraction, Fraction] | None]:
    """Parts are independent: n multiplies."""
    if not pieces:
        return Method.NOTHING, 0, None, None
    counts = [piece.count for piece in pieces]
    n = prod(count.groups for count in counts if count) if all(counts) else None
    low, high = _bounds(pieces)
    if low == high:
        return Method.EXACT, n, low, None
    enough = threshold is not None and low >= threshold
    return Method.CERTIFIED if enough else Method.INTERVAL, n, None, (low, high)


def _posteriors(
    patterns: PatternCounts, source: PatternCounts | HolderIndex, pieces: Sequence[_Piece]
) -> Mapping[Any, Fraction]:
    """Share of the minimal groups that hold each user; 0 for users of absorbed values alone."""
    of_row = [Fraction(0)] * len(patterns.weights)
    for piece in pieces:
        if piece.count is not None:
            rows = {mask.tobytes(): row for row, mask in enumerate(piece.part.patterns.masks)}
            projected = patterns.table[:, piece.places]
            for row in np.flatnonzero(projected.any(axis=1)).tolist():
                each = piece.count.each[rows[pack(projected[row : row + 1])[0].tobytes()]]
                of_row[row] = Fraction(each, piece.count.groups)
    if isinstance(source, PatternCounts) or source.names is None:
        held = [np.flatnonzero(line).tolist() for line in patterns.table]
        return {tuple(patterns.values[i] for i in places): of_row[row] for row, places in enumerate(held)}
    row_of = {mask.tobytes(): row for row, mask in enumerate(patterns.masks)}
    masks = source.masks(range(len(source.values)))
    return {name: of_row[row_of[mask.tobytes()]] for name, mask in zip(source.names, masks, strict=True)}

"""What q is, written so that it can be checked by eye: the reference for every fast solver.

A response releases values; each value has its holders. A group of people *accounts for* the response if it
holds every value; it is minimal if nobody can be left out. With n minimal groups, and m of them holding the
most frequent person, q = n/m: an adversary who takes every minimal group for equally likely ties that person
to the answer with probability 1/q (paper 001, sections VI and VII; q is a heuristic posterior).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.release.patterns import PatternCounts, Sweep, plan
from incrowd.measures.release.spec import Deadline

Group = frozenset[Hashable]


def minimal_groups(holders: Mapping[Hashable, Iterable[Hashable]]) -> list[Group]:
    """List the minimal groups straight from the definition: try every set of people.

    >>> sorted("".join(sorted(g)) for g in minimal_groups({"Avatar": "ACD", "Titanic": "ABD", "Terminator": "BC"}))
    ['AB', 'AC', 'BC', 'BD', 'CD']
    """
    clauses = [frozenset(users) for users in holders.values()]
    everybody = sorted(frozenset().union(*clauses), key=str)

    def accounts(group: Group) -> bool:
        return all(group & clause for clause in clauses)

    sets = (frozenset(some) for size in range(len(everybody) + 1) for some in combinations(everybody, size))
    return [
        group for group in sets if group and accounts(group) and not any(accounts(group - {u}) for u in group)
    ]


def q_from_groups(groups: Sequence[Group]) -> tuple[int, int, Fraction | None]:
    """Return n, m and q = n/m. Nothing released: no group, and q is undefined (None)."""
    occurrences: dict[Hashable, int] = {}
    for group in groups:
        for user in group:
            occurrences[user] = occurrences.get(user, 0) + 1
    m = max(occurrences.values(), default=0)
    return len(groups), m, Fraction(len(groups), m) if m else None


def multiply_and_absorb(clauses: Iterable[int], limit: float = float("inf")) -> list[int] | None:
    """Multiply out a product of sums and absorb, clause by clause: the paper's own way.

    Clauses and terms are bit masks of literals. A term that already hits the clause stays; any other is
    multiplied with each literal of the clause and kept unless a term that stayed is contained in it. (Two
    of the multiplied terms never contain each other.) None after `limit` comparisons.

    >>> multiply_and_absorb([0b1101, 0b1011, 0b0110])
    [3, 10, 5, 6, 12]
    """
    terms = [0]
    compared = 0
    for clause in sorted(clauses, key=int.bit_count):
        stay = [term for term in terms if term & clause]
        wider = [term | literal for term in terms if not term & clause for literal in _literals(clause)]
        compared += len(stay) * len(wider) + len(wider)
        if compared > limit:
            return None
        terms = stay + [term for term in wider if not any(kept & term == kept for kept in stay)]
    return terms


def _literals(clause: int) -> list[int]:
    literals = []
    while clause:
        literals.append(clause & -clause)
        clause &= clause - 1
    return literals


# Counting the minimal groups of one connected part: five exact solvers and which of them to try when.
#
# - products: multiply out and absorb, in plain Python: tiny parts, nothing to compile; - sum: 3^k terms for
# k values, however many users (sums.py); - sweep: 3^w cells for w values open at a time, however many values
# (sums.py); - enumeration: one step for each choice of patterns (searches.py), a short one before anything
# slow; - diagram: a decision diagram of all minimal groups (searches.py).
#
# All give the same integers. The cost of the second and third is known beforehand, so they are only started
# if they fit; the last two are tried with the time that is left.

SECONDS_PER_STEP = 4e-9
"""Of the solvers whose cost is known beforehand; a rough figure, the clock decides."""
QUICK_SECONDS = 0.01
"""A sum this quick is not worth comparing with a sweep."""
PRODUCT_PATTERNS, PRODUCT_COMPARISONS = 24, 50_000
"""Limits of multiplying out in plain Python: a few milliseconds, less than loading the compiler takes."""
LOADED_COMPARISONS = 1_000
"""The same limit once the compiler is loaded anyway."""
CALL_SECONDS = 20e-6
"""What a step of the sweep takes besides, for each prime."""
PASS_SECONDS = 20e-9
"""What going once over the sweep's table takes a cell, without a look at the clock."""
NODES_A_SECOND = 2e6
"""Nodes of a diagram to make room for, so that this takes a fifth of the time that is left at most."""
SHORT_STEPS = 20_000
"""Of a search that is tried before anything slow: a few milliseconds."""
WIDEST = 16
"""The most values open at a time for which a sweep is planned."""
SUM_BYTES = 250
"""Memory of the sum for each of the 2^k patterns."""
Residues = tuple[NDArray[np.uint64], NDArray[np.uint64]]


@dataclass(frozen=True, kw_only=True)
class Count:
    """How many minimal groups there are, and how many hold one given user of each pattern."""

    groups: int
    each: tuple[int, ...]
    solver: str


@dataclass(frozen=True, eq=False)
class Component:
    """A connected part of a response, with what the solvers need to know of it."""

    patterns: PatternCounts
    _plan: list[Sweep | None] = field(default_factory=list)
    """The order of the sweep, once it has been looked for."""

    @cached_property
    def masks(self) -> list[int]:
        """The patterns as integers."""
        return self.patterns.integers()

    @property
    def values(self) -> int:
        """How many values it has."""
        return len(self.patterns.values)

    @cached_property
    def bits(self) -> int:
        """Enough for the number of minimal groups: a choice of one holder per value, or of at most one user per
        pattern, determines the group.
        """
        by_value = np.log2(self.patterns.supports).sum()
        by_pattern = np.log2(self.patterns.weights + 1.0).sum()
        return int(min(by_value, by_pattern) * (1 + 1e-9)) + 2  # rounding of the logarithms has room

    @cached_property
    def lanes(self) -> int:
        """How many primes the compiled solvers count modulo, in whole batches."""
        return 4 * (self.bits // 104 + 1)

    @property
    def joining_seconds(self) -> float:
        """What making integers of the counts modulo primes is expected to take."""
        return (len(self.masks) + 50) * self.lanes * (80e-9 + 2e-9 * self.lanes)

    def planned(self, deadline: Deadline) -> Sweep | None:
        """Return an order for the sweep and the diagram; None if too many values would be open, or no time."""
        if not self._plan:
            starts, half = 6 if len(self.masks) <= 100 else 2, deadline.left / 2
            self._plan.append(plan(self.masks, self.values, WIDEST, starts, lambda: deadline.left < half))
        return self._plan[0]

    @property
    def sum_seconds(self) -> float:
        """What the sum over value states is expected to take."""
        k = self.values
        return 3.0**k * (k * k / 6 + 12) * self.lanes * SECONDS_PER_STEP if k <= 20 else math.inf

    def sweep_seconds(self, plan: Sweep) -> float:
        """What the frontier sweep is expected to take."""
        return self.lanes * (4 * plan.cost * SECONDS_PER_STEP + len(plan.steps) * CALL_SECONDS)


def count_groups(part: Component, deadline: Deadline, memory: int, *, persist: bool = True) -> Count | None:
    """Count exactly with whatever solver fits the time and memory; None if none does.

    Without `persist` only solvers that are known to be quick or to fit are tried.
    """
    for solver in _worth_trying(part, deadline, persist):
        counted = count_with(solver, part, deadline, memory)
        if counted is not None or deadline.passed:
            return counted
    return None


def _worth_trying(part: Component, deadline: Deadline, persist: bool) -> Iterator[str]:
    yield "products"
    if part.sum_seconds > min(QUICK_SECONDS, deadline.left):
        yield "short enumeration"
        plan = part.planned(deadline)
        if plan and part.sweep_seconds(plan) < min(part.sum_seconds, deadline.left):
            yield "sweep"
    if part.sum_seconds < deadline.left:
        yield "sum"
    if persist:
        yield "enumeration"
        yield "diagram"


def count_with(solver: str, part: Component, deadline: Deadline, memory: int) -> Count | None:
    """Count with one named solver; None if it did not get through."""
    with deadline.not_counting():
        compile_solver(solver)
    return SOLVERS[solver](part, deadline, memory)


@cache
def compile_solver(solver: str) -> None:
    """Run a solver on a tiny case, so that its code is compiled (or read from the cache) beforehand."""
    two_values = Component(PatternCounts.from_counts({0b01: 2, 0b10: 2, 0b11: 1}))
    SOLVERS[solver](two_values, Deadline(math.inf), 2**30)


def _products(part: Component, deadline: Deadline, memory: int) -> Count | None:
    if len(part.masks) > PRODUCT_PATTERNS:
        return None
    clauses = [sum(1 << row for row in np.flatnonzero(column).tolist()) for column in part.patterns.table.T]
    limit = LOADED_COMPARISONS if "numba" in sys.modules else PRODUCT_COMPARISONS
    terms = multiply_and_absorb(clauses, limit=limit)
    if terms is None:
        return None
    weights = part.patterns.weights.tolist()
    rows = [[row for row in range(len(weights)) if term >> row & 1] for term in terms]
    sizes = [math.prod(weights[row] for row in term) for term in rows]
    each = [0] * len(weights)
    for term, size in zip(rows, sizes, strict=True):
        for row in term:
            each[row] += size // weights[row]
    return Count(groups=sum(sizes), each=tuple(each), solver="products")


def _sum(part: Component, deadline: Deadline, memory: int) -> Count | None:
    from incrowd.measures.release.sums import count_by_sum

    if part.values > 20 or 2.0**part.values * SUM_BYTES > memory:
        return None
    with deadline.watch(part.sum_seconds) as stop:
        count = partial(count_by_sum, part.masks, part.patterns.weights, part.values, stop=stop)
        return _from_residues(part, "sum", count, deadline)


def _sweep(part: Component, deadline: Deadline, memory: int) -> Count | None:
    from incrowd.measures.release.sums import CELL_BYTES, count_by_sweep

    plan = part.planned(deadline)
    if plan is None or plan.cells * CELL_BYTES > memory:
        return None
    with deadline.watch(part.sweep_seconds(plan), early=3.0**plan.width * PASS_SECONDS) as stop:
        count = partial(count_by_sweep, plan, part.masks, part.patterns.weights, stop=stop)
        return _from_residues(part, "sweep", count, deadline)


def _enumeration(part: Component, deadline: Deadline, memory: int, steps: int = 2**62) -> Count | None:
    from incrowd.measures.release.searches import count_by_enumeration

    patterns = part.patterns
    with deadline.watch(steps * 1e-6, share=0.5) as stop:
        rows = (patterns.masks, patterns.table, patterns.weights)
        count = partial(count_by_enumeration, *rows, stop=stop, steps=steps)
        return _from_residues(part, "enumeration", count, deadline)


def _short_enumeration(part: Component, deadline: Deadline, memory: int) -> Count | None:
    return _enumeration(part, deadline, memory, steps=SHORT_STEPS)


def _diagram(part: Component, deadline: Deadline, memory: int) -> Count | None:
    from incrowd.measures.release.searches import BYTES_PER_NODE, count_by_diagram

    # Variables in the order of a sweep: a diagram is narrow where few values are open.
    plan = part.planned(deadline)
    rows = np.array([step.pattern for step in plan.steps] if plan else range(len(part.masks)))
    table, weights = part.patterns.table[rows], part.patterns.weights[rows]
    for nodes in (2**14, 2**18, 2**22, 2**25):
        allowed = int(min(nodes, memory // BYTES_PER_NODE, deadline.left * NODES_A_SECOND + 100))
        with deadline.watch(math.inf) as stop:
            count = partial(count_by_diagram, table, weights, stop=stop, nodes=allowed)
            found = _from_residues(part, "diagram", count, deadline)
        if found is not None:
            each = np.empty(len(rows), dtype=object)
            each[rows] = found.each
            return Count(groups=found.groups, each=tuple(each), solver="diagram")
        if allowed < nodes or deadline.passed:
            return None
    return None


SOLVERS: dict[str, Callable[[Component, Deadline, int], Count | None]] = {
    "products": _products,
    "sum": _sum,
    "sweep": _sweep,
    "short enumeration": _short_enumeration,
    "enumeration": _enumeration,
    "diagram": _diagram,
}


def _from_residues(
    part: Component, solver: str, count: Callable[[NDArray[np.uint64]], Residues | None], deadline: Deadline
) -> Count | None:
    from incrowd.measures.release.sums import combine, lanes, primes_for

    if part.joining_seconds > deadline.left:
        return None
    moduli = primes_for(part.bits)
    residues = count(lanes(moduli))
    if residues is None:
        return None
    integers = combine(np.hstack(residues), moduli, deadline)
    return Count(groups=integers[0], each=tuple(integers[1:]), solver=solver) if integers else None

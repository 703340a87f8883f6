"""What q is, written so that it can be checked by eye: the reference for every fast solver.

A response releases values; each value has its holders. A group of people *accounts for* the response if it
holds every value; it is minimal if nobody can be left out. With n minimal groups, and m of them holding the
most frequent person, q = n/m: an adversary who takes every minimal group for equally likely ties that person
to the answer with probability 1/q (paper 001, sections VI and VII; q is a heuristic posterior).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

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

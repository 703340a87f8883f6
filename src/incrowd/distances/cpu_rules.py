"""How each metric maps onto the CPU kernel's loops. Plain numbers, readable without Numba."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Term(IntEnum):
    """What a shared word adds to a pair's sum."""

    ENTROPY = 0
    """(p+q) log2(p+q) − p log2 p − q log2 q"""
    PRODUCT = 1
    """p q"""
    OVERLAP = 2
    """min(p, q)"""


class Shape(IntEnum):
    """How the sum becomes a distance; mass is half of what both rows sum to."""

    ROOT_OF_REST = 0
    """sqrt(mass − sum)"""
    REST = 1
    """mass − sum"""
    ANGLE = 2
    """arccos(sum) / π"""


class Formula(IntEnum):
    """The formula for one pair in double precision."""

    JENSEN_SHANNON = 0
    TOTAL_VARIATION = 1
    HELLINGER = 2
    ANGULAR = 3


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One metric, for the loops."""

    formula: Formula
    term: Term
    shape: Shape
    small: float
    """Distances below this are computed again; above it an error of 3e-7 in the sum is within tolerance."""
    root: bool = False
    """Work on square roots of the values."""
    unit_length: bool = False
    """Work on rows of length 1."""


RULES = {
    "jensen-shannon": Rule(
        formula=Formula.JENSEN_SHANNON, term=Term.ENTROPY, shape=Shape.ROOT_OF_REST, small=0.3
    ),
    "total-variation": Rule(formula=Formula.TOTAL_VARIATION, term=Term.OVERLAP, shape=Shape.REST, small=0.0),
    "hellinger": Rule(
        formula=Formula.HELLINGER, term=Term.PRODUCT, shape=Shape.ROOT_OF_REST, small=0.3, root=True
    ),
    "angular-cosine": Rule(
        formula=Formula.ANGULAR, term=Term.PRODUCT, shape=Shape.ANGLE, small=0.05, unit_length=True
    ),
}

"""In which order to take the patterns so that few values are open at a time.

A value is open from the first to the last pattern that holds it. The frontier method (frontier.py) keeps a
table of 3^(open values) numbers, so the order decides what can be counted. Finding the best order is
NP-hard (it is the pathwidth of the graph of values); the greedy one here closes, at each step, the value
that leaves the fewest values open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Step:
    """Use one pattern: first open the values it brings in, then close those that no later pattern holds."""

    opens: tuple[int, ...]
    pattern: int
    closes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One sweep over all patterns."""

    steps: tuple[Step, ...]
    width: int
    """The most values open at a time."""
    cost: float
    """Table cells touched, in all."""
    cells: float
    """Table cells in memory: the table, its derivatives, and what the way back needs."""


def plan(
    masks: list[int],
    values: int,
    widest: float = math.inf,
    starts: int = 6,
    late: Callable[[], bool] = lambda: False,
) -> Plan | None:
    """Return the cheapest of a few greedy sweeps over patterns given as bit masks.

    None if all of them keep more than `widest` values open at a time, which is found out early, or if it got
    late before one was found.
    """
    neighbours = [0] * values
    for mask in masks:
        if late():
            return None
        for value in bits(mask):
            neighbours[value] |= mask
    by_degree = sorted(range(values), key=lambda value: (neighbours[value].bit_count(), value))
    sweeps = (_closing_order(neighbours, first, widest, late) for first in by_degree[:starts])
    return min(
        (_lay_out(masks, order) for order in sweeps if order), key=lambda found: found.cost, default=None
    )


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the set bits."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _closing_order(
    neighbours: list[int], first: int, widest: float, late: Callable[[], bool]
) -> list[int] | None:
    left = (1 << len(neighbours)) - 1
    order, opened, value = [], 0, first
    while True:
        order.append(value)
        if (opened | neighbours[value]).bit_count() > widest or late():
            return None
        left &= ~(1 << value)
        if not left:
            return order
        opened = (opened | neighbours[value]) & left
        value = min(bits(opened or left), key=lambda v: (((opened | neighbours[v]) & left).bit_count(), v))


def _lay_out(masks: list[int], order: list[int]) -> Plan:
    """Sort the patterns by the value they help to close, and count what the sweep costs."""
    sequence = _sequence(masks, order)
    last = {value: place for place, pattern in enumerate(sequence) for value in bits(masks[pattern])}
    opened: set[int] = set()
    steps, width, cost, saved = [], 0, 0.0, 0.0
    for place, pattern in enumerate(sequence):
        values = set(bits(masks[pattern]))
        opens = sorted(values - opened)
        opened |= values
        closes = sorted(value for value in values if last[value] == place)
        width = max(width, len(opened))
        cost += 3.0 ** len(opened)
        saved += 3.0 ** len(opened) if closes else 0
        opened.difference_update(closes)
        steps.append(Step(opens=tuple(opens), pattern=pattern, closes=tuple(closes)))
    return Plan(steps=tuple(steps), width=width, cost=cost, cells=saved + 2 * 3.0**width)


def _sequence(masks: list[int], order: list[int]) -> list[int]:
    place_of = {value: place for place, value in enumerate(order)}
    first_closed: list[list[int]] = [[] for _ in order]
    for pattern, mask in enumerate(masks):
        first_closed[min(place_of[value] for value in bits(mask))].append(pattern)
    sequence: list[int] = []
    opened = 0
    for now in first_closed:
        # Patterns that open few values go first: small tables as long as possible.
        now.sort(key=lambda pattern: ((masks[pattern] & ~opened).bit_count(), masks[pattern]))
        sequence += now
        for pattern in now:
            opened |= masks[pattern]
    return sequence

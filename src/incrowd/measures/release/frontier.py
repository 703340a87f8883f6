"""The frontier sweep: exact counts of many values, as long as few of them are open at a time.

Patterns are used one after another. Each open value is *unhit* (0), *marked* (1: hit by exactly one chosen
user, who owns it as a private value) or *hit* (2: covered, unmarked). Choosing a user of pattern P sends
every unhit value of P to marked or hit, leaves hit values hit, must not touch a marked one, and has to mark
at least one. The signs of an inclusion-exclusion over the marks make every minimal group count once
(NOTES.md), so a table of 3^(open values) numbers is all there is to remember; it never depends on the number
of users. One sweep back over the same steps gives the groups that hold each user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.measures.release.modular import Lanes, montgomery, reduce_word
from incrowd.measures.release.patterns import Sweep, bits

UNHIT, MARKED, HIT = 0, 1, 2
LANES = 4
CELL_BYTES = 4 * LANES
FEW_MOVES = 3**6
"""Of a step, up to which they are kept for the next batch of primes."""
Table = NDArray[np.uint32]


def count_by_sweep(
    plan: Sweep, masks: list[int], weights: NDArray[np.int64], primes: Lanes, stop: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
    """Count modulo each prime: all minimal groups, and those that hold one given user of each pattern."""
    totals = np.zeros((len(primes), 1), dtype=np.uint64)
    each = np.zeros((len(primes), len(masks)), dtype=np.uint64)
    moves: dict[int, _Moves] = {}
    for first in range(0, len(primes), LANES):
        # A short last batch repeats its prime; the result of the repeats is not read.
        batch = primes[np.minimum(np.arange(first, first + LANES), len(primes) - 1)]
        sweep = _Sweep.start(plan, masks, weights, batch, stop, moves)
        total = sweep.forward()
        if total is None:
            return None
        shares = sweep.backward()
        if shares is None:
            return None
        some = slice(first, first + LANES)
        totals[some, 0], each[some] = total[: len(totals[some])], shares.T[: len(each[some])]
    return totals, each


@dataclass
class _Sweep:
    """One batch of primes on its way through the plan."""

    plan: Sweep
    masks: list[int]
    factors: Lanes
    """-w(P) in Montgomery form, by pattern and lane."""
    primes: Lanes
    stop: NDArray[np.int64]
    table: Table
    moves: dict[int, _Moves]
    """Of steps with few moves, for all batches."""
    open: list[int]
    """The open values; the place in this list is the base-3 digit of the table's index."""
    saved: list[tuple[list[int], Table]]

    @classmethod
    def start(
        cls,
        plan: Sweep,
        masks: list[int],
        weights: NDArray[np.int64],
        primes: Lanes,
        stop: NDArray[np.int64],
        moves: dict[int, _Moves],
    ) -> _Sweep:
        factors = primes[:, 0] - montgomery(weights, primes)
        table = np.zeros((3**plan.width, LANES), dtype=np.uint32)
        table[0] = 1
        return cls(plan, masks, factors, primes, stop, table, moves, [], [])

    def forward(self) -> NDArray[np.uint64] | None:
        for step in self.plan.steps:
            for value in step.opens:
                cells = 3 ** len(self.open)
                self.table[cells : 3 * cells] = 0
                self.open.append(value)
            moves = self._moves(step.pattern)
            if not _choose(self.table, moves, self.factors[step.pattern], self.primes, self.stop):
                return None
            if step.closes:
                self.saved.append((list(self.open), self.table[: 3 ** len(self.open)].copy()))
            for value in step.closes:
                _close(self.table, 3 ** self.open.index(value), 3 ** (len(self.open) - 1), self.primes)
                self.open.remove(value)
        return np.asarray(self.table[0], dtype=np.uint64)

    def backward(self) -> NDArray[np.uint64] | None:
        shares = np.zeros((len(self.masks), LANES), dtype=np.uint64)
        back = np.zeros_like(self.table)
        back[0] = 1
        for step in reversed(self.plan.steps):
            if step.closes:
                self._reopen(step.closes, back)
            moves = self._moves(step.pattern)
            factors, share = self.factors[step.pattern], shares[step.pattern]
            if not _unchoose(self.table, back, moves, factors, self.primes, share, self.stop):
                return None
            del self.open[len(self.open) - len(step.opens) :]
        return shares

    def _reopen(self, closes: tuple[int, ...], back: Table) -> None:
        before, table = self.saved.pop()
        self.open, self.table[: len(table)] = list(before), table
        places = []
        for value in closes:
            places.append(before.index(value))
            before.remove(value)
        for size, place in enumerate(reversed(places), start=len(before)):
            _reopen(back, 3**place, 3**size)

    def _moves(self, pattern: int) -> _Moves:
        moves = self.moves.get(pattern) or self._make_moves(pattern)
        if len(moves.sources) <= FEW_MOVES:
            self.moves[pattern] = moves
        return moves

    def _make_moves(self, pattern: int) -> _Moves:
        places = sorted(self.open.index(value) for value in bits(self.masks[pattern]))
        sources, targets, marks = np.zeros((3, 1), dtype=np.int64)
        for place in places:
            stride = 3**place
            sources, targets, marks = (
                np.concatenate([start + step for step in steps])
                for start, steps in (
                    (sources, (UNHIT * stride, UNHIT * stride, HIT * stride)),
                    (targets, (MARKED * stride, HIT * stride, HIT * stride)),
                    (marks, (1, 0, 0)),
                )
            )
        allowed = marks > 0
        others = [3**i for i in range(places[0] + 1, len(self.open)) if i not in places]
        return _Moves(
            sources[allowed],
            targets[allowed],
            marks[allowed] % 2,
            np.array(others, dtype=np.int64),
            3 ** places[0],
        )


class _Moves(NamedTuple):
    """Where the cells that may choose a pattern lie, and where each goes."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    odd: NDArray[np.int64]
    """1 where an odd number of values gets marked."""
    strides: NDArray[np.int64]
    """Of the open values outside the pattern, above its lowest digit."""
    run: int
    """Cells below the pattern's lowest digit: contiguous."""


@njit(cache=True, nogil=True)
def _choose(table, moves, factors, primes, stop):  # type: ignore[no-untyped-def]
    """Add, to each cell a choice leads to, what the choice brings. Sources are never targets."""
    digits = np.zeros(len(moves.strides), np.int64)
    base, steps = 0, 0
    while base >= 0:
        for move in range(len(moves.sources)):
            source, target = base + moves.sources[move], base + moves.targets[move]
            for i in range(moves.run):
                for lane in range(LANES):
                    p = primes[lane, 0]
                    factor = p - factors[lane] if moves.odd[move] else factors[lane]
                    brings = reduce_word(np.uint64(table[source + i, lane]) * factor, p, primes[lane, 1])
                    word = np.uint64(table[target + i, lane]) + brings
                    table[target + i, lane] = np.uint32(word - p if word >= p else word)
        steps += 1
        if steps & 255 == 0 and stop[0]:
            return False
        base = _advance(digits, moves.strides, base)
    return not stop[0]


@njit(cache=True, nogil=True)
def _unchoose(table, back, moves, factors, primes, share, stop):  # type: ignore[no-untyped-def]
    """Undo `_choose` in the table, send derivatives back through it, and sum those by the weight."""
    digits = np.zeros(len(moves.strides), np.int64)
    base, steps = 0, 0
    while base >= 0:
        for move in range(len(moves.sources)):
            source, target = base + moves.sources[move], base + moves.targets[move]
            for i in range(moves.run):
                for lane in range(LANES):
                    p, negative_inverse = primes[lane, 0], primes[lane, 1]
                    factor = p - factors[lane] if moves.odd[move] else factors[lane]
                    here, ahead = np.uint64(table[source + i, lane]), np.uint64(back[target + i, lane])
                    brought = reduce_word(here * factor, p, negative_inverse)
                    word = np.uint64(table[target + i, lane]) + p - brought
                    table[target + i, lane] = np.uint32(word - p if word >= p else word)
                    word = np.uint64(back[source + i, lane]) + reduce_word(
                        ahead * factor, p, negative_inverse
                    )
                    back[source + i, lane] = np.uint32(word - p if word >= p else word)
                    product = reduce_word(here * ahead, p, negative_inverse)
                    share[lane] += product if moves.odd[move] else p - product
        steps += 1
        if steps & 255 == 0 and stop[0]:
            return False
        base = _advance(digits, moves.strides, base)
    for lane in range(LANES):
        share[lane] = share[lane] % primes[lane, 0] * primes[lane, 2] % primes[lane, 0]
    return not stop[0]


@njit(inline="always")
def _advance(digits, strides, base):  # type: ignore[no-untyped-def]
    """Count up in base 3 over the values outside the pattern; -1 at the end."""
    for place in range(len(digits)):
        base += strides[place]
        digits[place] += 1
        if digits[place] < 3:
            return base
        base -= 3 * strides[place]
        digits[place] = 0
    return -1


@njit(cache=True, nogil=True)
def _close(table, stride, cells, primes):  # type: ignore[no-untyped-def]
    """A value that no later pattern holds must be marked or hit: add both, drop the digit."""
    for cell in range(cells):
        start = cell // stride * 3 * stride + cell % stride
        for lane in range(LANES):
            word = np.uint64(table[start + stride, lane]) + np.uint64(table[start + 2 * stride, lane])
            table[cell, lane] = np.uint32(word - primes[lane, 0] if word >= primes[lane, 0] else word)


@njit(cache=True, nogil=True)
def _reopen(back, stride, cells):  # type: ignore[no-untyped-def]
    """The way back through `_close`."""
    for cell in range(cells - 1, -1, -1):
        start = cell // stride * 3 * stride + cell % stride
        for lane in range(LANES):
            word = back[cell, lane]
            back[start + 2 * stride, lane] = word
            back[start + stride, lane] = word
            back[start, lane] = 0

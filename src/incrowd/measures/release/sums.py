"""Two exact counts of minimal groups whose cost is known beforehand: the sum over value states, the frontier sweep.

Both run modulo primes. The counts have hundreds of digits and are differences of still larger numbers, so
floats fail. Kernels count modulo several primes below 2^27 and the Chinese remainder theorem gives the integer,
as long as the product of the primes passes twice the bound on the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.measures.release.patterns import Sweep, bits
from incrowd.measures.release.spec import Deadline

Lanes = NDArray[np.uint64]
LANES = 4
"""Primes that the sum and the sweep count modulo at a time."""
MARKED = 1
"""A value that exactly one of the chosen people has, in both."""
PRIME_BITS = 27
"""Below 2^32 / 32, so that 32 products fit under one Montgomery reduction (see `reduce_word`)."""
SIEVED = 2**17
"""Numbers below 2^27 that are looked through for primes at first: 7,000 of them, for 180,000 bits."""


def primes_for(bits: int) -> tuple[int, ...]:
    """Return enough primes to tell all integers of so many bits apart, the largest first."""
    count = bits // (PRIME_BITS - 1) + 1
    room = SIEVED
    while len(found := _primes_below(room)) < count:
        room *= 4
    return found[:count]


@cache
def _primes_below(room: int) -> tuple[int, ...]:
    """Return the primes among the last `room` numbers below 2^27, the largest first."""
    top = 2**PRIME_BITS
    first = max(top - room, 2)
    composite = np.zeros(top - first, dtype=np.bool_)
    for p in range(2, math.isqrt(top) + 1):  # multiples of composites are crossed out twice: no harm
        if p % 2 or p == 2:
            composite[max(-first % p, p * p - first) :: p] = True
    return tuple((first + np.flatnonzero(~composite)[::-1]).tolist())


def montgomery(weights: NDArray[np.int64], primes: Lanes) -> Lanes:
    """Return w * 2^32 mod p for each weight (rows) and prime: the form that `reduce_word` multiplies."""
    p = primes[:, 0]
    return np.asarray((weights.astype(np.uint64)[:, None] % p << np.uint64(32)) % p)


def lanes(moduli: tuple[int, ...]) -> Lanes:
    """Constants of each prime p for the kernels: p, -1/p mod 2^32, 2^32 mod p, 2^64 mod p."""
    rows = [(p, pow(-p, -1, 2**32), 2**32 % p, 2**64 % p) for p in moduli]
    return np.array(rows, dtype=np.uint64).reshape(len(rows), 4)


def combine(residues: NDArray[Any], moduli: tuple[int, ...], deadline: Deadline) -> list[int] | None:
    """Chinese remainder theorem, for each column of `residues` (one row per prime); None once time is up."""
    whole = math.prod(moduli)
    factors = [whole // p * pow(whole // p, -1, p) for p in moduli]
    integers = []
    for column in residues.T:
        if deadline.passed:
            return None
        integers.append(sum(map(mul, column.tolist(), factors)) % whole)
    return integers


@njit(inline="always")
def reduce_word(word, p, negative_inverse):  # type: ignore[no-untyped-def]
    """Montgomery reduction: word / 2^32 mod p, for word < p * 2^32, without a division."""
    low = np.uint64(np.uint32(word)) * negative_inverse
    high = (word + np.uint64(np.uint32(low)) * p) >> np.uint64(32)
    return high - p if high >= p else high


# The sum over value states: the number of minimal groups at a cost that ignores how many users there are.
#
# For k values, n is a sum of 3^k terms, one for each way to call every value *marked* (X), *avoided* (Z) or
# *free*; NOTES.md proves
#
#     n = sum over (X, Z) of (-1)^|X| [t^(|X|+|Z|)] (1 - t)^|Z| exp(-W(t)),
#     W(t) = sum over patterns P with P∩Z = ∅, P∩X ≠ ∅ of w(P) t^|P∩X|.
#
# The older form of the same sum has 5^k terms. The derivative of n by w(P) counts the minimal groups that
# hold one given user of pattern P; one pass back through the same recursion gives all of them.

AVOIDED, FREE = 0, 2


def count_by_sum(
    masks: list[int], weights: NDArray[np.int64], values: int, primes: Lanes, stop: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
    """Count modulo each prime: all minimal groups, and those that hold one given user of each pattern.

    None if `stop` was raised.
    """
    table = np.zeros(1 << values, dtype=np.int64)
    table[masks] = weights
    totals = np.zeros((len(primes), 1), dtype=np.uint64)
    each = np.zeros((len(primes), len(masks)), dtype=np.uint64)
    for first in range(0, len(primes), LANES):
        some = slice(first, first + LANES)
        # A short last batch repeats its prime; the result of the repeats is not read.
        batch = primes[np.minimum(np.arange(first, first + LANES), len(primes) - 1)]
        total, back = np.zeros(LANES, np.uint64), np.zeros((len(table), LANES), np.uint64)
        if not _sum_modulo(table, values, _constants(batch, values), total, back, stop):
            return None
        totals[some, 0], each[some] = total[: len(totals[some])], back[masks].T[: len(each[some])]
    return totals, each


def _constants(primes: Lanes, k: int) -> NDArray[np.uint64]:
    """Rows of lanes: p, -1/p, 2^96, then 1/i and i and -i in Montgomery form for i = 0..k."""
    p = primes[:, 0].tolist()
    rows = [p, primes[:, 1].tolist(), [pow(2, 96, q) for q in p]]
    rows += [[pow(i, -1, q) * 2**32 % q if i else 0 for q in p] for i in range(k + 1)]
    rows += [[i * 2**32 % q for q in p] for i in range(k + 1)]
    rows += [[-i * 2**32 % q for q in p] for i in range(k + 1)]
    return np.array(rows, dtype=np.uint64)


@njit(cache=True, nogil=True)
def _sum_modulo(table, k, constants, total, each, stop):  # type: ignore[no-untyped-def]
    """Walk the 3^k states depth first, keeping for each level the patterns that are left.

    At level d the first d values have their state; entry `start[d] + rest * (d + 1) + r` of `left` counts
    the users whose pattern on the other values is `rest` and who list r marked values and none avoided.
    `back` holds the derivatives by the same entries, one lane for each prime.
    """
    start = np.zeros(k + 2, np.int64)
    for d in range(k + 1):
        start[d + 1] = start[d] + ((d + 1) << (k - d))
    left = np.zeros(start[k + 1], np.int64)
    back = np.zeros((start[k + 1], LANES), np.uint64)
    left[: 1 << k] = table
    leaf = start[k]
    series = np.zeros((k + 1, LANES), np.uint64)
    slope = np.zeros((k + 2, LANES), np.uint64)
    word = np.zeros(LANES, np.uint64)
    state = np.full(k, -1, np.int64)
    marked, avoided, d, steps = 0, 0, 0, 0
    while d >= 0:
        if d == k:
            _series(left, leaf, marked, avoided, constants, slope, series, word)
            _collect(series, marked, avoided, constants, back, leaf, total)
            d -= 1
            steps += 1
            if steps & 1023 == 0 and stop[0]:
                return False
            continue
        if state[d] >= 0:
            _fold(back, start[d], start[d + 1], 1 << (k - d - 1), d + 1, state[d])
            marked -= state[d] == MARKED
            avoided -= state[d] == AVOIDED
        state[d] += 1
        if state[d] == 3:
            state[d] = -1
            d -= 1
            continue
        marked += state[d] == MARKED
        avoided += state[d] == AVOIDED
        _restrict(left, start[d], start[d + 1], 1 << (k - d - 1), d + 1, state[d])
        back[start[d + 1] : start[d + 2]] = 0
        d += 1
    for lane in range(LANES):
        total[lane] %= constants[0, lane]
        for i in range(len(each)):
            each[i, lane] = back[i, lane] % constants[0, lane]
    return True


@njit(cache=True, nogil=True)
def _restrict(left, above, below, rests, width, state):  # type: ignore[no-untyped-def]
    """Give the next value its state: users without it stay; users with it stay, go, or count as marked."""
    for rest in range(rests):
        without, here = above + 2 * rest * width, below + rest * (width + 1)
        with_it = without + width
        left[here + width] = 0
        for r in range(width):
            left[here + r] = left[without + r]
        if state == FREE:
            for r in range(width):
                left[here + r] += left[with_it + r]
        elif state == MARKED:
            for r in range(width):
                left[here + r + 1] += left[with_it + r]


@njit(cache=True, nogil=True)
def _fold(back, above, below, rests, width, state):  # type: ignore[no-untyped-def]
    """Send derivatives back through `_restrict`. At most 3^20 of them below 2^27 add up, within a word."""
    for rest in range(rests):
        without, here = above + 2 * rest * width, below + rest * (width + 1)
        with_it = without + width
        for r in range(width):
            for lane in range(LANES):
                back[without + r, lane] += back[here + r, lane]
        if state == FREE:
            for r in range(width):
                for lane in range(LANES):
                    back[with_it + r, lane] += back[here + r, lane]
        elif state == MARKED:
            for r in range(width):
                for lane in range(LANES):
                    back[with_it + r, lane] += back[here + r + 1, lane]


@njit(cache=True, nogil=True)
def _series(left, leaf, x, z, constants, slope, series, word):  # type: ignore[no-untyped-def]
    """Coefficients of F = (1 - t)^z exp(-W): from (1 - t) F' = -(z + (1 - t) W') F, one after another.

    Lanes are the innermost loops: their reductions do not wait for each other.
    """
    k = (len(constants) - 3) // 3 - 1
    for lane in range(LANES):
        slope[0, lane] = constants[3 + 2 * (k + 1) + z, lane]  # -z
        slope[x + 1, lane] = 0
        series[0, lane] = 1
    for j in range(1, x + 1):
        users = np.uint64(j * left[leaf + j])
        for lane in range(LANES):
            p, negative_inverse = constants[0, lane], constants[1, lane]
            part = reduce_word(users, p, negative_inverse)
            slope[j, lane] = reduce_word(part * constants[2, lane], p, negative_inverse)
    for j in range(x + 1):  # from z and j W_j to the coefficients of -(z + (1 - t) W')
        for lane in range(LANES):
            p = constants[0, lane]
            difference = slope[j, lane] + p - slope[j + 1, lane]
            slope[j, lane] = difference - p if difference >= p else difference
    for i in range(1, x + z + 1):
        for lane in range(LANES):
            word[lane] = constants[3 + k + i, lane] * series[i - 1, lane]
        for j in range(min(i, x + 1)):
            for lane in range(LANES):
                word[lane] += slope[j, lane] * series[i - 1 - j, lane]
        for lane in range(LANES):
            p, negative_inverse = constants[0, lane], constants[1, lane]
            step = reduce_word(word[lane], p, negative_inverse)
            series[i, lane] = reduce_word(step * constants[3 + i, lane], p, negative_inverse)


@njit(cache=True, nogil=True)
def _collect(series, x, z, constants, back, leaf, total):  # type: ignore[no-untyped-def]
    """Add the term of one state to n, and its derivative by each rank of what is left."""
    for lane in range(LANES):
        p = constants[0, lane]
        term = series[x + z, lane]
        total[lane] += p - term if x & 1 else term
        for r in range(1, x + 1):
            share = series[x + z - r, lane]
            back[leaf + r, lane] = share if x & 1 else p - share


# The frontier sweep: exact counts of many values, as long as few of them are open at a time.
#
# Patterns are used one after another. Each open value is *unhit* (0), *marked* (1: hit by exactly one chosen
# user, who owns it as a private value) or *hit* (2: covered, unmarked). Choosing a user of pattern P sends
# every unhit value of P to marked or hit, leaves hit values hit, must not touch a marked one, and has to mark
# at least one. The signs of an inclusion-exclusion over the marks make every minimal group count once
# (NOTES.md), so a table of 3^(open values) numbers is all there is to remember; it never depends on the number
# of users. One sweep back over the same steps gives the groups that hold each user.

UNHIT, HIT = 0, 2
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

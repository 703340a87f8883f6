"""The compiled loop over the rows of a crowd. Imported only when something is weighed."""

# Numba types these loops when it compiles them.
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numba as nb
import numpy as np

LANES = 8


@nb.njit(cache=True, nogil=True)
def weigh(codes, weights, factors, plain, targets, own_rows, sums):
    """Add up, for each person, the weight of every row by the row's value of each target.

    A row's weight is the product of the factors its values look up; a target's own factor is left out of that
    target's sums, so that the caller can put the target's likelihood in exactly.
    """
    if len(factors) >= LANES:
        _weigh_lanes(codes, weights, factors, plain, targets, own_rows, sums)
        return
    count = len(targets)
    before = np.ones(count + 1)
    for person in range(len(factors)):
        factor, total = factors[person], sums[person]
        for row in range(len(codes)):
            if row == own_rows[person]:
                continue
            weight = weights[row]
            for column in plain:
                weight *= factor[codes[row, column]]
            if weight == 0.0:
                continue
            for t in range(count):
                before[t + 1] = before[t] * factor[codes[row, targets[t]]]
            after = weight
            for t in range(count - 1, -1, -1):
                place = codes[row, targets[t]]
                total[place] += before[t] * after
                after *= factor[place]


@nb.njit(cache=True, nogil=True)
def _weigh_lanes(codes, weights, factors, plain, targets, own_rows, sums):
    """Do the same, number for number, for people LANES at a time: see :func:`tally`."""
    cells, count = factors.shape[1], len(targets)
    beside, total = np.zeros((cells, LANES)), np.zeros((cells, LANES))
    before = np.ones((count + 1, LANES))
    after, own = np.empty(LANES), np.empty(LANES, dtype=np.int64)
    for first in range(0, len(factors), LANES):
        several = min(LANES, len(factors) - first)
        own[:] = -1
        for lane in range(several):
            own[lane] = own_rows[first + lane]
            beside[:, lane] = factors[first + lane]
            total[:, lane] = sums[first + lane]
        for row in range(len(codes)):
            for lane in range(LANES):
                after[lane] = weights[row]
            for column in plain:
                place = codes[row, column]
                for lane in range(LANES):
                    after[lane] *= beside[place, lane]
            for lane in range(LANES):
                if own[lane] == row:
                    after[lane] = 0.0
            for t in range(count):
                place = codes[row, targets[t]]
                for lane in range(LANES):
                    before[t + 1, lane] = before[t, lane] * beside[place, lane]
            for t in range(count - 1, -1, -1):
                place = codes[row, targets[t]]
                for lane in range(LANES):
                    total[place, lane] += before[t, lane] * after[lane]
                    after[lane] *= beside[place, lane]
        for lane in range(several):
            sums[first + lane] = total[:, lane]


@nb.njit(cache=True, nogil=True)
def tally(codes, joint, weights, factors, own_rows, sums):
    """Add up, for each person, the weight of every row by the row's combination of targets.

    People go LANES at a time: what a row looks up for one of them lies beside what it looks up for the others, so it
    is fetched and multiplied at once.
    """
    cells, combinations = factors.shape[1], sums.shape[1]
    beside = np.zeros((cells, LANES))
    total = np.zeros((combinations, LANES))
    own = np.empty(LANES, dtype=np.int64)
    weight = np.empty(LANES)
    for first in range(0, len(factors), LANES):
        several = min(LANES, len(factors) - first)
        own[:] = -1
        for lane in range(several):
            own[lane] = own_rows[first + lane]
            beside[:, lane] = factors[first + lane]
        total[:] = 0.0
        for row in range(len(codes)):
            for lane in range(LANES):
                weight[lane] = weights[row]
            for column in range(codes.shape[1]):
                place = codes[row, column]
                for lane in range(LANES):
                    weight[lane] *= beside[place, lane]
            place = joint[row]
            for lane in range(LANES):
                if own[lane] != row:
                    total[place, lane] += weight[lane]
        for lane in range(several):
            sums[first + lane] = total[:, lane]


@nb.njit(cache=True, nogil=True)
def total_weight(codes, weights, factors, plain, own_rows, sums):
    """Add up the weight of all rows for each person."""
    for person in range(len(factors)):
        factor, total = factors[person], 0.0
        for row in range(len(codes)):
            if row == own_rows[person]:
                continue
            weight = weights[row]
            for column in plain:
                weight *= factor[codes[row, column]]
            total += weight
        sums[person] = total


@nb.njit(cache=True, nogil=True)
def by_value(each, values, found):
    """Add up combinations that share a value, one after the other, so that the sum is the same in any block."""
    for person in range(len(each)):
        for combination in range(len(values)):
            found[person, values[combination]] += each[person, combination]


@nb.njit(cache=True, nogil=True)
def guessed_truth(sums, starts, smoothing, shares, seen, found):
    """Smooth and normalise sums as a belief does, and keep the probability of each true value; -1 in `seen`: none.

    A column of `seen` and `found` is a target; its sums lie from its start on, those of "not given" last.
    """
    values = np.empty(sums.shape[1])
    for person in range(len(sums)):
        for target in range(seen.shape[1]):
            code = seen[person, target]
            if code < 0:
                continue
            first, last, s = starts[target], starts[target + 1] - 1, smoothing[target]
            spread = s * _sum_as_numpy(sums[person, first:last]) + sums[person, last]
            for cell in range(first, last):
                values[cell] = (1 - s) * sums[person, cell] + spread * shares[cell]
            total = _sum_as_numpy(values[first:last])
            found[person, target] = values[first + code] / total if total > 0 else np.nan


@nb.njit(cache=True, nogil=True)
def _sum_as_numpy(values):
    """Add up in NumPy's order, so that compiled and plain sums agree to the last bit."""
    n = len(values)
    if n > 128:
        half = n // 2 - n // 2 % 8
        return _sum_as_numpy(values[:half]) + _sum_as_numpy(values[half:])
    done, total = 0, 0.0
    if n >= 8:
        done = n - n % 8
        lanes = values[:8].copy()
        for start in range(8, done, 8):
            for lane in range(8):
                lanes[lane] += values[start + lane]
        total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + (
            (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
        )
    for place in range(done, n):
        total += values[place]
    return total

"""Large answers under small budgets: what is cheap to know is still known, and fast counting is right."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.measures.release import (
    Budget,
    HolderIndex,
    Method,
    PatternCounts,
    SuppressOptions,
    measure_q,
    suppress,
)
from incrowd.measures.release.patterns import FEW_CELLS, pack
from incrowd.measures.release.tally import tally


@pytest.mark.parametrize(
    ("rows", "values", "share"), [(1, 1, 1.0), (40, 7, 0.3), (300, 64, 0.05), (200, 190, 0.02)]
)
def test_holders_counted_from_masks_are_those_of_the_table(rows: int, values: int, share: float) -> None:
    rng = np.random.default_rng(rows)
    table = rng.random((rows, values)) < share
    weights = rng.integers(1, 10**12, rows)
    listed, alone = tally(pack(table), weights, values)
    single = table.sum(axis=1) == 1
    assert listed.tolist() == (weights @ table).tolist()
    assert alone.tolist() == (weights[single] @ table[single]).tolist()


def large_answer() -> PatternCounts:
    rng = np.random.default_rng(2)
    users = np.repeat(np.arange(2000), 12)
    return HolderIndex.from_pairs(users, rng.integers(0, 900, len(users))).patterns()


def test_a_large_answer_is_not_taken_apart_without_the_time_for_it() -> None:
    answer = large_answer()
    assert answer.cells > FEW_CELLS
    measured = measure_q(answer, budget=Budget(seconds=0.01))
    assert measured.method is Method.INTERVAL
    assert len(measured.parts) == 1
    assert measured.interval is not None
    low, high = measured.interval
    assert (low, high) == (max(1, measured.p_min or 0), measured.lcv)


def test_what_is_released_does_not_depend_on_the_clock() -> None:
    """Users stay rows of their own where grouping would not fit the budget; the answer is still proved."""
    rng = np.random.default_rng(4)
    users = np.repeat(np.arange(3000), 2)
    index = HolderIndex.from_pairs(users, rng.integers(0, 60, len(users)))
    options = SuppressOptions(budget=Budget(seconds=5.0, memory=60 * 3000 - 1))
    one, two = (suppress(index, 10, options=options) for _ in range(2))
    assert one.released == two.released
    assert one.released
    assert one.method is Method.CERTIFIED

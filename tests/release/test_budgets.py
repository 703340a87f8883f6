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
from incrowd.measures.release.definition import Component, count_with
from incrowd.measures.release.kernels import tally
from incrowd.measures.release.patterns import FEW_CELLS, pack, plan
from incrowd.measures.release.spec import Deadline


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


def chain(values: int) -> PatternCounts:
    """Each value has a user of its own, and each two neighbours share one."""
    alone = {1 << i: 1 for i in range(values)}
    return PatternCounts.from_counts(alone | {3 << i: 1 for i in range(values - 1)})


@pytest.mark.parametrize("solver", ["sum", "sweep", "enumeration", "diagram"])
def test_no_solver_ends_with_a_count_once_time_is_up(solver: str) -> None:
    part = Component(chain(12))
    assert count_with(solver, part, Deadline(60), 2**30) is not None
    assert count_with(solver, part, Deadline(0), 2**30) is None


def test_a_sweep_is_not_planned_when_it_is_late() -> None:
    masks = chain(30).integers()
    assert plan(masks, 30) is not None
    asked: list[bool] = []

    def late() -> bool:
        asked.append(True)
        return len(asked) > 80

    assert plan(masks, 30, late=late) is None
    assert len(asked) == 80 + 6  # each of six ways to start looks at the clock, and gives up


def test_long_chains_are_searched_in_little_memory() -> None:
    """A cube of values by values by words would take 3.4 GB here; the budget's time ends the search first."""
    measured = measure_q(chain(3000), budget=Budget(seconds=0.3))
    assert measured.method is Method.INTERVAL
    assert measured.interval == (1, 2)


def test_many_unconnected_parts_are_not_looked_at_one_by_one_without_the_time_for_it() -> None:
    index = HolderIndex.from_pairs(np.arange(4000) // 2 * 3 + np.arange(4000) % 2, np.arange(4000) // 2)
    measured = measure_q(index, budget=Budget(seconds=0.15))
    assert len(measured.parts) == 1
    assert measured.q == 2


def test_a_large_table_of_patterns_is_thinned_by_rows_and_proved() -> None:
    answer = large_answer()
    small = SuppressOptions(budget=Budget(seconds=5.0, memory=answer.cells // 9))
    thinned = suppress(answer, 10, options=small)
    assert thinned.method is Method.CERTIFIED
    assert measure_q(answer.select([answer.values.index(v) for v in thinned.released])).p_min >= 10
    assert suppress(answer, 10, options=SuppressOptions(budget=Budget(seconds=1e-4))).released == ()

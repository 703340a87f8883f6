"""The cut into tiles covers every pair once, within its budget."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.distances import Compute, ball_sizes, histogram, mean_distance, nearest
from incrowd.distances.all_pairs import Threads
from incrowd.distances.tiles import TilePlan, plan_tiles
from incrowd.errors import BudgetExceeded


@given(st.integers(0, 40), st.integers(0, 40), st.booleans(), st.integers(1, 50))
def test_tiles_cover_every_pair_once(rows, columns, symmetric, side):
    columns = rows if symmetric else columns
    plan = TilePlan(rows=rows, columns=columns, symmetric=symmetric, height=side, width=side)
    seen = np.zeros((rows, columns), int)
    for tile in plan:
        seen[tile.rows.start : tile.rows.stop, tile.columns.start : tile.columns.stop] += 1
        if tile.mirrored:
            seen[tile.columns.start : tile.columns.stop, tile.rows.start : tile.rows.stop] += 1
    assert (seen == 1).all()
    assert [tile.number for tile in plan] == list(range(len(plan)))
    assert plan.pairs == (rows * (rows + 1) // 2 if symmetric else rows * columns)


@given(st.integers(1, 10**6), st.integers(2**20, 2**34), st.integers(1, 64), st.integers(0, 10**5))
def test_tiles_keep_to_the_budget(rows, memory, workers, a_side):
    try:
        plan = plan_tiles(
            rows,
            rows,
            symmetric=True,
            memory=memory,
            bytes_per_pair=24,
            bytes_per_side=a_side,
            workers=workers,
        )
    except BudgetExceeded:
        assert 24 + 2 * a_side > memory // workers
        return
    needed = 24 * plan.height * plan.width + a_side * (plan.height + plan.width)
    assert workers * needed <= memory


def test_a_budget_too_small_for_one_pair_says_so():
    with pytest.raises(BudgetExceeded, match="memory budget is 100 bytes"):
        plan_tiles(5, 5, symmetric=True, memory=100, bytes_per_side=1000)


def test_two_workers_share_a_small_triangle_evenly():
    plan = plan_tiles(1000, 1000, symmetric=True, memory=2**30, workers=2)
    square, *halves = sorted((tile.pairs for tile in plan), reverse=True)
    assert square == pytest.approx(sum(halves), rel=0.01)


@pytest.mark.parametrize("question", [ball_sizes, histogram, nearest, mean_distance])
def test_no_question_ever_holds_all_pairs(question):
    people, budget = 1500, 2**20
    rows = np.random.default_rng(0).dirichlet(np.full(6, 0.5), people)
    options = {ball_sizes: {"radii": [0.5]}, histogram: {"edges": [0, 1]}}.get(question, {})
    compute = Compute(kernel="cpu", memory=budget, engine=Threads(2))
    question(rows[:9], **options, compute=compute)
    tracemalloc.start()
    question(rows, **options, compute=compute)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * budget < 8 * people**2 / 4

"""One person changes; the result is what comparing everybody again would give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.distances import Compute, ball_sizes, replace_row, update_ball_sizes
from incrowd.errors import InputError

from .strategies import crowd, profiles

RADII = np.linspace(0, 1, 101)


@pytest.mark.parametrize("kernel", ["reference", "cpu"])
@given(rows=profiles(), include_self=st.booleans(), data=st.data())
@settings(max_examples=25, deadline=None)
def test_an_update_equals_a_recomputation(kernel, rows, include_self, data):
    people, new = rows[:-1], rows[-1]
    person = data.draw(st.integers(0, len(people) - 1))
    options = {"radii": RADII, "include_self": include_self, "compute": Compute(kernel=kernel)}
    before = ball_sizes(people, **options)
    after = ball_sizes(replace_row(people, person, new), **options)
    assert (update_ball_sizes(before, people, person, new, **options) == after).all()
    assert (ball_sizes(people, **options) == before).all()


def test_a_stream_of_updates_stays_right():
    rows, options = crowd(50, seed=3), {"radii": RADII, "metric": "hellinger"}
    sizes, newer = ball_sizes(rows, **options), crowd(20, seed=4)
    for step in range(20):
        sizes = update_ball_sizes(sizes, rows, 2 * step, newer[[step]], **options)
        rows = replace_row(rows, 2 * step, newer[[step]])
    assert (sizes == ball_sizes(rows, **options)).all()


def test_mistakes_are_named():
    rows = np.eye(3)
    sizes = ball_sizes(rows, radii=[0.5])
    with pytest.raises(InputError, match="from 0 to 2"):
        update_ball_sizes(sizes, rows, 3, rows[0], radii=[0.5])
    with pytest.raises(InputError, match="one row of 3 columns"):
        update_ball_sizes(sizes, rows, 0, rows[:2], radii=[0.5])
    with pytest.raises(InputError, match="what ball_sizes returned"):
        update_ball_sizes(sizes, rows, 0, rows[0], radii=[0.5, 0.6])

from __future__ import annotations

import numpy as np
import pytest

from incrowd.distances import Compute, ball_sizes
from incrowd.distances.all_pairs import usable_cores
from incrowd.engine import Local, connect
from incrowd.errors import InputError


def test_local_takes_every_core():
    with connect("local") as engine:
        assert isinstance(engine, Local)
        assert engine.workers == usable_cores()


def test_threads_take_as_many_as_asked():
    assert connect("threads:3").workers == 3


@pytest.mark.parametrize(
    "spec", ["", "threads", "threads:", "threads:0", "threads:two", "dask:x", "spark", "tcp:9"]
)
def test_anything_else_is_refused_with_what_is_possible(spec):
    with pytest.raises(InputError, match="cluster: expected"):
        connect(spec)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("tile", [7, 33, 1000])
def test_neither_threads_nor_tiles_change_a_count(people, threads, tile):
    radii = np.linspace(0, 1, 8)
    known = ball_sizes(people, radii=radii, compute=Compute(kernel="reference"))
    engine = connect(f"threads:{threads}")
    found = ball_sizes(people, radii=radii, compute=Compute(kernel="reference", engine=engine, tile=tile))
    assert np.array_equal(found, known)

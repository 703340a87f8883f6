from __future__ import annotations

import numpy as np
import pytest

from incrowd.engine import connect


@pytest.fixture(scope="session")
def people():
    """Profiles of 90 people over 40 words, some alike, some with nothing in common."""
    rows = np.random.default_rng(7).dirichlet(np.full(40, 0.15), 90)
    rows[10] = rows[3]
    rows[20:22] = np.eye(40)[:2]
    return rows


@pytest.fixture(scope="session")
def cluster():
    """Two worker processes on this machine."""
    with connect("dask:2") as engine:
        yield engine

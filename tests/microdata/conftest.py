"""Small item tables with known answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from incrowd.measures.microdata.table import ItemTable, item_table

Draw = Callable[..., sparse.csr_matrix]


def draw_matrix(people: int = 60, items: int = 40, seed: int = 0, *, least: int = 2) -> sparse.csr_matrix:
    """Draw a long-tailed 0/1 table in which everybody has at least `least` items."""
    rng = np.random.default_rng(seed)
    popularity = np.linspace(0.8, 0.05, items)
    activity = rng.uniform(0.4, 1.2, people)
    dense = rng.random((people, items)) < activity[:, None] * popularity
    dense[:, :least] = True
    return sparse.csr_matrix(dense.astype(np.int8))


def draw_frame(people: int = 60, items: int = 40, seed: int = 0) -> pl.DataFrame:
    """Draw the same as rows, with ratings and times."""
    matrix = draw_matrix(people, items, seed, least=8).tocoo()
    rng = np.random.default_rng(seed + 1)
    return pl.DataFrame(
        {
            "user": [f"user{row:04d}" for row in matrix.row],
            "item": [f"item{column:04d}" for column in matrix.col],
            "value": rng.integers(1, 6, matrix.nnz).astype(float),
            "time": rng.integers(1_000_000_000, 1_010_000_000, matrix.nnz),
        }
    )


@pytest.fixture
def matrix() -> sparse.csr_matrix:
    return draw_matrix()


@pytest.fixture
def draw() -> Draw:
    return draw_matrix


@pytest.fixture
def frame() -> pl.DataFrame:
    return draw_frame()


@pytest.fixture
def frames() -> Callable[..., pl.DataFrame]:
    return draw_frame


@pytest.fixture
def table(frame: pl.DataFrame) -> ItemTable:
    return item_table(frame)

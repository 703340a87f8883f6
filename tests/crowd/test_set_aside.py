"""What is large and seldom asked waits on disk: the same numbers, and next to none of the memory."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from incrowd.crowd.array_cache import give_back, set_aside


@dataclass(frozen=True, eq=False)
class Thing:
    name: str
    table: pl.DataFrame
    rows: dict[str, sp.csr_matrix]
    tall: np.ndarray
    empty: np.ndarray


def _thing(numbers: int = 1_000) -> Thing:
    rng = np.random.default_rng(0)
    rows = sp.random(50, 400, 0.1, format="csr", dtype=np.float32, random_state=0)
    tall = np.asfortranarray(rng.random((numbers, 3)))
    return Thing("a", pl.DataFrame({"user": ["u1", "u2"]}), {"words": rows}, tall, np.empty(0, np.int32))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("place", ["there", "missing", None])
def test_a_thing_set_aside_is_the_same_thing(tmp_path: Path, place: str | None) -> None:
    before = _thing()
    folder = None if place is None else tmp_path if place == "there" else tmp_path / place
    after = set_aside(before, folder)
    give_back()  # its pages are gone, and come back
    assert after.name == before.name
    assert after.table.equals(before.table)
    assert (after.rows["words"] != before.rows["words"]).nnz == 0
    assert np.array_equal(after.tall, before.tall)
    assert after.tall.flags.f_contiguous == before.tall.flags.f_contiguous
    assert after.empty.dtype == before.empty.dtype
    assert not len(after.empty)
    # Compiled loops would be compiled once more for arrays that must not be written to.
    assert after.tall.flags.writeable
    assert after.tall.flags.aligned
    assert not list(tmp_path.iterdir())


def test_what_has_no_arrays_stays_as_it_is(tmp_path: Path) -> None:
    assert set_aside({"a": 1}, tmp_path) == {"a": 1}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells how much is resident")
def test_a_thing_set_aside_takes_no_memory_until_it_is_asked(tmp_path: Path) -> None:
    size = 64 * 2**20
    before = _resident()
    aside = set_aside(np.arange(size // 8, dtype=np.float64), tmp_path)
    give_back()
    assert _resident() - before < size / 2
    assert aside.sum() == (size // 8) * (size // 8 - 1) / 2
    assert _resident() - before > size / 2
    give_back()
    assert _resident() - before < size / 2
    assert aside[-1] == size // 8 - 1

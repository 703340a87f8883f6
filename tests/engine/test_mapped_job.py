from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from incrowd.engine.dask import write_job


@dataclass(frozen=True)
class Carried:
    name: str
    large: np.ndarray
    rows: sparse.csr_matrix
    small: np.ndarray

    def open(self):
        return self.large.sum()


def carried():
    rng = np.random.default_rng(3)
    rows = sparse.csr_matrix(rng.random((300, 400)) * (rng.random((300, 400)) < 0.2))
    return Carried("a job", rng.random((300, 100)), rows, np.arange(5))


def test_a_job_comes_back_as_it_was(tmp_path):
    job = carried()
    back = write_job(job, tmp_path).load()
    assert back.name == job.name
    assert np.array_equal(back.large, job.large)
    assert (back.rows != job.rows).nnz == 0
    assert np.array_equal(back.small, job.small)
    assert write_job(job, tmp_path).open() == job.large.sum()


def test_writing_to_a_loaded_job_changes_nobody_elses(tmp_path):
    written = write_job(carried(), tmp_path)
    mine, other = written.load(), written.load()
    mine.large[:] = 0
    mine.rows.data[:] = 0
    assert other.large.sum() == written.load().large.sum() > 0
    assert other.rows.sum() > 0


def test_large_arrays_are_mapped_and_small_ones_are_not(tmp_path):
    written = write_job(carried(), tmp_path)
    assert written.arrays == 3  # the matrix, and values and words of the sparse rows
    assert (tmp_path / "job").stat().st_size < 2**16

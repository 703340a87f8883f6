"""Which kernel runs, why, and on how little."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from incrowd.distances import Compute, ball_sizes, pairwise
from incrowd.distances.all_pairs import Threads, TileJob
from incrowd.distances.kernels import SMALL_JOB, choose
from incrowd.distances.reductions import BallSizes
from incrowd.distances.reference import METRICS, as_rows
from incrowd.distances.tiles import plan_tiles
from incrowd.errors import InputError


def test_the_choice_is_explained():
    lines = []
    pairwise(np.eye(3), compute=Compute(explain=lines.append))
    assert lines == [
        "kernel gpu: 9 pairs are too few to be worth starting it",
        "kernel cpu: taken",
        "tiles: 1 of up to 64 x 64; 6 pairs",
    ]


def test_a_kernel_can_be_forced():
    assert choose(METRICS["hellinger"], 10, "reference").kernel.name == "reference"
    with pytest.raises(InputError, match="auto, gpu, cpu, reference"):
        choose(METRICS["hellinger"], 10, "fpga")


def test_a_large_job_falls_back_when_there_is_no_gpu():
    choice = choose(METRICS["jensen-shannon"], SMALL_JOB)
    assert choice.kernel.name in ("gpu", "cpu")
    assert choice.reasons[-1].endswith("taken")


def test_progress_reaches_its_total():
    seen = []
    compute = Compute(tile=16, progress=lambda done, total, what: seen.append((done, total, what)))
    ball_sizes(np.eye(50), radii=[0.5], compute=compute)
    assert seen[-1] == (50 * 51 / 2, 50 * 51 / 2, "distances")
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)


def test_a_job_travels_as_bytes_and_pieces_add_up_in_any_order():
    rows = as_rows(np.random.default_rng(0).dirichlet(np.full(12, 0.3), 30))
    question = BallSizes(30, np.linspace(0, 1, 11), include_self=True)
    job = pickle.loads(pickle.dumps(TileJob(question, "jensen-shannon", "cpu", ((rows, None),))))
    plan = plan_tiles(30, 30, symmetric=True, memory=2**20, largest=8)
    worker, total = job.open(), question.empty()
    for tile in reversed(list(plan)):
        question.absorb(total, pickle.loads(pickle.dumps(worker(tile))))
    assert (question.finish(total) == ball_sizes(rows, radii=question.radii)).all()


def test_an_error_in_a_tile_reaches_the_caller():
    class Broken:
        kernel = threads = None

        def __call__(self, tile):
            raise ZeroDivisionError

    class BrokenJob:
        def open(self):
            return Broken()

    plan = plan_tiles(9, 9, symmetric=True, memory=2**20, largest=2)
    with pytest.raises(ZeroDivisionError):
        Threads(2).run(BrokenJob(), plan, lambda piece: None, None)


BARE = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numba", "llvmlite", "cupy", "polars", "pyarrow", "duckdb", "narwhals"}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refuse())
from incrowd.distances import Compute, ball_sizes
why = []
print(ball_sizes([[1.0, 0.0], [0.0, 1.0]], radii=[0.5, 1.0], compute=Compute(explain=why.append)).tolist())
print(*why, sep="|")
"""


def test_numpy_and_scipy_are_enough():
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=True)
    answer, why = done.stdout.splitlines()
    assert answer == "[[1, 2], [1, 2]]"
    assert "kernel cpu: cannot be loaded (numba)|kernel reference: taken" in why


def test_importing_distances_does_not_import_numba():
    code = "import sys, incrowd.distances; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from incrowd.distances import Compute, ball_sizes, mean_distance
from incrowd.engine import Local
from incrowd.engine.checkpoints import Resumable, fingerprint

RADII = np.linspace(0, 1, 11)


class Watched(Local):
    """Threads that remember how many tiles they were given."""

    given = 0

    def run(self, job, plan, absorb, progress):
        self.given += len(plan)
        super().run(job, plan, absorb, progress)


def sizes(people, engine, progress=None, radii=RADII, tile=20):
    compute = Compute(kernel="reference", engine=engine, tile=tile, progress=progress)
    return ball_sizes(people, radii=radii, compute=compute)


def stop_after(tiles):
    """A person who loses patience."""
    left = [tiles]

    def progress(done, total, what):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_run_continues_with_the_missing_tiles_only(people, tmp_path):
    known = sizes(people, Local(1))
    with pytest.raises(KeyboardInterrupt):
        sizes(people, Resumable(Local(1), tmp_path), stop_after(4))
    kept = len(list(tmp_path.rglob("*.parquet")))
    assert 4 <= kept < 15
    second = Watched(2)
    assert np.array_equal(sizes(people, Resumable(second, tmp_path)), known)
    assert second.given == 15 - kept
    third = Watched(2)
    assert np.array_equal(sizes(people, Resumable(third, tmp_path)), known)
    assert third.given == 0


def test_progress_starts_where_the_first_run_stopped(people, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        sizes(people, Resumable(Local(1), tmp_path), stop_after(4))
    seen = []
    sizes(people, Resumable(Local(1), tmp_path), lambda done, total, what: seen.append((done, total)))
    assert seen[0][0] > 0
    assert seen[-1] == (90 * 91 / 2, 90 * 91 / 2)
    assert seen == sorted(seen)


def test_a_damaged_piece_is_computed_again(people, tmp_path):
    known = sizes(people, Resumable(Local(1), tmp_path))
    pieces = sorted(tmp_path.rglob("*.parquet"))
    pieces[3].write_bytes(pieces[3].read_bytes()[:-40])
    pieces[5].unlink()
    again = Watched(1)
    assert np.array_equal(sizes(people, Resumable(again, tmp_path)), known)
    assert again.given == 2


def test_another_job_never_uses_these_pieces(people, tmp_path):
    sizes(people, Resumable(Local(1), tmp_path))
    changed = people.copy()
    changed[0], changed[1] = people[1], people[0]
    for options in ({"people": changed}, {"radii": RADII[1:]}, {"tile": 21}):
        engine = Watched(1)
        arguments = {"people": people, "engine": Resumable(engine, tmp_path)} | options
        assert np.array_equal(sizes(**arguments), sizes(**arguments | {"engine": Local(1)}))
        assert engine.given > 0
    engine = Watched(1)
    mean_distance(people, compute=Compute(kernel="reference", engine=Resumable(engine, tmp_path), tile=20))
    assert engine.given == 15


def test_no_unfinished_file_is_left_behind(people, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        sizes(people, Resumable(Local(2), tmp_path), stop_after(2))
    assert all(path.suffix == ".parquet" for path in tmp_path.rglob("*") if path.is_file())


def test_it_closes_the_engine_inside(tmp_path):
    closed = []

    class Closing(Local):
        def close(self):
            closed.append(True)

    with Resumable(Closing(1), tmp_path) as engine:
        assert engine.workers == 1
    assert closed == [True]


@dataclass(frozen=True)
class Asked:
    number: float
    words: tuple[str, ...]
    rows: object


def test_fingerprints_tell_values_apart_and_equal_ones_not():
    rows = sparse.csr_matrix([[0.0, 1.0], [2.0, 0.0]])
    same = [Asked(1.0, ("a", "b"), rows), Asked(1.0, ("a", "b"), rows.copy())]
    assert fingerprint(same[0]) == fingerprint(same[1])
    others = [
        Asked(2.0, ("a", "b"), rows),
        Asked(1.0, ("ab",), rows),
        Asked(1.0, ("a", "b"), rows * 2),
        Asked(1.0, ("a", "b"), rows.toarray()),
        Asked(1.0, ("a", "b"), sparse.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(2, 3))),
    ]
    assert len({fingerprint(value) for value in [same[0], *others]}) == 6
    assert fingerprint(np.zeros(4)) != fingerprint(np.zeros((2, 2))) != fingerprint(np.zeros(4, np.float32))
    assert fingerprint({"a": 1}) == fingerprint({"a": 1}) != fingerprint({"a": 2})

"""The search for what may leave runs in children that the system stops; whatever happens, the gateway goes on."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from incrowd.gateway.solver import Solver, SolverOptions
from incrowd.measures.release import Budget, HolderIndex, PatternCounts, SuppressOptions, suppress

QUICK = SuppressOptions(budget=Budget(seconds=5.0))
SMALL = {"rare": [1], "common": list(range(20)), "other": list(range(10, 40))}


@pytest.fixture(scope="module")
def solver() -> Iterator[Solver]:
    made = Solver(SolverOptions(children=1, memory=512 * 2**20, grace=0.2))
    yield made
    made.close()


def hard_answer() -> HolderIndex:
    """Overlapping values whose best thinning nobody finds in a millisecond."""
    draw = np.random.default_rng(1)
    return HolderIndex.from_pairs(draw.integers(0, 3000, 120_000), draw.integers(0, 900, 120_000))


def child_pid(solver: Solver) -> int:
    child = solver._idle.get()
    solver._idle.put(child)
    return child.pid


def test_a_child_answers_as_the_engine_does(solver: Solver) -> None:
    answer = solver.suppress(SMALL, 10, QUICK)
    expected = suppress(SMALL, 10, options=QUICK)
    assert answer is not None
    assert (answer.released, answer.withheld, answer.q) == (
        expected.released,
        expected.withheld,
        expected.q,
    )


def test_prepared_forms_travel(solver: Solver) -> None:
    index = HolderIndex.from_holders(SMALL)
    for form in (index, PatternCounts.from_holders(SMALL)):
        answer = solver.suppress(form, 10, QUICK)
        assert answer is not None
        assert set(answer.released) == {"common", "other"}


def test_a_killed_child_means_no_answer_and_a_new_child(solver: Solver) -> None:
    before = child_pid(solver)
    os.kill(before, signal.SIGKILL)
    assert solver.suppress(SMALL, 10, QUICK) is None
    assert child_pid(solver) != before
    assert solver.suppress(SMALL, 10, QUICK) is not None
    assert not Path(f"/proc/{before}").exists()  # no zombie stays


def test_a_child_that_hangs_is_killed_in_time(solver: Solver) -> None:
    before, replaced = child_pid(solver), solver.replaced
    os.kill(before, signal.SIGSTOP)
    assert solver.suppress(SMALL, 10, SuppressOptions(budget=Budget(seconds=0.1))) is None
    assert solver.replaced == replaced + 1
    assert solver.suppress(SMALL, 10, QUICK) is not None


def test_out_of_time_releases_nothing(solver: Solver) -> None:
    answer = solver.suppress(hard_answer(), 20, SuppressOptions(budget=Budget(seconds=1e-6)))
    assert answer is None or not answer.released
    assert solver.suppress(SMALL, 10, QUICK) is not None


def test_questions_asked_at_once_all_get_an_answer(solver: Solver) -> None:
    answers: list[object] = []
    threads = [
        threading.Thread(target=lambda: answers.append(solver.suppress(SMALL, 10, QUICK))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert None not in answers


def test_memory_and_time_caps_are_set_by_the_system(solver: Solver) -> None:
    assert solver.suppress(SMALL, 10, QUICK) is not None
    limits = Path(f"/proc/{child_pid(solver)}/limits").read_text()
    rows = {line[:25].strip(): line[25:].split() for line in limits.splitlines()}
    assert rows["Max address space"][0] != "unlimited"
    assert rows["Max cpu time"][0] != "unlimited"
    assert rows["Max core file size"][0] == "0"


def test_too_little_memory_means_no_answer(solver: Solver) -> None:
    usual = solver.options
    solver.options = SolverOptions(memory=2**20)
    try:
        os.kill(child_pid(solver), signal.SIGKILL)  # the next one gets the small cap
        assert solver.suppress(SMALL, 10, QUICK) is None
        assert solver.suppress(hard_answer(), 20, QUICK) is None
    finally:
        solver.options = usual
        os.kill(child_pid(solver), signal.SIGKILL)
    assert solver.suppress(SMALL, 10, QUICK) is None
    assert solver.suppress(SMALL, 10, QUICK) is not None


def test_a_lost_nursery_is_made_again_and_everything_ends_with_the_gateway() -> None:
    made = Solver(SolverOptions(children=1))
    made._fork_server.kill()
    made._fork_server.wait()
    os.kill(child_pid(made), signal.SIGKILL)
    assert made.suppress(SMALL, 10, QUICK) is None
    assert made.suppress(SMALL, 10, QUICK) is not None
    child, fork_server = child_pid(made), made._fork_server.pid
    made.close()
    assert not made.alive
    assert not Path(f"/proc/{child}").exists()
    assert not Path(f"/proc/{fork_server}").exists()

"""What a question to the release engine is made of: budgets and the adversary, as values."""

from __future__ import annotations

from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from time import monotonic

import numpy as np
from numpy.typing import NDArray

ADVERSARY = "someone who sees the released values and knows who is in the class"
"""The adversary of the whole measure: they hold the answer and the list of people it was computed from."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long, and in how much memory, the solver may look for an exact answer.

    Passing the budget is no error for a measurement: it then says what was proved until then.
    """

    seconds: float = 2.0
    memory: int = 512 * 2**20
    """Bytes for the solver's tables."""


@dataclass(frozen=True, kw_only=True)
class SuppressOptions:
    """How a response is thinned out until it is safe."""

    key: bytes = b"incrowd"
    """Secret of the tie-break and of the order of the released values; a provider sets their own."""
    class_size: int | None = None
    """How many people the query selected, where known; a class below the threshold releases nothing."""
    budget: Budget = Budget()
    """Over the time or memory budget nothing is released."""
    exact_values: int = 6
    """Connected parts up to this many values are solved to the optimum with exact q."""
    rounds: int = 4
    """Ways to weigh the greedy choice in larger parts; the best outcome is kept."""
    blind: bool = False
    """Choose between values by the key alone, not by how common they are: which one was chosen then says nothing
    about counts. For answers to strangers."""
    effort: int = 300_000
    """Rows that exchanges may visit in all. Counted, not timed: the same data give the same answer."""


FINISH_SECONDS = 0.02
"""Kept back from a budget to stop in time and put the result together; at most a quarter of it."""


class Deadline:
    """The moment by which the solver has to stop."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds
        self.set_aside = 0.0
        """Seconds that did not count."""

    @classmethod
    def within(cls, budget: float) -> Deadline:
        """Return a moment early enough for the result to be ready when the budget ends."""
        return cls(budget - min(budget / 4, FINISH_SECONDS))

    @property
    def left(self) -> float:
        """Seconds until then; 0 once it has passed."""
        return max(0.0, self._end - monotonic())

    @property
    def passed(self) -> bool:
        """True once the time is up."""
        return self.left == 0

    @contextmanager
    def not_counting(self) -> Iterator[None]:
        """Leave out what happens inside: compiling code on its first use is not the question's fault."""
        before = monotonic()
        yield
        taken = monotonic() - before
        self._end += taken
        self.set_aside += taken

    @contextmanager
    def watch(self, expected: float, share: float = 1.0, early: float = 0.0) -> Iterator[NDArray[np.int64]]:
        """Yield a flag that is raised when `share` of the time left has passed, or so many seconds before.

        Kernels run without Python's lock, so the timer's thread gets its turn. A kernel expected to need a
        small part of the time gets no timer. `early` is the longest that a kernel goes without a look.
        """
        stop = np.zeros(1, dtype=np.int64)
        allowed = max(0.0, self.left * share - early)
        if expected < allowed / 50 or allowed == inf:
            yield stop
            return
        done = allocate_lock()
        done.acquire()
        # Not a threading.Timer: starting one waits until its thread runs, which on a busy machine takes too long.
        start_new_thread(_raise_flag, (stop, done, monotonic() + allowed))
        try:
            yield stop
        finally:
            done.release()


def _raise_flag(stop: NDArray[np.int64], done: LockType, end: float) -> None:
    """Wait until the work is done or its time is up."""
    if not done.acquire(timeout=max(0.0, end - monotonic())):
        stop[0] = 1

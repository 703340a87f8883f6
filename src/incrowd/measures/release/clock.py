"""A time budget that compiled loops can feel: they look at a flag, a timer raises it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from threading import Timer
from time import monotonic

import numpy as np
from numpy.typing import NDArray


class Deadline:
    """The moment by which the solver has to stop."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds

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
        self._end += monotonic() - before

    @contextmanager
    def watch(self, expected: float, share: float = 1.0) -> Iterator[NDArray[np.int64]]:
        """Yield a flag that is raised when `share` of the time left has passed.

        Kernels run without Python's lock, so the timer's thread gets its turn. A kernel expected to need a
        small part of the time gets no timer.
        """
        stop = np.zeros(1, dtype=np.int64)
        allowed = self.left * share
        if expected < allowed / 50 or allowed == inf:
            yield stop
            return
        timer = Timer(allowed, stop.fill, [1])
        timer.daemon = True
        timer.start()
        try:
            yield stop
        finally:
            timer.cancel()

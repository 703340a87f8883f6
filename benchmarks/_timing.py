"""How long something takes."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(task: Callable[[], object], times: int = 3) -> float:
    """Return the least seconds of some runs: other programs only add."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        task()
        taken.append(time.perf_counter() - start)
    return min(taken)

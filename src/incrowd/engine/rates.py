"""How fast this machine works on this crowd: measured on a small sample of it, not guessed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from incrowd.crowd import Crowd
from incrowd.crowd.plan import MachineRates
from incrowd.distances import ball_sizes
from incrowd.profiles import unigram
from incrowd.text import count_tokens

SAMPLED_POSTS = 20_000
SAMPLED_PROFILES = 300
TYPICAL = MachineRates(text_bytes=2e7, pairs=2e5, cells=0.1)
"""For a crowd without texts to try."""


def measure_rates(crowd: Crowd, community: str | None = None) -> MachineRates:
    """Clean, count and compare some posts (of the largest community, unless told) and take the time."""
    posts = crowd.posts(community or _largest(crowd)).head(SAMPLED_POSTS).collect()
    size = int(posts["text"].str.len_bytes().sum())
    if size == 0:
        return TYPICAL
    count_tokens(posts.head(1))  # loads and compiles what is needed
    counting, counted = _timed(lambda: count_tokens(posts))
    rows = unigram(counted).matrix[:SAMPLED_PROFILES]
    if rows.shape[0] < 2:
        return MachineRates(text_bytes=size / counting, pairs=TYPICAL.pairs, cells=counted.matrix.nnz / size)
    ball_sizes(rows[:2], radii=[0.5])
    comparing, _ = _timed(lambda: ball_sizes(rows, radii=[0.5]))
    pairs = rows.shape[0] * (rows.shape[0] - 1) / 2
    return MachineRates(text_bytes=size / counting, pairs=pairs / comparing, cells=counted.matrix.nnz / size)


def _largest(crowd: Crowd) -> str | None:
    names = crowd.communities()["community"]
    return names[0] if len(names) else None


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    outcome = work()
    return max(time.perf_counter() - start, 1e-6), outcome

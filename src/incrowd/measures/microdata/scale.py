"""The label's scale: how groups become bars with words (paper 002, section 5 and figure 8)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

WORDS: dict[int, tuple[str, ...]] = {
    1: ("everybody alike",),
    2: ("safe", "not safe"),
    3: ("safe", "medium risk", "not safe"),
    4: ("very safe", "safe", "medium risk", "not safe"),
    5: ("very safe", "safe", "medium safe", "medium risk", "not safe"),
    6: ("very safe", "safe", "medium safe", "medium risk", "high risk", "not safe"),
    7: ("very safe", "safe", "rather safe", "medium safe", "medium risk", "high risk", "not safe"),
}
"""Best first."""
MOST_SPLIT = 5
"""Crowds of up to so many groups have their upper groups halved."""


def split_upper(borders: Sequence[float]) -> list[float]:
    """Halve the two safest groups (never the riskiest), unless there are many groups already.

    >>> split_upper([0.6, 0.8])
    [0.6, 0.7, 0.8, 0.9]
    """
    groups = len(borders) + 1
    if groups == 1 or groups > MOST_SPLIT:
        return list(borders)
    halved = min(2, groups - 1)
    middles = [(low + high) / 2 for low, high in list(pairwise([*borders, 1.0]))[-halved:]]
    return sorted([*borders, *middles])


def bar_words(count: int) -> tuple[str, ...]:
    """Return the words of that many bars, best first; beyond seven they repeat, and the letters differ."""
    if count in WORDS:
        return WORDS[count]
    return tuple(WORDS[7][round(k * 6 / (count - 1))] for k in range(count))


def bar_of(score: float, borders: Sequence[float]) -> int:
    """Return the number of a score's bar, 0 = best; on a border the riskier one."""
    return len(borders) - sum(border < score for border in borders)

"""Two measures made for tables, applied to words: ENTROPY and DIFF-PRIV (paper 004, definitions 2 and 3).

Each salient word of a topic is an attribute that a person has or has not. Both ask how much one person
changes the share of people who have it: U is everybody else (k people), U* is U with the person. `held` has
one row a person and one column a word. NOTES.md says why neither orders people by how exposed they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating[Any]]


def _word_divergence(count: Floats, k: int, has: bool) -> Floats:
    """KL(P_U || P_U*) in bits for words that `count` of k others have, by log1p: the values are tiny."""
    share, change = count / k, ((k - count) if has else -count) / (k * (k + 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        present = np.where(share > 0, -share * np.log1p(change / share), 0.0)
        absent = np.where(share < 1, -(1 - share) * np.log1p(-change / (1 - share)), 0.0)
    return np.asarray(np.maximum(present + absent, 0.0) / np.log(2))


def entropy_risks(held: ArrayLike, *, present_only: bool = False) -> Floats:
    """Return ENTROPY: the mean over words of KL(P_U || P_U*), in bits.

    `present_only` counts the words a person has and no others: as printed, lacking a common word scores as
    high as having a rare one.

    >>> entropy_risks(np.eye(101, 1, dtype=bool))[:1].round(4).tolist()
    [0.0144]
    """
    has = np.asarray(held, dtype=bool)
    others = len(has) - 1
    if others < 1 or not has.shape[1]:
        return np.zeros(len(has))
    total = has.sum(axis=0).astype(np.float64)
    holder = _word_divergence(np.maximum(total - 1, 0), others, has=True)
    lacker = (
        np.zeros_like(total) if present_only else _word_divergence(np.minimum(total, others), others, False)
    )
    return np.asarray(np.where(has, holder, lacker).mean(axis=1))


def diff_priv_risks(held: ArrayLike, *, smoothed: bool = False) -> tuple[Floats, NDArray[np.int64]]:
    """Return DIFF-PRIV, max over words of |log2(P_U / P_U*)|, and how many words nobody else has.

    Infinite for a person with such a word, unless `smoothed` adds half a person to each side of every count.

    >>> risks, unique = diff_priv_risks([[True], [False], [False]])
    >>> risks.round(3).tolist(), unique.tolist()
    ([inf, 0.585, 0.585], [1, 0, 0])
    """
    has = np.asarray(held, dtype=bool)
    others = len(has) - 1
    if others < 1 or not has.shape[1]:
        return np.zeros(len(has)), np.zeros(len(has), np.int64)
    total = has.sum(axis=0).astype(np.float64)
    before, after = np.broadcast_to(total - has, has.shape), np.broadcast_to(total, has.shape)
    if smoothed:
        ratio = np.log2((before + 0.5) / (others + 1.0)) - np.log2((after + 0.5) / (others + 2.0))
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log2(before / others) - np.log2(after / (others + 1.0))
    # Nobody has the word, the person included: 0/0, no change.
    change = np.where(after == 0, 0.0, np.abs(ratio))
    return np.asarray(change.max(axis=1)), (has & (total == 1)).sum(axis=1)


def diff_priv_order(risks: ArrayLike, unique: ArrayLike) -> Floats:
    """Return finite numbers in the order of DIFF-PRIV: infinite first, among them by how many such words.

    >>> diff_priv_order([0.5, np.inf, np.inf], [0, 1, 3]).tolist()
    [0.5, 2.5, 4.5]
    """
    values, words = np.asarray(risks, np.float64), np.asarray(unique)
    finite = values[np.isfinite(values)]
    top = finite.max() if finite.size else 0.0
    return np.where(np.isinf(values), top + 1 + words, values)

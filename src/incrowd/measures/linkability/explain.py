"""Why two profiles resemble each other, word by word, and what would pull them apart.

For the Jensen-Shannon distance d between word frequencies p and q, ``1 - d**2`` is a sum over the words both
use, so every word has its exact share in the resemblance. Removing words or posts is tried out: the numbers
promised are the numbers measured afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.distances import Compute, pairwise
from incrowd.distances.profile_index import shared_terms
from incrowd.measures.search import fewest
from incrowd.result import Advice, Evidence
from incrowd.text.mentions import SOMEBODY, shown_words, word_evidence

WANTED_CROWD = 10
"""Advice aims at a matching set of at least this many people."""
MOST_WORDS = 400

Array = NDArray[np.float64]


def shared_words(
    p: Array, q: Array, vocabulary: Sequence[str], mentioned: Collection[str] = ()
) -> tuple[Evidence, ...]:
    """Return the words two profiles share, the strongest first; the shares add up to ``1 - d**2``."""
    shares = shared_terms(p, q)
    order = np.argsort(-shares, kind="stable")[: int((shares > 0).sum())].tolist()
    return word_evidence(((vocabulary[w], float(shares[w])) for w in order), mentioned)


@dataclass(frozen=True)
class ChangedPair:
    """One way to change both profiles, and the matching set it leads to."""

    removed: int
    crowd: int


@dataclass(frozen=True)
class OwnPair:
    """A person's two profiles as word counts, and everybody they might be mistaken for."""

    source: Array
    target: Array
    others: sp.csr_matrix
    """Frequencies of all other targets."""
    compute: Compute

    def crowd(self, source: Array, target: Array) -> int:
        """Count the targets at least as near to the source as its own match, the match included."""
        if not source.sum() or not target.sum():
            return int(self.others.shape[0]) + 1
        p, q = (np.atleast_2d(x / x.sum()) for x in (source, target))
        own = pairwise(p, q, compute=self.compute)[0, 0]
        return 1 + int((pairwise(p, self.others, compute=self.compute)[0] <= own).sum())


def words_to_avoid(
    pair: OwnPair, vocabulary: Sequence[str], wanted: int = WANTED_CROWD, mentioned: Collection[str] = ()
) -> Advice | None:
    """Find how many of the strongest shared words must go before the matching set is large enough."""
    shares = shared_terms(pair.source / pair.source.sum(), pair.target / pair.target.sum())
    order = np.argsort(-shares, kind="stable")[: min(int((shares > 0).sum()), MOST_WORDS)]

    def without(count: int) -> tuple[Array, Array]:
        keep = np.ones(shares.size)
        keep[order[:count]] = 0
        return pair.source * keep, pair.target * keep

    found = _fewest(pair, without, len(order), wanted)
    if found is None:
        return None
    before, trial = found
    first = shown_words((vocabulary[w] for w in order[: min(trial.removed, 8)].tolist()), mentioned)
    named = ", ".join(word if word == SOMEBODY else f"“{word}”" for word in first)
    more = f" and {trial.removed - 8} more" if trial.removed > 8 else ""
    return Advice(
        what=f"Avoid {trial.removed} words in both profiles: {named}{more}",
        before=before,
        after=trial.crowd,
        loss=_share_lost(pair, *without(trial.removed)),
    )


def posts_to_delete(
    pair: OwnPair, post_counts: sp.csr_matrix, wanted: int = WANTED_CROWD
) -> tuple[Advice, NDArray[np.int64]] | None:
    """Find how many posts of the source profile must go; also return which rows of `post_counts`.

    Posts are taken in the order of the resemblance their words carry.
    """
    shares = shared_terms(pair.source / pair.source.sum(), pair.target / pair.target.sum())
    a_word = np.divide(shares, pair.source, out=np.zeros_like(shares), where=pair.source > 0)
    order = np.argsort(-(post_counts @ a_word), kind="stable")

    def without(count: int) -> tuple[Array, Array]:
        gone = np.asarray(post_counts[order[:count]].sum(axis=0)).ravel()
        return np.maximum(pair.source - gone, 0.0), pair.target

    found = _fewest(pair, without, len(order) - 1, wanted)
    if found is None:
        return None
    before, trial = found
    advice = Advice(
        what=f"Delete {trial.removed} of your {len(order)} posts in the first profile",
        before=before,
        after=trial.crowd,
        loss=_share_lost(pair, *without(trial.removed)),
    )
    return advice, order[: trial.removed].astype(np.int64)


def _fewest(
    pair: OwnPair, without: Callable[[int], tuple[Array, Array]], most: int, wanted: int
) -> tuple[int, ChangedPair] | None:
    """Return the crowd now, and the smallest tried removal that reaches the wanted one, or the best found."""
    now = pair.crowd(pair.source, pair.target)
    tried: dict[int, int] = {}

    def lack(count: int) -> float:
        tried[count] = pair.crowd(*without(count))
        return wanted - tried[count]

    count = fewest(most, lack, wanted - now)
    return None if count is None else (now, ChangedPair(count, tried[count]))


def _share_lost(pair: OwnPair, source: Array, target: Array) -> str:
    before: Any = pair.source.sum() + pair.target.sum()
    return f"{1 - (source.sum() + target.sum()) / before:.0%} of your words there"

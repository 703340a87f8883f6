"""How few posts find somebody among people who are known by a card only.

The rehearsal is that of :mod:`incrowd.measures.recognition.history`: n posts of one half of the person's history are
held against the other half, and against rivals. Here the rivals are made up: they use the words that the card says
people use, as often.

Real rivals share topics and phrases, and a real adversary looks at more than words. So the rank among made-up people
(:mod:`incrowd.measures.made_up_rivals`), and how much there is to go by, become a probability by :data:`LEARNT`, which
was fitted on other crowds (NOTES.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import expit

from incrowd.arrays import Floats
from incrowd.measures.made_up_rivals import FARTHEST, CountedPosts, MadeUpRivals
from incrowd.measures.recognition.spec import KNOWN

Learnt = Mapping[int, tuple[float, float, float]]

LEARNT: Learnt = {
    1: (-2.304, -0.098, -0.062),
    3: (-2.445, -0.048, 0.150),
    10: (-4.545, -0.036, 0.726),
    30: (-4.192, -0.016, 0.855),
}
"""For n posts: the log odds of being found by somebody who also looks at style and phrases, among real people, at rank
1 among made-up ones and with one word; how they fall with the logarithm of that rank; and how they grow with that of
the words there are. `python -m benchmarks.card_learnt` prints them and says how they do where they were not fitted."""
TRIED: Learnt = {
    1: (-2.234, -0.144, -0.088),
    3: (-2.655, -0.090, 0.133),
    10: (-4.455, -0.063, 0.643),
    30: (-3.919, -0.033, 0.769),
}
"""The same where nothing is rehearsed because the very posts are at hand."""
DOUBT, DRIFT = 1.0, 0.05
"""Half the width of an interval, in log odds; and what is added for each power of e that somebody comes before rank 1.
By so much crowds differ in what these numbers, and their slopes, would be there."""
CARRIED_ON = (
    " So many could not be tried, as one half of your {posts} posts is held against the other: this is carried on from "
    "fewer."
)


def rehearsed(rivals: MadeUpRivals, known: CountedPosts, asked: CountedPosts) -> Floats:
    """Return the mean log rank for each number of posts: either half is asked about, the other one is known.

    `known` is the history as it is or would be, `asked` what may have been read elsewhere: as it is.
    """
    there, back = known.halves, asked.halves
    ways = ((there[0], back[1]), (there[1], back[0]))
    found = np.array([[rivals.log_rank(known, one, asked, other, n) for one, other in ways] for n in KNOWN])
    return gone_on(
        [float(row[np.isfinite(row)].mean()) if np.isfinite(row).any() else math.nan for row in found]
    )


def gone_on(log_ranks: Sequence[float]) -> Floats:
    """Fill in numbers of posts that nobody has to spare: log ranks go on falling with the logarithm of the number.

    >>> gone_on([6.0, 4.0, float("nan"), float("nan")]).round(2).tolist()
    [6.0, 4.0, 1.81, -0.19]
    """
    filled = np.array(log_ranks, float)
    for k in range(1, len(filled)):
        if math.isnan(filled[k]):
            ends = np.log([KNOWN[max(k - 2, 0)], KNOWN[k - 1], KNOWN[k]])
            slope = (filled[k - 1] - filled[k - 2]) / (ends[1] - ends[0]) if k > 1 else 0.0
            filled[k] = max(-FARTHEST, filled[k - 1] + min(slope, 0.0) * (ends[2] - ends[1]))
    return filled


def probabilities(
    log_ranks: Floats, words: float, learnt: Learnt = LEARNT
) -> tuple[dict[int, float], dict[int, tuple[float, float]]]:
    """Return how likely somebody is found by each number of posts, and between which ends that lies.

    Who reads more finds no less; empty if nothing could be rehearsed. `words` is how many of the person's there are.
    The ends are as far apart as crowds differ (:data:`DOUBT`).
    """
    much = math.log(max(words, 1.0))
    told = [(n, rank) for n, rank in zip(KNOWN, log_ranks.tolist(), strict=True) if not math.isnan(rank)]
    rising = list(
        itertools.accumulate(
            (learnt[n][0] + learnt[n][1] * rank + learnt[n][2] * much for n, rank in told), max
        )
    )
    chances, ends = {}, {}
    for (n, rank), odds in zip(told, rising, strict=True):
        off = DOUBT + DRIFT * max(0.0, -rank)
        chances[n] = float(expit(odds))
        # Whoever comes before all made-up people may be found every time by somebody who sees more than words.
        ends[n] = float(expit(odds - off)), 1.0 if rank <= 0 else float(expit(odds + off))
    return chances, ends

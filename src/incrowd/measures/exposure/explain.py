"""Which of a person's own posts and words put them where they are, and what it looks like."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.exposure.definition import UNDATED, Floats, breadth, person_risk
from incrowd.measures.exposure.scoring import Scored, post_periods
from incrowd.measures.exposure.space import Encoder, WordLists
from incrowd.measures.exposure.spec import LINES
from incrowd.result import Evidence

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

LITTLE_BELOW = 0.1
"""Only the most exposed tenth of a crowd stands out."""
BEYOND_SINGLE_WORDS = 0.25
"""For a bag of words: posts that name a single word of a topic's twenty, week after week, score 0.22. A quarter of
the people of a made-up crowd reach that for some topic without any stake in it; few get beyond."""
NOTHING = "nothing: no post points to it"
LITTLE, PROFESSIONAL = "little out of the ordinary", "a professional or general interest in the whole domain"
SINGLE_WORDS = "a few words, too few to tell an interest from chance"
PASSING, LASTING = "a passing interest", "a lasting personal interest"
UNDATED_INTEREST = "a personal interest; without times nobody can tell whether it lasts"


@dataclass(frozen=True, eq=False)
class OwnPosts:
    """One person's posts, scored: all that is read to explain their result."""

    periods: NDArray[np.int64]
    words: WordLists
    similarities: Floats

    def risk(self, scored: Scored, topic: int, *, keep: Any = None, dimension: str | None = None) -> float:
        """Return the risk from the posts that are kept; 0 without any post."""
        kept = np.ones(len(self.periods), bool) if keep is None else keep
        if not kept.any():
            return 0.0
        o = scored.options
        return person_risk(
            self.similarities[kept],
            self.periods[kept],
            topic,
            scored.space.topics.siblings(topic),
            dimension=o.dimension if dimension is None else dimension,
            k=o.breadth,
            m=o.weeks,
            breadth_over=o.breadth_over,
            literal=o.literal,
        )

    def leading(self, scored: Scored, topic: int) -> NDArray[np.bool_]:
        """Mark the posts that make the score: the best of all, or the best of each of the m best periods.

        Posts that have nothing to do with the topic make nothing.
        """
        values = self.similarities[:, topic]
        order = np.argsort(-values, kind="stable")[: int((values > 0).sum())]
        chosen = np.zeros(len(values), bool)
        if "T" not in scored.options.dimension:
            chosen[order[:1]] = True
            return chosen
        order = order[self.periods[order] != UNDATED]
        _, first = np.unique(self.periods[order], return_index=True)
        chosen[order[np.sort(first)[: scored.options.weeks]]] = True
        return chosen


def own_posts(crowd: Crowd, scored: Scored, user: str) -> OwnPosts:
    """Read and score one person's posts."""
    mine = crowd.posts(scored.options.community, user).select("time", "text").collect()
    words = Encoder(scored.space, scored.options.text).encode(mine["text"])
    when = post_periods(mine["time"], scored.options.days)
    return OwnPosts(when, words, scored.space.similarities(words))


def evidence(posts: OwnPosts, scored: Scored, topic: int) -> tuple[Evidence, ...]:
    """Return each word's share of the risk, and what breadth takes off; they add up to the risk score."""
    timed = "T" in scored.options.dimension
    per_word: dict[str, float] = defaultdict(float)
    for post in np.flatnonzero(posts.leading(scored, topic)):
        words = posts.words.part(int(post), int(post) + 1).words
        shares = scored.space.shares(words, topic) / (scored.options.weeks if timed else 1)
        for word, share in zip(words, shares, strict=True):
            per_word[scored.space.words[word]] += float(share)
    shown = {word: share for word, share in per_word.items() if share}
    parts = [Evidence(what=f"the word “{word}”", contribution=share) for word, share in shown.items()]
    parts.sort(key=lambda part: -part.contribution)
    if "D" in scored.options.dimension and (taken := _taken_off(posts, scored, topic)):
        domain = scored.space.topics.topics[topic].domain
        parts.append(Evidence(what=f"you also write about other topics of {domain}", contribution=-taken))
    return tuple(parts)


def _taken_off(posts: OwnPosts, scored: Scored, topic: int) -> float:
    """What breadth takes off the risk, whichever way it is measured."""
    without = scored.options.dimension.replace("D", "")
    return posts.risk(scored, topic, dimension=without) - posts.risk(scored, topic)


def _breadth(posts: OwnPosts, scored: Scored, topic: int) -> float:
    strength = posts.similarities.max(axis=0)[None, :]
    return float(breadth(strength, scored.space.topics.siblings(topic), scored.options.breadth)[0])


def impression(posts: OwnPosts, scored: Scored, topic: int, rank: int) -> str:
    """Say in words what an adversary would make of it: little, lasting, passing or professional."""
    strength = float(posts.similarities[:, topic].max())
    if strength <= 0:
        return NOTHING
    if rank > max(1, LITTLE_BELOW * len(scored.users)):
        return LITTLE
    if scored.space.name == "BOW" and posts.risk(scored, topic) < BEYOND_SINGLE_WORDS:
        return SINGLE_WORDS
    lines = LINES[scored.space.name]
    if _breadth(posts, scored, topic) >= lines.professional_from * strength:
        return PROFESSIONAL
    lasting = posts.risk(scored, topic, dimension="T")
    if np.isnan(lasting):
        return UNDATED_INTEREST
    return PASSING if lasting < lines.passing_below * strength else LASTING

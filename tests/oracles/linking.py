"""Papers 000 and 003 from their definitions alone: words in dictionaries, distances one by one, sets as lists."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean

Words = Mapping[str, int]
Identity = tuple[str, str]
"""A person in a community."""


def distance(p: Words, q: Words) -> float:
    """The square root of the Jensen-Shannon divergence, base 2."""
    a, b = sum(p.values()), sum(q.values())
    total = 0.0
    for word in {*p, *q}:
        x, y = p.get(word, 0) / a, q.get(word, 0) / b
        m = (x + y) / 2
        total += sum(v * math.log2(v / m) for v in (x, y) if v) / 2
    return math.sqrt(min(max(total, 0.0), 1.0))


def rank(values: Sequence[float]) -> list[float]:
    """Mean ranks."""
    return [sum(v < u for v in values) + (sum(v == u for v in values) + 1) / 2 for u in values]


def spearman(x: Sequence[float], y: Sequence[float]) -> float:
    a, b = rank(x), rank(y)
    ma, mb = mean(a), mean(b)
    spread = math.sqrt(sum((u - ma) ** 2 for u in a) * sum((v - mb) ** 2 for v in b))
    return sum((u - ma) * (v - mb) for u, v in zip(a, b, strict=True)) / spread if spread else math.nan


class Forums:
    """Everybody's words by person and community."""

    def __init__(self, posts: Sequence[tuple[str, str, str]]) -> None:
        self.words: dict[Identity, Counter[str]] = {}
        for user, community, text in posts:
            self.words.setdefault((user, community), Counter()).update(text.split())
        self.far = {
            (i, j): round(distance(p, q), 9) for i, p in self.words.items() for j, q in self.words.items()
        }

    def members(self, community: str) -> list[Identity]:
        return [one for one in self.words if one[1] == community]

    @property
    def matches(self) -> list[tuple[Identity, Identity]]:
        """Directed: a person in one community, the same person in another."""
        return [(i, j) for i in self.words for j in self.words if i[0] == j[0] and i[1] != j[1]]

    def matching(self, source: Identity, community: str, radius: float) -> list[Identity]:
        return [t for t in self.members(community) if self.far[source, t] <= radius]

    def sets(self, source: Identity, target: Identity) -> tuple[int, int, int]:
        """|M(d)|, |A(d)| and |mu|, d being the distance of the two."""
        d = self.far[source, target]
        m = self.matching(source, target[1], d)
        a = self.matching(target, target[1], d)
        return len(m), len(a), len([one for one in m if one in a])

    def hit(self, source: Identity, target: Identity, k: int) -> float:
        """Chance that the match is among the k nearest, equal distances in random order."""
        d = self.far[source, target]
        others = [self.far[source, t] for t in self.members(target[1]) if t != target]
        nearer, tied = sum(o < d for o in others), sum(o == d for o in others)
        return min(max((k - nearer) / (tied + 1), 0.0), 1.0)

    def stranger(self, source: Identity, target: Identity) -> float:
        others = [self.far[source, t] for t in self.members(target[1]) if t != target]
        return mean(others) if others else math.nan

"""Attackers that no measure and no search for advice contains, to hold what people are told against.

Each compares posts with everybody's profiles in a way of its own: runs of characters, compression, Burrows' delta, and
plain TF-IDF cosine beside them, which the measures' own attackers contain. Advice asks :data:`RECHECK` before it
promises anything, so a study of advice must judge by the others.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.arrays import Floats
from incrowd.profiles.habits import grouping, post_habits

Rows = NDArray[np.int64]

DELTA_WORDS = 150
"""Burrows' delta compares how often people use this many of the commonest words (Burrows 2002: 150)."""
WINDOW = 2**15
"""Deflate looks back this far, so no more of a profile helps."""


class Attacker(Protocol):
    """Somebody who compares a few posts with everybody's earlier ones."""

    def __init__(self, texts: pl.Series, profiles: Sequence[Rows]) -> None: ...

    def resemblance(self, posts: Sequence[Rows]) -> Floats:
        """Return how like each group of posts is to each profile: higher is more alike."""
        ...


def _rarity(profiles: sp.csr_matrix) -> Floats:
    holders = np.bincount(profiles.indices, minlength=profiles.shape[1])
    return np.where(holders > 0, np.log((1 + profiles.shape[0]) / (1 + holders)) + 1, 0.0)


def _weighed(counts: sp.csr_matrix, rarity: Floats) -> sp.csr_matrix:
    """Weigh habits by rarity and scale rows to length 1."""
    rows = sp.csr_matrix(counts, dtype=np.float64)
    rows.data = rows.data * rarity[rows.indices]
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1 / np.where(length > 0, length, 1.0)) @ rows)


class _Cosine:
    """TF-IDF cosine over one family of habits, without any correction."""

    family: str

    def __init__(self, texts: pl.Series, profiles: Sequence[Rows]) -> None:
        self.rows = post_habits(texts, (self.family,)).rows[self.family]
        known = grouping(profiles, self.rows.shape[0]) @ self.rows
        self.rarity = _rarity(known)
        self.known = _weighed(known, self.rarity)

    def resemblance(self, posts: Sequence[Rows]) -> Floats:
        """Return the cosine of each group of posts and each profile."""
        asked = _weighed(grouping(posts, self.rows.shape[0]) @ self.rows, self.rarity)
        return np.asarray((asked @ self.known.T).toarray())


class WordCosine(_Cosine):
    """Plain TF-IDF cosine of words."""

    family = "vocabulary"


class CharacterCosine(_Cosine):
    """TF-IDF cosine of runs of four characters."""

    family = "spelling"


class BurrowsDelta:
    """The mean difference of standardised frequencies of the commonest words (Burrows 2002)."""

    def __init__(self, texts: pl.Series, profiles: Sequence[Rows]) -> None:
        rows = post_habits(texts, ("vocabulary",)).rows["vocabulary"]
        used = np.asarray(rows.sum(axis=0)).ravel()
        self.totals = np.asarray(rows.sum(axis=1)).ravel()
        self.rows = rows[:, np.argsort(-used, kind="stable")[:DELTA_WORDS]]
        shares = self._shares(profiles)
        self.mean, spread = shares.mean(axis=0), shares.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        self.known = (shares - self.mean) / self.spread

    def _shares(self, groups: Sequence[Rows]) -> Floats:
        summed = grouping(groups, self.rows.shape[0])
        total = np.asarray(summed @ self.totals).ravel()
        return np.asarray((summed @ self.rows).toarray() / np.maximum(total, 1)[:, None], np.float64)

    def resemblance(self, posts: Sequence[Rows]) -> Floats:
        """Return minus the delta of each group of posts and each profile."""
        asked = (self._shares(posts) - self.mean) / self.spread
        return np.array([-np.abs(self.known - one).mean(axis=1) for one in asked])


class Compression:
    """How many bytes the posts take once somebody's earlier posts are known (Deflate with a preset dictionary)."""

    def __init__(self, texts: pl.Series, profiles: Sequence[Rows]) -> None:
        self.texts = [text.encode() for text in texts.fill_null("")]
        # Reading a profile into the packer takes longest; a copy of the packer has read it already.
        self.known = [
            zlib.compressobj(6, zlib.DEFLATED, -15, zdict=self._joined(rows)[-WINDOW:]) for rows in profiles
        ]

    def _joined(self, rows: Rows) -> bytes:
        return b"\n".join(self.texts[row] for row in rows)

    def resemblance(self, posts: Sequence[Rows]) -> Floats:
        """Return minus the bytes that each group of posts adds to each profile."""
        return np.array(
            [[-self._bytes(known, said) for known in self.known] for said in map(self._joined, posts)]
        )

    @staticmethod
    def _bytes(known: Any, said: bytes) -> int:
        packer = known.copy()
        return len(packer.compress(said)) + len(packer.flush())


ATTACKERS: dict[str, type[Attacker]] = {
    "character runs": CharacterCosine,
    "compression": Compression,
    "Burrows' delta": BurrowsDelta,
    "plain TF-IDF": WordCosine,
}

RECHECK = "character runs"
"""Who is asked once more before advice is given."""
MOST_RIVALS = 500


class Lineup:
    """Some people of a community, whom the attacker of :data:`RECHECK` may take one person for, however they change."""

    def __init__(self, texts: pl.Series, profiles: Sequence[Rows], people: int) -> None:
        rows = post_habits(texts, (CharacterCosine.family,)).rows[CharacterCosine.family]
        others = sp.csr_matrix(grouping(profiles, rows.shape[0]) @ rows)
        # As everybody else writes: the person is not among them, and what nobody does tells most.
        holders = np.bincount(others.indices, minlength=others.shape[1])
        self._rarity = np.log((2 + others.shape[0]) / (1 + holders)) + 1
        self._others = _weighed(others, self._rarity)
        self.people = people
        """Of how many these are a sample."""

    @classmethod
    def of(cls, posts: pl.LazyFrame, without: str, seed: int, least: int = 1) -> Lineup:
        """Draw some of the people who wrote at least so many of the posts (user, text), one of them left out."""
        counted = posts.group_by("user").len().filter(pl.col("len") >= least).collect()
        there = counted.filter(pl.col("user") != without)["user"].sort()
        drawn = np.random.default_rng(seed).permutation(len(there))[:MOST_RIVALS]
        some = there.gather(np.sort(drawn).tolist())
        read = (
            posts.select("user", "text").filter(pl.col("user").is_in(some.implode())).collect().sort("user")
        )
        starts = np.flatnonzero(read["user"].ne_missing(read["user"].shift(1)).to_numpy())
        profiles = np.split(np.arange(read.height), starts[1:]) if read.height else []
        return cls(read["text"], profiles, len(there))

    @property
    def sampled(self) -> int:
        """How many of the people are here."""
        return int(self._others.shape[0])

    def resemblance(self, known: pl.Series, asked: pl.Series) -> tuple[float, Floats]:
        """Return how like some posts are to the person's profile, `known`, and to everybody else's here."""
        mine, said = (_weighed(_summed(texts), self._rarity) for texts in (known, asked))
        return float((said @ mine.T).toarray()[0, 0]), np.asarray(self._others @ said.toarray().ravel())

    def risk(self, known: pl.Series, asked: pl.Series) -> float:
        """Return how often a guess would be right among all who are at least as like the posts as the person is.

        The rank among a sample is scaled up to everybody.
        """
        own, others = self.resemblance(known, asked)
        return 1 / (1 + int((others >= own).sum()) * self.people / max(self.sampled, 1))


def _summed(texts: pl.Series) -> sp.csr_matrix:
    rows = post_habits(texts, (CharacterCosine.family,)).rows[CharacterCosine.family]
    return sp.csr_matrix(grouping([np.arange(rows.shape[0])], rows.shape[0]) @ rows)

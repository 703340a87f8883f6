"""One community's words, laid out so that a changed profile meets everybody in milliseconds.

For the Jensen-Shannon distance d of word shares p and q only the words that both use matter:

    1 - d**2 = sum over shared words of ((p + q) log2(p + q) - p log2 p - q log2 q) / 2,

so one profile is compared with everybody by going through the lists of who uses its words. Whatever comes close to
the line is settled by the formula without cancellation, rounded as the measures round: the answer is theirs, to
the last person. Nothing here loads more than NumPy, because somebody waits for the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.advisor.arrays import find, spans
from incrowd.distances.reductions import rounded

DOUBTFUL = 2e-5
"""Squared distances this close to the squared limit are computed again. A term (p + q) log2(p + q) of the quick sum
errs by less than 5e-6 (p + q) in single precision, the shares add up to 2, and half of the sum counts."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Singles = NDArray[np.float32]
Keys = NDArray[np.uint64]


def word_key(word: str) -> int:
    """Return the number that stands for a word in every community."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True, eq=False)
class Profile:
    """One identity's words: keys in ascending order, and how often each was used."""

    keys: Keys
    counts: Ints

    @classmethod
    def of(cls, counted: Mapping[int, int]) -> Profile:
        """Make a profile from counts by key."""
        keys = np.array(sorted(counted), np.uint64)
        return cls(keys, np.array([counted[int(key)] for key in keys], np.int64))

    @classmethod
    def of_words(cls, words: Iterable[str]) -> Profile:
        """Make a profile from words, each as often as it occurs."""
        keys = np.array([word_key(word) for word in words], np.uint64)
        return cls(*_counted(keys, np.ones(len(keys), np.int64)))

    def plus(self, other: Profile) -> Profile:
        """Return both together."""
        keys = np.concatenate([self.keys, other.keys])
        return Profile(*_counted(keys, np.concatenate([self.counts, other.counts])))

    @property
    def empty(self) -> bool:
        """True if there is no word, and so no distance to anybody."""
        return not len(self.keys)

    @property
    def total(self) -> int:
        """How many words there are, repeated ones included."""
        return int(self.counts.sum())

    def counts_at(self, keys: Keys) -> Ints:
        """Return how often each of some words was used."""
        if self.empty:
            return np.zeros(len(keys), np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.counts[at], 0)

    def shares_at(self, keys: Keys) -> Floats:
        """Return the share of each of some words, 0 for those not used."""
        return np.asarray(self.counts_at(keys) / max(self.total, 1))


NOBODY = Profile(np.zeros(0, np.uint64), np.zeros(0, np.int64))


def _counted(keys: Keys, counts: Ints) -> tuple[Keys, Ints]:
    """Add up the counts of equal keys."""
    if not len(keys):
        return keys, counts
    # np.unique would do, but loads all of numpy.ma to ask whether the keys are masked.
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[first], np.add.reduceat(counts[order], first)


def shared_terms(p: Floats, q: Floats) -> Floats:
    """Return what each word that both use adds to twice the resemblance ``1 - d**2``."""
    return np.asarray((p + q) * np.log2(p + q) - p * np.log2(p) - q * np.log2(q))


def distance(a: Profile, b: Profile) -> float:
    """Return the Jensen-Shannon distance of two profiles, rounded as the measures compare it; NaN if one is empty.

    >>> distance(Profile.of_words(["a"]), Profile.of_words(["b"]))
    1.0
    """
    if a.empty or b.empty:
        return float("nan")
    keys = a.plus(b).keys
    p, q = a.shares_at(keys), b.shares_at(keys)
    return float(rounded(np.sqrt(_divergence(p, q, np.zeros(len(keys), np.int64), 1)))[0])


def _divergence(p: Floats, q: Floats, rows: Ints, count: int) -> Floats:
    """Sum the divergence of listed (p, q) by row, without cancellation."""
    middle = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log2(p / middle), 0.0) + np.where(q > 0, q * np.log2(q / middle), 0.0)
    return np.asarray(np.clip(np.bincount(rows, weights=terms, minlength=count) / 2, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class CommunityWords:
    """Word counts of everybody in a community, by person and by word; see :mod:`incrowd.advisor.prepare`."""

    names: NDArray[Any]
    rows: Ints
    """Everybody's fixed-length name, sorted, and their row."""
    posts: Ints
    totals: Ints
    """Posts and words of each row."""
    row_starts: Ints
    row_words: NDArray[np.int32]
    row_counts: NDArray[np.int32]
    """The words (as places in `keys`) of row i lie from ``row_starts[i]`` on."""
    keys: Keys
    word_starts: Ints
    word_rows: NDArray[np.int32]
    word_counts: NDArray[np.int32]
    """The rows that use word k lie from ``word_starts[k]`` on."""

    def __len__(self) -> int:
        return len(self.totals)

    def row_of(self, user: str) -> int | None:
        """Return a person's row, or None if they have no words here."""
        return find(self.names, self.rows, user)

    def profile(self, row: int | None) -> Profile:
        """Return the words of a row; no words for None."""
        if row is None:
            return NOBODY
        span = slice(int(self.row_starts[row]), int(self.row_starts[row + 1]))
        # Places ascend with keys, so the row is in order already.
        return Profile(np.asarray(self.keys[self.row_words[span]]), self.row_counts[span].astype(np.int64))

    def meeting(self, keys: Keys) -> Meeting:
        """Gather who uses any of some words."""
        places = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        known = self.keys[places] == keys if len(self.keys) else np.zeros(len(keys), bool)
        starts = np.zeros(len(keys), np.int64)
        used = np.zeros(len(keys), np.int64)
        starts[known] = self.word_starts[places[known]]
        used[known] = self.word_starts[places[known] + 1] - starts[known]
        taken = spans(starts, used)
        rows = np.asarray(self.word_rows)[taken].astype(
            np.int64
        )  # what bincount would make of them every time
        q = (np.asarray(self.word_counts)[taken] / np.asarray(self.totals)[rows]).astype(np.float32)
        return Meeting(self, keys, rows, used, q, q * np.log2(q))

    def exact(self, profile: Profile, rows: Ints) -> Floats:
        """Return the rounded distances of some rows to a profile."""
        starts = self.row_starts[rows]
        sizes = self.row_starts[rows + 1] - starts
        taken = spans(starts, sizes)
        place = np.repeat(np.arange(len(rows)), sizes)
        q = self.row_counts[taken] / np.repeat(self.totals[rows], sizes)
        used = profile.counts_at(self.keys[self.row_words[taken]])
        # Whole numbers up to here, so that equal profiles are at distance 0 and not nearly so.
        alone = profile.total - np.bincount(place, weights=used, minlength=len(rows))
        divergence = _divergence(used / profile.total, q, place, len(rows)) + alone / profile.total / 2
        return rounded(np.sqrt(np.minimum(divergence, 1.0)))


@dataclass(frozen=True, eq=False)
class Meeting:
    """Everybody's use of some words: who, their share q of it, and q log2 q, word after word."""

    words: CommunityWords
    keys: Keys
    rows: Ints
    used: Ints
    """How many of the entries each word has."""
    q: Singles
    q_log_q: Singles

    def nearness(self, profile: Profile) -> Nearness:
        """Compare everybody with a profile that is made of these words only."""
        p = profile.shares_at(self.keys).astype(np.float32)
        p_log_p = np.zeros(len(p), np.float32)
        np.log2(p, out=p_log_p, where=p > 0)
        p_log_p *= p
        both = np.repeat(p, self.used)
        alone = None if p.all() else both == 0
        both += self.q
        terms = np.log2(both)
        terms *= both
        terms -= np.repeat(p_log_p, self.used)
        terms -= self.q_log_q
        if alone is not None:
            terms[alone] = 0.0
        shared = np.bincount(self.rows, weights=terms, minlength=len(self.words)) / 2
        return Nearness(self.words, profile, 1.0 - shared)

    def average(self, without: int | None) -> Floats:
        """Return the average share of each of the words over all rows but one."""
        others = len(self.words) - (without is not None)
        kept = self.rows != (-1 if without is None else without)
        total = np.bincount(self._columns[kept], weights=self.q[kept], minlength=len(self.keys))
        return np.asarray(total / max(others, 1))

    def users(self, without: int | None) -> Ints:
        """Return how many rows but one use each of the words."""
        kept = self.rows != (-1 if without is None else without)
        return np.bincount(self._columns[kept], minlength=len(self.keys))

    @cached_property
    def _columns(self) -> Ints:
        return np.repeat(np.arange(len(self.keys)), self.used)


@dataclass(frozen=True, eq=False)
class Nearness:
    """Everybody's squared distance to one profile, in single precision, and how to be sure."""

    words: CommunityWords
    profile: Profile
    squares: Floats

    def within(self, limit: float) -> NDArray[np.bool_]:
        """Say of each row whether it is at most `limit` away."""
        if self.profile.empty or limit != limit:
            return np.zeros(len(self.words), bool)
        inside = self.squares <= limit**2
        doubtful = np.flatnonzero(np.abs(self.squares - limit**2) <= DOUBTFUL)
        # Whoever shares no word is at distance 1, exactly.
        doubtful = doubtful[self.squares[doubtful] != 1.0]
        if doubtful.size:
            inside[doubtful] = self.words.exact(self.profile, doubtful) <= rounded(np.array(limit))
        return np.asarray(inside)

"""One profile against everybody in a community, in time linear in the crowd.

This is the one engine for one person: assessing, trying out changes, checking a draft and watching all ask it. A
community's word counts are laid out twice, by person and by word (an inverted index), and memory-mapped. For the
Jensen-Shannon distance d of word shares p and q only the words that both use matter:

    1 - d**2 = sum over shared words of ((p + q) log2(p + q) - p log2 p - q log2 q) / 2,

so one profile is compared with everybody by going through the lists of who uses its words. Whatever comes close to
the line is settled by the formula without cancellation, rounded as every other distance is: the answer is that of
:func:`incrowd.distances.ball_sizes`, to the last person. Nothing here loads more than NumPy, because somebody waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.arrays import Floats, Ints
from incrowd.crowd.array_cache import DiskArray, find_row, release, spans
from incrowd.distances.reductions import rounded

DOUBTFUL = 2e-5
"""Squared distances this close to the squared limit are computed again. A term (p + q) log2(p + q) of the quick sum
errs by less than 5e-6 (p + q) in single precision, the shares add up to 2, and half of the sum counts."""

HELD_ENTRIES = 2**22
"""Uses of words that are held to be gone through again, 16 bytes each: somebody who tries out changes waits for it."""

Singles = NDArray[np.float32]
Keys = NDArray[np.uint64]
Mask = NDArray[np.bool_]


def word_key(word: str) -> int:
    """Return the number that stands for a word in every community."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")


def word_keys(words: Iterable[str]) -> Keys:
    """Return the numbers of several words, in their order."""
    return np.array([word_key(word) for word in words], np.uint64)


@dataclass(frozen=True, eq=False)
class Profile:
    """One identity's words: keys in ascending order, and how often each was used."""

    keys: Keys
    counts: Ints

    @classmethod
    def of_words(cls, words: Iterable[str]) -> Profile:
        """Make a profile from words, each as often as it occurs."""
        keys = word_keys(words)
        return cls.of_counts(keys, np.ones(len(keys), np.int64))

    @classmethod
    def of_counts(cls, keys: Keys, counts: Ints) -> Profile:
        """Make a profile from counts by key, in any order; equal keys are added up."""
        if not len(keys):
            return cls(keys, counts)
        # np.unique would do, but loads all of numpy.ma to ask whether the keys are masked.
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        return cls(ordered[first], np.add.reduceat(counts[order], first))

    def plus(self, other: Profile) -> Profile:
        """Return both together."""
        keys = np.concatenate([self.keys, other.keys])
        return Profile.of_counts(keys, np.concatenate([self.counts, other.counts]))

    @property
    def empty(self) -> bool:
        """True if there is no word, and so no distance to anybody."""
        return not len(self.keys)

    @cached_property
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


NO_WORDS = Profile(np.zeros(0, np.uint64), np.zeros(0, np.int64))


def divergence_terms(p: Floats, q: Floats) -> Floats:
    """Return each word's part of the Jensen-Shannon divergence of p and q; none is negative.

    >>> divergence_terms(np.array([1.0, 0.0]), np.array([0.0, 1.0])).tolist()
    [0.5, 0.5]
    """
    middle = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        left, right = p * np.log2(p / middle), q * np.log2(q / middle)
    return np.asarray((np.where(p > 0, left, 0.0) + np.where(q > 0, right, 0.0)) / 2)


def shared_terms(p: Floats, q: Floats) -> Floats:
    """Return each word's part of the resemblance ``1 - d**2``; 0 for words that one of both does not use.

    >>> float(shared_terms(np.array([0.5, 0.5]), np.array([0.5, 0.5])).sum())
    1.0
    """
    total = p + q
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = total * np.log2(total) - p * np.log2(p) - q * np.log2(q)
    return np.where((p > 0) & (q > 0), terms / 2, 0.0)


def distance(a: Profile, b: Profile) -> float:
    """Return the Jensen-Shannon distance of two profiles; NaN if one is empty.

    >>> distance(Profile.of_words(["a"]), Profile.of_words(["b"]))
    1.0
    """
    if a.empty or b.empty:
        return float("nan")
    keys = a.plus(b).keys
    divergence = divergence_terms(a.shares_at(keys), b.shares_at(keys)).sum()
    return float(np.sqrt(np.clip(divergence, 0.0, 1.0)))


@dataclass(frozen=True, eq=False)
class CommunityIndex:
    """Word counts of everybody in a community, by person and by word."""

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
    word_shares: Floats
    """Everybody's shares of each word, added up."""
    word_starts: Ints
    word_rows: NDArray[np.int32]
    word_counts: NDArray[np.int32]
    """The rows that use word k lie from ``word_starts[k]`` on."""

    @classmethod
    def of_matrix(cls, counted: Any, keys: Keys, **people: NDArray[Any]) -> CommunityIndex:
        """Lay out a sparse matrix of counts, people down, words (with these keys) across."""
        from incrowd.distances.index_layout import lay_out  # Numba takes long to load

        order = np.argsort(keys, kind="stable")
        rows = counted[:, order].tocsr()
        rows.sort_indices()
        block = (
            rows.indices.astype(np.int32),
            rows.data.astype(np.int32),
            np.diff(rows.indptr).astype(np.int64),
        )
        arrays = lay_out([block], len(keys), memory=8 * rows.nnz)
        held = {name: array[:] if isinstance(array, DiskArray) else array for name, array in arrays.items()}
        return cls(keys=keys[order], **people, **held)

    def __len__(self) -> int:
        return len(self.totals)

    def row_of(self, user: str) -> int | None:
        """Return a person's row, or None if they have no words here."""
        return find_row(self.names, self.rows, user)

    def profile(self, row: int | None) -> Profile:
        """Return the words of a row; no words for None."""
        if row is None:
            return NO_WORDS
        span = slice(int(self.row_starts[row]), int(self.row_starts[row + 1]))
        # Places ascend with keys, so the row is in order already.
        return Profile(np.asarray(self.keys[self.row_words[span]]), self.row_counts[span].astype(np.int64))

    def _places(self, keys: Keys) -> tuple[Ints, Mask]:
        """Return where some words lie in `keys`, and which of them are there."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return places, np.asarray(self.keys[places] == keys)

    def users(self, keys: Keys, without: int | None) -> Ints:
        """Return how many rows but one use each of some words."""
        places, known = self._places(keys)
        used = np.zeros(len(keys), np.int64)
        used[known] = self.word_starts[places[known] + 1] - self.word_starts[places[known]]
        return np.asarray(used - (self.profile(without).counts_at(keys) > 0))

    def average(self, keys: Keys, without: int | None) -> Floats:
        """Return the average share of each of some words over all rows but one."""
        places, known = self._places(keys)
        total = np.zeros(len(keys))
        total[known] = self.word_shares[places[known]]
        own = self.profile(without)
        others = len(self) - (not own.empty)
        # What nobody else uses is 0, whatever the rounding left of it.
        left = np.where(self.users(keys, without) > 0, total - own.shares_at(keys), 0.0)
        return np.asarray(left / max(others, 1))

    def comparison(self, keys: Keys) -> Comparison:
        """Find who uses any of some words."""
        places, known = self._places(keys)
        starts, used = np.zeros((2, len(keys)), np.int64)
        starts[known] = self.word_starts[places[known]]
        used[known] = self.word_starts[places[known] + 1] - starts[known]
        return Comparison(self, keys, starts, used)

    def squares(self, profile: Profile) -> Squares:
        """Compare everybody with one profile."""
        return self.comparison(profile.keys).squares(profile)

    def exact(self, profile: Profile, rows: Ints) -> Floats:
        """Return the distances of some rows to a profile."""
        starts = self.row_starts[rows]
        sizes = self.row_starts[rows + 1] - starts
        taken = spans(starts, sizes)
        place = np.repeat(np.arange(len(rows)), sizes)
        q = self.row_counts[taken] / np.repeat(self.totals[rows], sizes)
        used = profile.counts_at(self.keys[self.row_words[taken]])
        # Whole numbers up to here, so that equal profiles are at distance 0 and not nearly so.
        alone = profile.total - np.bincount(place, weights=used, minlength=len(rows))
        terms = divergence_terms(used / profile.total, q)
        divergence = np.clip(np.bincount(place, weights=terms, minlength=len(rows)), 0.0, 1.0)
        return np.asarray(np.sqrt(np.minimum(divergence + alone / profile.total / 2, 1.0)))

    def pieces(self, size: int) -> Iterator[slice]:
        """Cut the rows into ranges whose shares take about so many bytes; what was read of one is let go after it."""
        first, most = 0, size // 12
        while first < len(self):
            last = int(np.searchsorted(self.row_starts, self.row_starts[first] + most, side="right")) - 1
            yield slice(first, max(last, first + 1))
            release(self.row_words, self.row_counts)
            first = max(last, first + 1)

    def shares(self, rows: Ints | slice, keys: Keys) -> Any:
        """Return word shares as a sparse matrix over a sorted list of keys that holds all of ours."""
        import scipy.sparse as sp

        if isinstance(rows, slice):
            first, last, _ = rows.indices(len(self))
            taken: Any = slice(int(self.row_starts[first]), int(self.row_starts[last]))
            sizes, totals = np.diff(self.row_starts[first : last + 1]), self.totals[first:last]
        else:
            starts = self.row_starts[rows]
            sizes, totals = self.row_starts[rows + 1] - starts, self.totals[rows]
            taken = spans(starts, sizes)
        columns = np.asarray(self.row_words[taken])
        if keys is not self.keys:
            columns = np.searchsorted(keys, self.keys)[columns]
        shares = self.row_counts[taken] / np.repeat(totals, sizes)
        indptr = np.append(0, np.cumsum(sizes))
        return sp.csr_matrix((shares, columns, indptr), shape=(len(sizes), len(keys)))


@dataclass(frozen=True, eq=False)
class Uses:
    """Everybody's use of some words, word after word: who, their share q of it, and q log2 q."""

    words: slice
    """Which words these are."""
    rows: Ints
    q: Singles
    q_log_q: Singles


@dataclass(frozen=True, eq=False)
class Comparison:
    """Who uses some words, and how much; held if it is little, else gone through a piece at a time."""

    index: CommunityIndex
    keys: Keys
    starts: Ints
    used: Ints
    """Where the list of each word begins, and how many people it has."""

    def squares(self, profile: Profile) -> Squares:
        """Compare everybody with a profile that is made of these words only."""
        p = profile.shares_at(self.keys).astype(np.float32)
        p_log_p = np.zeros(len(p), np.float32)
        np.log2(p, out=p_log_p, where=p > 0)
        p_log_p *= p
        shared = np.zeros(len(self.index))
        for uses in self._uses():
            used, mine = self.used[uses.words], p[uses.words]
            both = np.repeat(mine, used)
            alone = None if mine.all() else both == 0
            both += uses.q
            terms = np.log2(both)
            terms *= both
            terms -= np.repeat(p_log_p[uses.words], used)
            terms -= uses.q_log_q
            if alone is not None:
                terms[alone] = 0.0
            shared += np.bincount(uses.rows, weights=terms, minlength=len(shared))
        return Squares(self.index, profile, 1.0 - shared / 2)

    @cached_property
    def entries(self) -> int:
        """How many uses there are."""
        return int(self.used.sum())

    def _uses(self) -> Iterable[Uses]:
        """Return everybody's uses, in pieces that fit."""
        return self._held if self.entries <= HELD_ENTRIES else self._gathered(HELD_ENTRIES // 4)

    @cached_property
    def _held(self) -> list[Uses]:
        return list(self._gathered(HELD_ENTRIES))

    def _gathered(self, most: int) -> Iterator[Uses]:
        """Read the lists of some words after the other, about `most` entries at a time."""
        ends = np.cumsum(self.used)
        first = 0
        while first < len(ends):
            last = int(np.searchsorted(ends, (ends[first - 1] if first else 0) + most, side="right"))
            words = slice(first, max(last, first + 1))
            taken = spans(self.starts[words], self.used[words])
            rows = self.index.word_rows[taken].astype(np.int64)  # what bincount would make of them every time
            q = (self.index.word_counts[taken] / self.index.totals[rows]).astype(np.float32)
            yield Uses(words, rows, q, q * np.log2(q))
            first = words.stop
        release(self.index.word_rows, self.index.word_counts)


@dataclass(frozen=True, eq=False)
class Squares:
    """Everybody's squared distance to one profile, in single precision, and how to be sure."""

    index: CommunityIndex
    profile: Profile
    squares: Floats

    def within(self, limit: float) -> Mask:
        """Say of each row whether it is at most `limit` away; nobody is where the limit is undefined."""
        if limit != limit:
            return np.zeros(len(self.index), bool)
        return self.within_each(np.arange(len(self.index)), np.full(len(self.index), limit))

    def within_each(self, rows: Ints, limits: Floats) -> Mask:
        """Say of some rows whether each is at most its own limit away."""
        if self.profile.empty:
            return np.zeros(len(rows), bool)
        squares = self.squares[rows]
        inside = squares <= limits**2
        doubtful = np.flatnonzero(np.abs(squares - limits**2) <= DOUBTFUL)
        # Whoever shares no word is at distance 1, exactly.
        doubtful = doubtful[squares[doubtful] != 1.0]
        if doubtful.size:
            exact = self.index.exact(self.profile, rows[doubtful])
            inside[doubtful] = rounded(exact) <= rounded(limits[doubtful])
        return np.asarray(inside)

"""Habits: what a determined reader notices of somebody beyond which words they use.

Six families, each a sparse row per identity:

==========  ====================================================================================
words       words exactly as written, with their capitals and attached punctuation
vocabulary  words in lower case
phrases     pairs of neighbouring words
style       punctuation runs, line breaks, capitals, short words as written (i, u, lol, IMO)
hours       the hours of the day at which they post (UTC)
weeks       the weeks in which they were active
==========  ====================================================================================

`spelling` (runs of four characters) is there too; it adds nothing once `words` is in (NOTES.md of the
linkability measure).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.crowd.tables import utf8

TEXT_FAMILIES = ("words", "vocabulary", "phrases", "style")
TIME_FAMILIES = ("hours", "weeks")
FAMILIES = (*TEXT_FAMILIES, *TIME_FAMILIES)
CELL_BITS = {"spelling": 18, "words": 20, "vocabulary": 20, "phrases": 20, "style": 16}
WEEK = 7 * 24 * 3600


@dataclass(frozen=True)
class Habits:
    """The habits of some identities: one row each, in the order of `identities`."""

    identities: pl.DataFrame
    """Columns user, community, posts."""
    rows: Mapping[str, sp.csr_matrix]

    def __len__(self) -> int:
        return self.identities.height

    def only(self, keep: Any) -> Habits:
        """Return the habits of some identities, chosen by row numbers or a mask."""
        keep = np.asarray(keep)
        keep = np.flatnonzero(keep) if keep.dtype == bool else keep
        return Habits(self.identities[keep.tolist()], {name: rows[keep] for name, rows in self.rows.items()})


def habits(posts: pl.DataFrame, *, min_posts: int = 1, families: tuple[str, ...] = FAMILIES) -> Habits:
    """Count the habits of every (user, community) with at least `min_posts` posts.

    Parameters
    ----------
    posts
        Columns user, community, time, text, as a crowd returns them.
    """
    by = ["community", "user"]
    ordered = (
        posts.select(*by, "time", "text").filter(pl.len().over(by) >= min_posts).sort([*by, "time", "text"])
    )
    del posts  # large
    identities = ordered.group_by(by, maintain_order=True).agg(posts=pl.len().cast(pl.Int64))
    posts_of = np.concatenate([[0], np.cumsum(identities["posts"].to_numpy())]).astype(np.int64)
    text, time = ordered["text"], ordered["time"]
    del ordered
    letters = utf8(text)
    del text
    rows = _text_rows(*letters, posts_of, [f for f in families if f not in TIME_FAMILIES])
    if "hours" in families:
        rows["hours"] = _hours(time, posts_of)
    if "weeks" in families:
        rows["weeks"] = _weeks(time, posts_of)
    return Habits(identities.select("user", "community", "posts"), rows)


@dataclass(frozen=True, eq=False)
class PostHabits:
    """The written habits of single posts: one row per post under each family; columns mean the same everywhere."""

    rows: dict[str, sp.csr_matrix]

    @property
    def count(self) -> int:
        """How many posts there are."""
        return int(next(iter(self.rows.values())).shape[0])

    def only(self, keep: Any) -> PostHabits:
        """Return some of the posts."""
        return PostHabits({name: rows[keep] for name, rows in self.rows.items()})


def post_habits(texts: pl.Series, families: tuple[str, ...] = TEXT_FAMILIES) -> PostHabits:
    """Count the written habits of each post; sums of rows are the habits of several posts together."""
    each = np.arange(len(texts) + 1, dtype=np.int64)
    counted = _text_rows(*utf8(texts), each, list(families))
    return PostHabits({name: rows.astype(np.float32, copy=False) for name, rows in counted.items()})


def grouping(groups: Sequence[NDArray[np.int64]], posts: int) -> sp.csr_matrix:
    """Return the matrix that sums the rows of each group of posts."""
    sizes = [len(group) for group in groups]
    places = (
        np.concatenate([np.asarray(group, np.int64) for group in groups]) if groups else np.zeros(0, np.int64)
    )
    starts = np.concatenate([[0], np.cumsum(sizes)])
    ones = np.ones(len(places), np.float32)
    return sp.csr_matrix((ones, places, starts), shape=(len(sizes), posts))


def summed(groups: Sequence[NDArray[np.int64]], rows: sp.csr_matrix) -> sp.csr_matrix:
    """Return the sum of the rows of each group of posts: ``grouping(groups, len(rows)) @ rows``, quicker."""
    from incrowd.profiles.kernels import sum_rows  # Numba takes long to load

    ends = np.cumsum([0, *map(len, groups)])
    members = np.concatenate([np.zeros(0, np.int64), *groups]).astype(np.int64)
    parts = sum_rows(ends, members, rows.indptr, rows.indices, rows.data.astype(np.float32), rows.shape[1])
    indptr, indices, data = parts
    return sp.csr_matrix((data, indices, indptr), shape=(len(groups), rows.shape[1]))


def only_used(rows: sp.csr_matrix) -> tuple[NDArray[np.int32], sp.csr_matrix]:
    """Return the habits that any row has, and the rows with these as columns: next to all that there could be, few."""
    used = np.zeros(rows.shape[1], bool)
    used[rows.indices] = True
    habits = np.flatnonzero(used).astype(np.int32)
    place = np.empty(rows.shape[1], np.int32)
    place[habits] = np.arange(len(habits), dtype=np.int32)
    shape = rows.shape[0], len(habits)
    return habits, sp.csr_matrix((rows.data, place[rows.indices], rows.indptr), shape=shape)


MOST_COMMON = 256
"""So many habits, those that most people have, are laid out densely: they are most of the work of a product."""
WORTH_DENSE = 0.3
"""Where rows have more of the common habits than this share, a dense product is quicker than adding one by one."""


@dataclass(frozen=True, eq=False)
class HabitLists:
    """Who has each habit, and how much of it: the commonest ones as a dense block, the others as lists."""

    common: NDArray[np.float32]
    """Common habits down, people across."""
    slot: NDArray[np.int32]
    """Where each habit is: among the common ones, or after them among the rare ones; -1: nobody has it."""
    rare: sp.csr_matrix
    """Rare habits down, people across."""

    @classmethod
    def of(cls, lists: sp.csr_matrix, habits: NDArray[np.int32], width: int) -> HabitLists:
        """Lay out a matrix of habits (down) and people (across); `habits` says which of all `width` these are."""
        held = np.zeros(width, lists.indptr.dtype)
        held[habits] = np.diff(lists.indptr)
        chosen = np.argpartition(-held, min(MOST_COMMON, width - 1))[:MOST_COMMON]
        chosen = np.sort(chosen[held[chosen] > 0])
        slot = np.full(width, -1, np.int32)
        slot[chosen] = np.arange(len(chosen), dtype=np.int32)
        is_common = slot[habits] >= 0
        rest = habits[~is_common]
        slot[rest] = np.arange(len(chosen), len(chosen) + len(rest), dtype=np.int32)
        rare = lists[np.flatnonzero(~is_common)].astype(np.float32)
        return cls(lists[np.flatnonzero(is_common)].toarray().astype(np.float32), slot, rare)

    def products(self, rows: sp.csr_matrix) -> NDArray[np.float32]:
        """Return how much each row (of habits) has in common with everybody: the product of both matrices."""
        from incrowd.profiles.kernels import add_products, dense_rows  # Numba takes long to load

        common, rare, starts = self.common, self.rare, rows.indptr
        places, values = self.slot[rows.indices], rows.data.astype(np.float32, copy=False)
        shared = np.count_nonzero((places >= 0) & (places < len(common)))
        if shared < WORTH_DENSE * len(common) * rows.shape[0]:
            out = np.zeros((rows.shape[0], rare.shape[1]), np.float32)
            add_products(starts, places, values, common, rare.indptr, rare.indices, rare.data, out)
        else:
            out = dense_rows(starts, places, values, len(common)) @ common
            places -= np.int32(len(common))
            add_products(starts, places, values, common[:0], rare.indptr, rare.indices, rare.data, out)
        return out


def _text_rows(data: Any, offsets: Any, posts_of: Any, families: list[str]) -> dict[str, sp.csr_matrix]:
    from incrowd.profiles import kernels as kernel

    codes = {
        "spelling": kernel.SPELLING,
        "words": kernel.WORDS,
        "vocabulary": kernel.VOCABULARY,
        "phrases": kernel.PHRASES,
        "style": kernel.STYLE,
    }

    def count(family: str) -> sp.csr_matrix:
        bits = CELL_BITS[family]
        indptr, indices, counts = kernel.count_habits(codes[family], data, offsets, posts_of, bits)
        return sp.csr_matrix((counts, indices, indptr), shape=(posts_of.size - 1, 1 << bits))

    # The kernel releases the interpreter lock, so families are counted side by side.
    with ThreadPoolExecutor() as pool:
        return dict(zip(families, pool.map(count, families), strict=True))


def _owner(posts_of: Any) -> Any:
    return np.repeat(np.arange(posts_of.size - 1), np.diff(posts_of))


def _hours(time: pl.Series, posts_of: Any) -> sp.csr_matrix:
    """Return square roots of smoothed shares, so that a dot product is the Bhattacharyya coefficient."""
    seconds, owner = _known(time, posts_of)
    shares = np.zeros((posts_of.size - 1, 24))
    np.add.at(shares, (owner, (seconds // 3600) % 24), 1.0)
    known = shares.sum(axis=1) > 0
    shares += 0.5  # few posts say little about the hours not seen
    shares = (np.roll(shares, 1, axis=1) + 2 * shares + np.roll(shares, -1, axis=1)) / 4
    shares /= shares.sum(axis=1, keepdims=True)
    return sp.csr_matrix(np.sqrt(shares) * known[:, None], dtype=np.float32)


def _weeks(time: pl.Series, posts_of: Any) -> sp.csr_matrix:
    seconds, owner = _known(time, posts_of)
    weeks = seconds // WEEK
    shape = (posts_of.size - 1, int(weeks.max(initial=0)) + 1)
    counts = sp.coo_matrix((np.ones(weeks.size, np.float32), (owner, weeks)), shape=shape).tocsr()
    totals = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1.0)
    shares = sp.diags(1.0 / totals) @ counts
    return sp.csr_matrix(shares.sqrt(), dtype=np.float32)


def _known(time: pl.Series, posts_of: Any) -> tuple[Any, Any]:
    known = time.is_not_null().to_numpy()
    return time.fill_null(0).to_numpy().astype(np.int64)[known], _owner(posts_of)[known]

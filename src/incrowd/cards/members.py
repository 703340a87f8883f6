"""The people a card is made of, as its maker sees them. Nothing in here leaves the maker's machine as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.distances.profile_index import Keys, word_keys
from incrowd.text.counting import counts
from incrowd.text.options import TextOptions
from incrowd.text.tokeniser import Tokeniser

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Progress = Callable[[float, float | None, str], None]
HOUR = 3600
MOST_POSTS_ELSEWHERE = 200
"""Of one person, so many posts from elsewhere are read."""


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Some people's words."""

    counts: sp.csr_matrix
    """People down, words across."""
    vocabulary: tuple[str, ...]

    @cached_property
    def keys(self) -> Keys:
        """The numbers of the words, as profiles have them."""
        return word_keys(self.vocabulary)

    def __len__(self) -> int:
        return int(self.counts.shape[0])


@dataclass(frozen=True, eq=False)
class Members:
    """Everybody in a community: word counts, posts, and at which hours they post."""

    counts: sp.csr_matrix
    """People down, words across."""
    first: sp.csr_matrix
    """The same of one half of each person's posts: what somebody else might have seen of them."""
    vocabulary: tuple[str, ...]
    users: NDArray[Any]
    posts: Ints
    hours: Floats
    """Each person's share of posts in each hour of the day (UTC); adds up to 1."""

    def __len__(self) -> int:
        return len(self.posts)

    @cached_property
    def keys(self) -> Keys:
        """The numbers of the words, as profiles have them."""
        return word_keys(self.vocabulary)

    @property
    def words(self) -> Ints:
        """How many words each person wrote, repeated ones included."""
        return np.asarray(self.counts.sum(axis=1)).ravel().astype(np.int64)

    def only(self, rows: NDArray[Any]) -> Members:
        """Return some of them."""
        places = np.arange(len(self))[rows]
        return Members(
            self.counts[places],
            self.first[places],
            self.vocabulary,
            self.users[places],
            self.posts[places],
            self.hours[places],
        )

    def without(self, users: Iterable[str]) -> Members:
        """Return all but some people."""
        gone = set(users)
        return self.only(np.array([user not in gone for user in self.users.tolist()], bool))

    def halves(self) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """Return the word counts of the two halves of everybody's posts."""
        return self.first, (self.counts - self.first).tocsr()


def word_shares(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Return word counts as shares, as distances take them; an empty row stays empty."""
    total = np.asarray(counts.sum(axis=1)).ravel()
    return sp.csr_matrix(sp.diags(1 / np.maximum(total, 1)) @ counts)


def read_members(
    crowd: Crowd,
    communities: Iterable[str] | None,
    text: TextOptions,
    *,
    memory: int = 2**30,
    progress: Progress | None = None,
) -> Members:
    """Read everybody who wrote in some communities, as one community; None: in all of them."""
    wanted = None if communities is None else sorted(set(communities))
    # Halves by the length of the text: as good as by lot, and the same every time.
    half = pl.col("text").str.len_bytes().floordiv(2).mod(2).cast(pl.String)
    counted = counts(crowd, communities=wanted, options=text, memory=memory, progress=progress, period=half)
    table = counted.identities
    users, person = np.unique(table["user"].to_numpy().astype(str), return_inverse=True)
    rows = np.arange(len(person))

    def added(chosen: NDArray[np.bool_]) -> sp.csr_matrix:
        shape = (len(users), len(person))
        together = sp.csr_matrix((np.ones(int(chosen.sum())), (person[chosen], rows[chosen])), shape=shape)
        return (together @ counted.matrix).astype(np.int64).tocsr()

    posts = np.bincount(person, table["posts"].to_numpy(), len(users)).astype(np.int64)
    return Members(
        counts=added(np.ones(len(rows), bool)),
        first=added((table["period"] == "0").to_numpy()),
        vocabulary=tuple(counted.vocabulary.to_list()),
        users=users,
        posts=posts,
        hours=_hours(crowd, wanted, users.tolist()),
    )


def _hours(crowd: Crowd, communities: list[str] | None, users: list[str]) -> Floats:
    posts = crowd.posts()
    if communities is not None:
        posts = posts.filter(pl.col("community").is_in(communities))
    found = (
        posts.filter(pl.col("time").is_not_null())
        .select("user", hour=pl.col("time").floordiv(HOUR).mod(24))
        .group_by("user", "hour")
        .len()
        .join(
            pl.LazyFrame({"user": users, "row": np.arange(len(users))}, schema_overrides={"user": pl.String}),
            on="user",
        )
        .collect()
    )
    table = np.zeros((len(users), 24))
    table[found["row"].to_numpy(), found["hour"].to_numpy()] = found["len"].to_numpy()
    total = table.sum(axis=1, keepdims=True)
    return np.where(total > 0, table / np.maximum(total, 1), 1 / 24)


def read_elsewhere(
    crowd: Crowd,
    community: str,
    text: TextOptions,
    *,
    most: int,
    min_posts: int,
    leave_out: Iterable[str] = (),
    seed: int = 0,
) -> WordCounts:
    """Read some people of a crowd who do not write in a community: they write as strangers to it do."""
    posts = crowd.posts().select("user", "community", "text")
    counted = posts.group_by("user").agg(posts=pl.len(), here=(pl.col("community") == community).any())
    able = counted.filter(~pl.col("here") & (pl.col("posts") >= min_posts)).collect()["user"].sort()
    gone = set(leave_out)
    users = [user for user in able.to_list() if user not in gone]
    chosen = sorted(np.random.default_rng([seed, 2]).permutation(len(users))[:most].tolist())
    people = pl.DataFrame(
        {"user": [users[place] for place in chosen], "row": range(len(chosen))},
        schema={"user": able.dtype, "row": pl.Int64},
    )
    found = (
        posts.join(people.lazy(), on="user")
        .group_by("row", maintain_order=True)
        .head(MOST_POSTS_ELSEWHERE)
        .collect()
    )
    tokeniser = Tokeniser(text)
    tokens = tokeniser.numbers(found["text"])
    owner = np.repeat(found["row"].to_numpy(), tokens.lengths)
    vocabulary = tuple(tokeniser.vocabulary().to_list())
    ones = np.ones(len(owner), np.int64)
    counts = sp.coo_matrix((ones, (owner, tokens.numbers)), shape=(len(chosen), len(vocabulary))).tocsr()
    return WordCounts(counts[np.diff(counts.indptr) > 0], vocabulary)

"""The communities a person writes in: everybody's word profiles, the person's own left out and put back changed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from incrowd.advisor.others import Others, columns_of
from incrowd.distances import Compute

if TYPE_CHECKING:
    import scipy.sparse as sp

    from incrowd.advisor.person import Own
    from incrowd.advisor.spec import AdvisorOptions
    from incrowd.crowd import Crowd
    from incrowd.distances.all_pairs import Progress


@dataclass(frozen=True, eq=False)
class Community:
    """One community: all rows in the order of their users, and where the person's own is."""

    name: str
    shares: sp.csr_matrix
    users: NDArray[Any]
    posts: NDArray[np.int64]
    own: int
    """The person's row as it is in the store."""
    others: Others
    """All rows but the person's."""

    @property
    def strangers(self) -> NDArray[np.int64]:
        """Rows of `shares` that `others` holds, in its order."""
        return np.delete(np.arange(len(self.users)), self.own)


@dataclass(frozen=True, eq=False)
class Written:
    """All communities the person is assessed in, over one vocabulary."""

    communities: dict[str, Community]
    vocabulary: pl.Series
    compute: Compute
    _columns: dict[str, Any] = field(default_factory=dict, repr=False)
    """The last vocabulary that was looked up, and its columns."""
    _profiles: dict[Hashable, sp.csr_matrix | None] = field(default_factory=dict, repr=False)

    def counts(self, own: Own, community: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return how often the person uses each of their words there, and the words' columns."""
        rows = own.words.matrix[own.rows_in(community)]
        return np.asarray(rows.sum(axis=0), np.float64).ravel(), self.columns(own)

    def columns(self, own: Own) -> NDArray[np.int64]:
        """Return the columns of the person's words; they mostly ask with the same vocabulary."""
        if self._columns.get("of") is not own.words.vocabulary:
            self._columns.update(
                of=own.words.vocabulary, columns=columns_of(own.words.vocabulary, self.vocabulary)
            )
        return np.asarray(self._columns["columns"])

    def words_of_columns(self, own: Own) -> list[str]:
        """Return the word of each column, those that only the person uses last."""
        unknown = self.columns(own) >= len(self.vocabulary)
        if not unknown.any():
            return self._words
        return [*self._words, *own.words.vocabulary.filter(pl.Series(unknown))]

    @cached_property
    def _words(self) -> list[str]:
        return self.vocabulary.to_list()

    def profile(self, own: Own, community: str) -> sp.csr_matrix | None:
        """Return the person's shares there; None without a word."""
        key = community, own.state_in(community)
        if key not in self._profiles:
            counts, columns = self.counts(own, community)
            row = self.communities[community].others.row(counts, columns) if counts.sum() else None
            self._profiles[key] = row
        return self._profiles[key]

    def row(self, own: Own, community: str) -> sp.csr_matrix:
        """Return the person's shares where they are known to have words."""
        profile = self.profile(own, community)
        if profile is None:
            raise AssertionError("checked by the caller")
        return profile


def written(
    crowd: Crowd, own: Own, options: AdvisorOptions, progress: Progress | None = None
) -> Written | None:
    """Count the words of everybody in the person's largest communities; None if the person wrote no words."""
    from incrowd.profiles import unigram
    from incrowd.text.counting import counts

    names = list(own.communities)[: options.most_communities]
    if not names:
        return None
    counted = counts(crowd, communities=names, options=options.text, memory=options.memory, progress=progress)
    shares = unigram(counted).matrix
    compute = Compute(memory=options.memory)
    used = np.unique(columns_of(own.words.vocabulary, counted.vocabulary))
    found = {}
    for name in names:
        rows = np.flatnonzero((counted.identities["community"] == name).to_numpy())
        users = counted.identities["user"].to_numpy()[rows]
        me = np.flatnonzero(users == own.user)
        if not me.size:  # posts without a single word
            continue
        place, part = int(me[0]), shares[rows]
        others = Others(part[np.delete(np.arange(len(rows)), place)], counted.vocabulary, compute, used)
        posts = counted.identities["posts"].to_numpy()[rows]
        found[name] = Community(name, part, users, posts, place, others)
    return Written(found, counted.vocabulary, compute)

"""Keep everybody's crowd up to date as posts arrive, one member's row at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.distances import Compute, ball_sizes
from incrowd.distances.all_pairs import replace_row, update_ball_sizes
from incrowd.errors import NotInCrowd
from incrowd.text import tokenise

if TYPE_CHECKING:
    import scipy.sparse as sp

    from incrowd.text.counting import Counts
    from incrowd.text.options import TextOptions


@dataclass
class LiveCommunity:
    """A community's crowd sizes that follow new posts at the cost of two rows of distances each.

    After any number of updates, `sizes` equals a computation from scratch. Words nobody had used before get a
    place of their own as they come.
    """

    counts: sp.csr_matrix
    users: list[str]
    places: dict[str, int]
    text: TextOptions
    radii: NDArray[np.float64]
    sizes: NDArray[np.int64]
    compute: Compute

    @classmethod
    def of(
        cls, counted: Counts, text: TextOptions, radii: Any, compute: Compute | None = None
    ) -> LiveCommunity:
        """Start from the counts of one community."""
        compute = compute or Compute()
        wanted = np.atleast_1d(np.asarray(radii, np.float64))
        counts = counted.matrix.astype(np.float64)
        return cls(
            counts=counts,
            users=counted.identities["user"].to_list(),
            places={word: place for place, word in enumerate(counted.vocabulary)},
            text=text,
            radii=wanted,
            sizes=ball_sizes(_shares(counts), radii=wanted, compute=compute),
            compute=compute,
        )

    def add_post(self, user: str, post: str) -> NDArray[np.int64]:
        """Add a member's new post and return their crowd sizes at the radii."""
        if user not in self.users:
            raise NotInCrowd(
                "this person has no profile in the community; count the community again to add one"
            )
        person = self.users.index(user)
        words = tokenise(post, self.text)
        if words:
            self._grow(words)
            row = self.counts[person].toarray().ravel()
            np.add.at(row, [self.places[word] for word in words], 1.0)
            self.sizes = update_ball_sizes(
                self.sizes,
                _shares(self.counts),
                person,
                (row / row.sum())[None, :],
                radii=self.radii,
                compute=self.compute,
            )
            self.counts = replace_row(self.counts, person, row[None, :])
        return np.asarray(self.sizes[person])

    def _grow(self, words: list[str]) -> None:
        for word in words:
            self.places.setdefault(word, len(self.places))
        self.counts.resize(self.counts.shape[0], len(self.places))


def _shares(counts: sp.csr_matrix) -> sp.csr_matrix:
    import scipy.sparse as sp

    totals = np.asarray(counts.sum(axis=1)).ravel()
    return sp.csr_matrix(sp.diags(1.0 / totals) @ counts)

"""Keep everybody's crowd up to date as posts arrive, one member's profile at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.crowd.array_cache import identities
from incrowd.distances import Compute, ball_sizes
from incrowd.distances.profile_index import CommunityIndex, Profile, distance, word_keys
from incrowd.distances.reductions import rounded
from incrowd.errors import NotInCrowd
from incrowd.text import tokenise
from incrowd.text.counting import Counts
from incrowd.text.options import TextOptions


@dataclass
class LiveCommunity:
    """A community's crowd sizes that follow new posts at the cost of comparing two profiles with everybody.

    After any number of updates, `sizes` equals a computation from scratch.
    """

    index: CommunityIndex
    """Everybody's words at the start."""
    users: list[str]
    text: TextOptions
    radii: NDArray[np.float64]
    sizes: NDArray[np.int64]
    _moved: dict[int, Profile] = field(default_factory=dict, repr=False)
    """The words of those who have posted since, by row."""

    @classmethod
    def of(
        cls, counted: Counts, text: TextOptions, radii: Any, compute: Compute | None = None
    ) -> LiveCommunity:
        """Start from the counts of one community."""
        wanted = np.atleast_1d(np.asarray(radii, np.float64))
        users = counted.identities["user"].to_list()
        names, rows = identities(users)
        posts = counted.identities["posts"].to_numpy().astype(np.int64)
        keys = word_keys(counted.vocabulary)
        index = CommunityIndex.of_matrix(counted.matrix, keys, names=names, rows=rows, posts=posts)
        sizes = ball_sizes(index.shares(slice(None), index.keys), radii=wanted, compute=compute or Compute())
        return cls(index=index, users=users, text=text, radii=wanted, sizes=sizes)

    def add_post(self, user: str, post: str) -> NDArray[np.int64]:
        """Add a member's new post and return their crowd sizes at the radii."""
        if user not in self.users:
            raise NotInCrowd(
                "this person has no profile in the community; count the community again to add one"
            )
        person = self.users.index(user)
        before = self._moved.get(person) or self.index.profile(person)
        words = tokenise(post, self.text)
        if words:
            near_before = self._near(before, person)
            self._moved[person] = before.plus(Profile.of_words(words))
            near = self._near(self._moved[person], person)
            self.sizes = self.sizes + near - near_before.astype(np.int64)
            self.sizes[person] = 1 + near.sum(axis=0)
        return np.asarray(self.sizes[person])

    def _near(self, profile: Profile, person: int) -> NDArray[np.bool_]:
        """Say who else is within each radius of a member's profile: people down, radii across."""
        squares = self.index.squares(profile)
        near = np.column_stack([squares.within(float(radius)) for radius in self.radii])
        for row, words in self._moved.items():
            near[row] = rounded(np.array(distance(profile, words))) <= rounded(self.radii)
        near[person] = False
        return near

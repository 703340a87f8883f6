"""What is really so in a crowd of posts: the answers against which measures are judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from incrowd.crowd.synthetic import style

if TYPE_CHECKING:
    from incrowd.crowd.synthetic.posts import SyntheticPosts


@dataclass(frozen=True)
class PostsTruth:
    """The truth of a crowd of posts, as frames."""

    crowd: SyntheticPosts

    @property
    def identities(self) -> pl.DataFrame:
        """Columns user, community, posts: every identity."""
        members = self.crowd.members
        return pl.DataFrame(
            {
                "user": self.crowd.user_names.gather(members.user),
                "community": self.crowd.place_names.gather(members.community),
                "posts": members.posts,
            }
        )

    @property
    def pairs(self) -> pl.DataFrame:
        """Columns user, source, target: the same user in two communities, each pair once."""
        places = self.identities.with_row_index("place").select("user", "community", "place")
        both = places.join(places, on="user", suffix="_target").filter(
            pl.col("place") < pl.col("place_target")
        )
        return both.select("user", source="community", target="community_target")

    @property
    def states(self) -> pl.DataFrame:
        """Columns user, topic, domain, state, community: one row a user.

        The stake shows in one community only, the one in which the user writes most. A *professional* writes
        about every topic of the domain; *none* used a word of the topic once or twice.
        """
        crowd, names = self.crowd, pl.Series(list(self.crowd.topics))
        domains = pl.Series([topic.domain for topic in crowd.topics.values()])
        return pl.DataFrame(
            {
                "user": crowd.user_names,
                "topic": names.gather(crowd.stakes.topic),
                "domain": domains.gather(crowd.stakes.topic),
                "state": pl.Series(style.STATES).gather(crowd.stakes.state),
                "community": crowd.place_names.gather(crowd.members.community[crowd.members.home]),
            }
        )

    @property
    def styles(self) -> pl.DataFrame:
        """One row an identity: favourite words, dearest first; which of them go everywhere; habits."""
        styles, words = self.crowd.styles, self.crowd.lexicon.words
        favourites = words.gather(styles.favourites.ravel()).reshape(styles.favourites.shape)
        habits = {name: styles.habits[:, column] for column, name in enumerate(style.HABITS)}
        return self.identities.select("user", "community").with_columns(
            favourites=favourites.cast(pl.List(pl.String)),
            shared=pl.Series(styles.shared).cast(pl.List(pl.Boolean)),
            **{name: pl.Series(values) for name, values in habits.items()},
        )

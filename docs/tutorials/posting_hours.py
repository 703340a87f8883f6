"""How many people in a community post at the hours at which you do?"""

import numpy as np
import polars as pl

import incrowd
from incrowd import Assessment, Assumptions, Direction, Findings, Measure, Ready, Standing, ThemeName, Threat


def hours(posts):
    """Return everybody's share of posts in each of the 24 hours (UTC), one row for each person."""
    times = posts.drop_nulls("time").select("user", hour=pl.col("time") // 3600 % 24)
    users, row = np.unique(times["user"].to_numpy(), return_inverse=True)
    counts = np.zeros((len(users), 24))
    np.add.at(counts, (row, times["hour"].to_numpy()), 1)
    return counts / counts.sum(axis=1, keepdims=True)


def alike(shares, mine, radius=0.4):
    """Count the rows within `radius` of one row (total variation, 0 to 1)."""
    return int((np.abs(shares - mine).sum(axis=1) / 2 <= radius).sum())


class PostingHours(Measure):
    """What incrowd has to know to ask this measure and to show it."""

    name, about, theme, reads = "hours", "when you post", ThemeName.SINGLED_OUT, "posts"
    question = "How many people in a community post at the hours at which you do?"
    adversaries = {"clock": "someone who sees when people post"}

    def prepare(self, crowd, options):
        """Make ready for anybody in a crowd."""
        return ReadyHours(crowd)

    def everybody(self, crowd, options):
        """Say how the risk is spread over a whole crowd."""
        shares = hours(crowd.crowd().posts().collect())
        sizes = np.array([alike(shares, mine) for mine in shares], float)
        told = {
            "meaning": self.question,
            "adversary": self.adversaries["clock"],
            "standing": Standing.HEURISTIC,
        }
        spread = incrowd.spread(sizes, options.smallest, name="hours", threat=Threat.SINGLING_OUT, **told)
        return incrowd.CrowdRates(spreads=(spread,))


class ReadyHours(Ready):
    """The measure on one crowd."""

    def __init__(self, crowd):
        self.crowd = crowd

    def assess(self, person, *, explain=True, community=None):
        """Measure a person, as they are or after changes; for a draft in one community only."""
        places = [community] if community else person.communities
        return Findings(tuple(self._in(person, place) for place in places))

    def _in(self, person, place):
        others = self.crowd.crowd().posts(community=place).filter(pl.col("user") != person.user).collect()
        mine = hours(person.posts.filter(community=place).with_columns(user=pl.lit("you")))
        size = 1 + alike(hours(others), mine[0]) if len(mine) else np.nan
        return Assessment(
            measure="hours",
            subject=f"you in {place}",
            value=float(size),
            unit="people",
            direction=Direction.HIGHER_IS_SAFER,
            meaning=f"{size} people in {place}, you included, post at about the hours you do.",
            standing=Standing.HEURISTIC,
            assumptions=Assumptions(adversary=PostingHours.adversaries["clock"]),
            crowd_size=others["user"].n_unique() + 1,
            reason="" if len(mine) else f"no post of yours in {place} has a time",
        )

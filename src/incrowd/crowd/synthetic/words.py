"""Pronounceable made-up words and names: short ones first, all distinct, none of them English.

A word is its own number written in syllables, so any range of them can be made without the ones before.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from incrowd.crowd.synthetic.chance import Ints

# No "e": most short English words that fit the pattern (here, more, some, were) end in it.
SYLLABLES = pl.Series([c + v for c in "bdfgklmnprstvz" for v in "aiou"], dtype=pl.String)
BASE = len(SYLLABLES)
SHORTEST, LONGEST = 2, 5
SCATTER = 1237  # coprime to BASE: neighbours in rank do not look alike

PLACES = pl.Series(["club", "talk", "corner", "forum", "hub", "daily", "circle", "lounge"], dtype=pl.String)


def made_up_words(count: int, start: int = 0) -> pl.Series:
    """Return the made-up words number `start` to `start + count - 1`."""
    parts = [pl.Series([], dtype=pl.String)]
    first = 0
    for syllables in range(SHORTEST, LONGEST + 1):
        size = BASE**syllables
        low, high = max(start - first, 0), min(start + count - first, size)
        if low < high:
            parts.append(_spell(np.arange(low, high, dtype=np.int64) * SCATTER % size, syllables))
        first += size
    return pl.concat(parts).alias("word")


def _spell(numbers: Ints, syllables: int) -> pl.Series:
    """Write each number in `syllables` digits of the syllable alphabet."""
    digits = [SYLLABLES.gather(numbers // BASE**place % BASE).alias(str(place)) for place in range(syllables)]
    return pl.DataFrame(digits).select(pl.concat_str(pl.all())).to_series()


def user_names(count: int, cast: tuple[str, ...] = ()) -> pl.Series:
    """Return the names of users 0, 1, ...: the cast first. User *i* has one name in every kind of table."""
    ordinary = made_up_words(count - len(cast))
    tails = pl.Series(np.arange(len(ordinary)) % 89 + 10).cast(pl.String)
    return pl.concat([pl.Series(cast, dtype=pl.String), ordinary + "_" + tails]).alias("user")


def community_names(count: int, given: tuple[str, ...] = ()) -> pl.Series:
    """Return the names of communities 0, 1, ...: those given first."""
    made_up = made_up_words(count - len(given), start=50)
    places = PLACES.gather(np.arange(len(made_up)) % len(PLACES))
    return pl.concat([pl.Series(given, dtype=pl.String), made_up + places]).alias("community")


def titles(count: int) -> pl.Series:
    """Return the names of items 0, 1, ..."""
    return made_up_words(count, start=BASE).str.to_titlecase().alias("item")

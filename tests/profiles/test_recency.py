"""Recent words weigh more; a half-life long enough forgets nothing."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from incrowd.crowd import Crowd
from incrowd.errors import InputError
from incrowd.profiles.models import recent_counts
from incrowd.text.counting import counts

WEEK = 7 * 86_400
START = 1_400_025_600 // WEEK * WEEK


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    rows = [
        ("ann", "tea", START, "kettle kettle"),
        ("ann", "tea", START + 2 * WEEK, "teapot"),
        ("bob", "tea", START + 2 * WEEK, "kettle"),
        ("bob", "milk", START, "cow"),
    ]
    return Crowd.from_frame(pl.DataFrame(rows, schema=["user", "community", "time", "text"], orient="row"))


def test_a_half_life_of_a_week_halves_every_week(crowd: Crowd) -> None:
    faded = recent_counts(crowd, 7.0)
    assert faded.identities.to_dict(as_series=False) == {
        "user": ["bob", "ann", "bob"],
        "community": ["milk", "tea", "tea"],
        "posts": [1, 2, 1],
    }
    words = list(faded.vocabulary)
    ann = dict(zip(words, faded.matrix[1].toarray().ravel(), strict=True))
    assert ann == {"cow": 0.0, "kettle": 0.5, "teapot": 1.0}


def test_a_long_memory_is_the_plain_count(crowd: Crowd) -> None:
    plain, faded = counts(crowd), recent_counts(crowd, 1e12)
    assert np.allclose(plain.matrix.toarray(), faded.matrix.toarray())
    assert plain.identities.equals(faded.identities)


def test_bad_memories_are_refused(crowd: Crowd) -> None:
    with pytest.raises(InputError, match="above 0"):
        recent_counts(crowd, 0)
    timeless = Crowd.from_frame(
        pl.DataFrame(
            {"user": ["a"], "community": ["c"], "time": [None], "text": ["word"]},
            schema_overrides={"time": pl.Int64},
        )
    )
    with pytest.raises(InputError, match="no post has a time"):
        recent_counts(timeless, 7)

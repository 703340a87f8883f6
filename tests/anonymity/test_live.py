"""Crowd sizes that follow posts equal those computed from scratch."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.distances import Compute, ball_sizes
from incrowd.errors import NotInCrowd
from incrowd.measures.anonymity.assess import LiveCommunity
from incrowd.profiles import unigram
from incrowd.text import TextOptions, count_tokens

RADII = [0.3, 0.6, 0.9]
COMPUTE = Compute(kernel="reference")
WORDS = ["kettle", "teapot", "sugar", "lemon", "cup"]
post = st.lists(st.sampled_from([*WORDS, "brandnew", "the"]), min_size=0, max_size=5).map(" ".join)


def table(posts: list[tuple[str, str]]) -> pl.DataFrame:
    return pl.DataFrame(
        {"user": [u for u, _ in posts], "community": ["tea"] * len(posts), "text": [t for _, t in posts]}
    )


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), post), max_size=5))
def test_updates_equal_a_recount(news: list[tuple[str, str]]) -> None:
    start = [(user, f"{WORDS[i]} {WORDS[i + 1]}") for i, user in enumerate("abcd")]
    options = TextOptions()
    live = LiveCommunity.of(count_tokens(table(start), options), options, RADII, COMPUTE)
    for user, text in news:
        live.add_post(user, text)
    again = unigram(count_tokens(table(start + news), options))
    assert live.sizes.tolist() == ball_sizes(again.matrix, radii=RADII, compute=COMPUTE).tolist()


def test_a_stranger_is_refused() -> None:
    options = TextOptions()
    live = LiveCommunity.of(count_tokens(table([("a", "kettle")]), options), options, RADII, COMPUTE)
    with pytest.raises(NotInCrowd, match="no profile"):
        live.add_post("z", "kettle")

"""Everybody's crowd in one community, and one member's in words."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest

from incrowd.crowd import Crowd
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.anonymity.assess import community_anonymity, member_anonymity
from incrowd.measures.anonymity.spec import AnonymityOptions


def clones(count: int, strangers: int = 0) -> Crowd:
    words = ["tea milk sugar"] * count + [f"word{i} other{i} thing{i}" for i in range(strangers)]
    users = [f"u{i}" for i in range(len(words))]
    frame = pl.DataFrame(
        {"user": users, "community": ["c"] * len(words), "time": [0] * len(words), "text": words}
    )
    return Crowd.from_frame(frame)


def test_clones_hide_each_other_and_strangers_stand_alone() -> None:
    result = community_anonymity(
        clones(4, strangers=2), AnonymityOptions(community="c", radius=0.5, wanted=4)
    )
    assert sorted(result.sizes.tolist()) == [1, 1, 4, 4, 4, 4]
    assert sorted(result.ranks.tolist()) == [1, 1, 3, 3, 3, 3]
    assert np.sort(result.needed)[:4].tolist() == [0.0] * 4
    assert result.to_dict()["sizes"] == {"min": 1, "median": 4.0, "mean": 3.0, "max": 4}
    assert result.to_frame()["crowd"].to_list() == [1, 1, 4, 4, 4, 4]
    assert "user" not in result.to_frame().columns


def test_one_member_and_a_wish_beyond_the_community() -> None:
    alone = community_anonymity(clones(1), AnonymityOptions(community="c"))
    assert alone.sizes.tolist() == [1]
    assert np.isnan(alone.needed).all()
    assert member_anonymity(alone, "u0").value == 1.0
    nobody_else = community_anonymity(clones(3), AnonymityOptions(community="c", wanted=1))
    assert nobody_else.needed.tolist() == [0.0] * 3


def test_a_member_in_words_with_evidence_that_adds_up(tiny_crowd: Crowd) -> None:
    result = community_anonymity(tiny_crowd, AnonymityOptions(community="cycling", radius=0.85))
    person = member_anonymity(result, "alex")
    assert person.crowd_size == result.members
    assert math.fsum(part.contribution for part in person.evidence) == pytest.approx(person.explained)
    assert all(part.contribution >= -1e-12 for part in person.evidence)
    assert "cycling" in person.sentence()
    json.dumps(result.to_dict(), allow_nan=True)


def test_the_curve_never_falls_and_meets_the_sizes(tiny_crowd: Crowd) -> None:
    result = community_anonymity(tiny_crowd, AnonymityOptions(community="cycling", radius=0.8))
    assert (np.diff(result.curve, axis=1) >= 0).all()
    assert (result.curve[:, 80] == result.sizes).all()
    assert (result.curve[:, -1] == result.members).all()


def test_who_is_not_there_is_said(tiny_crowd: Crowd) -> None:
    with pytest.raises(NotInCrowd, match="it has: "):
        community_anonymity(tiny_crowd, AnonymityOptions(community="chess"))
    with pytest.raises(InputError, match="lower min_posts"):
        community_anonymity(tiny_crowd, AnonymityOptions(community="cycling", min_posts=9_999))
    result = community_anonymity(tiny_crowd, AnonymityOptions(community="cycling"))
    with pytest.raises(NotInCrowd, match="no profile"):
        member_anonymity(result, "nobody")


@pytest.mark.parametrize(
    "bad", [{"radius": 2}, {"model": "x"}, {"distance": "x"}, {"rule": "x"}, {"wanted": 0}]
)
def test_bad_options_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InputError):
        AnonymityOptions(**({"community": "c"} | bad))  # type: ignore[arg-type]

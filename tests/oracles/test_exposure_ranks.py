"""Ranks for topics, written from the definitions alone in plain Python, against the command's JSON and the API."""

from __future__ import annotations

import json
import math
import sys
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from incrowd.cli import main
from incrowd.crowd import Crowd
from incrowd.measures.exposure.scoring import score
from incrowd.measures.exposure.space import BagOfWords
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.exposure.topics import Topic, TopicSet

WEEK = 7 * 86_400
MONDAY = 4 * 86_400
FEATURES = {
    "fear": {"dread": 1.0, "panic attack": 2.5, "calm": -1.0},
    "money": {"debt": 1.0, "loan": 1.0},
    "play": {"dice": 1.0, "attack": 0.5},
}
TOPICS = TopicSet(
    tuple(Topic(name, "one", tuple(words), weights=tuple(words.values())) for name, words in FEATURES.items())
)
WORDS = ["dread", "panic", "attack", "calm", "debt", "loan", "dice", "pancakes"]
Post = tuple[str, int | None, str]
posts_of_some = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "cat"]),
        st.one_of(st.none(), st.sampled_from([MONDAY, MONDAY + WEEK - 1, MONDAY + WEEK, MONDAY + 9 * WEEK])),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
    ),
    min_size=1,
    max_size=9,
)


def similarity(text: str, topic: str) -> float:
    """Cosine of a post's counts of all topics' words and pairs with a topic's weights; nothing below 0."""
    words = text.split()
    said = words + [f"{a} {b}" for a, b in pairwise(words)]
    every = {word for own in FEATURES.values() for word in own}
    counts = {word: said.count(word) for word in every}
    length = math.sqrt(sum(count**2 for count in counts.values()))
    own = FEATURES[topic]
    along = sum(counts[word] * weight for word, weight in own.items())
    return max(along, 0.0) / (length * math.sqrt(sum(w**2 for w in own.values()))) if length else 0.0


def lasting(posts: list[Post], topic: str, m: int = 3) -> float:
    weeks: dict[int, float] = {}
    for _, time, text in posts:
        if time is not None:
            week = (time - MONDAY) // WEEK
            weeks[week] = max(weeks.get(week, 0.0), similarity(text, topic))
    return sum(sorted(weeks.values(), reverse=True)[:m]) / m if weeks else math.nan


def risk(posts: list[Post], topic: str, dimension: str, *, k: float = 0.3, m: int = 3) -> float:
    def seen(name: str) -> float:
        return (
            lasting(posts, name, m) if "T" in dimension else max(similarity(text, name) for *_, text in posts)
        )

    if "D" not in dimension:
        return seen(topic)
    others = sorted((seen(name) for name in FEATURES if name != topic), reverse=True)
    return seen(topic) - others[math.ceil(Fraction(str(k)) * len(others)) - 1]


def rank(risks: dict[str, float], user: str) -> int:
    """Ties share the more exposed rank; who has no risk comes last."""
    known = {name: -math.inf if math.isnan(one) else one for name, one in risks.items()}
    return 1 + sum(one > known[user] + 1e-9 for one in known.values())


def crowd_of(posts: list[Post], path: Path | None = None) -> Crowd:
    frame = pl.DataFrame(posts, schema={"user": pl.String, "time": pl.Int64, "text": pl.String}, orient="row")
    return Crowd.from_frame(frame.with_columns(community=pl.lit("c")), path=path)


@given(posts_of_some, st.sampled_from(["", "D", "T", "DT"]))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_risks_of_everybody_are_the_definitions(posts: list[Post], dimension: str) -> None:
    scored = score(crowd_of(posts), BagOfWords(TOPICS), ExposureOptions(dimension=dimension))  # type: ignore[arg-type]
    for place, topic in enumerate(FEATURES):
        expected = {user: risk([p for p in posts if p[0] == user], topic, dimension) for user in scored.users}
        for row, user in enumerate(scored.users):
            assert scored.risks()[row, place] == pytest.approx(expected[user], abs=1e-9, nan_ok=True)
            if not math.isnan(expected[user]):
                near = [abs(a - b) for a in expected.values() for b in expected.values() if a != b]
                if min(near, default=1.0) > 1e-9:  # what differs by rounding alone may rank either way
                    assert scored.ranks(topic)[row] == rank(expected, user)


@pytest.mark.parametrize(
    "posts",
    [
        [("me", MONDAY, "dread panic attack"), ("ann", MONDAY, "dread"), ("bob", MONDAY + WEEK, "debt loan")],
        [("me", MONDAY, "dread")],
        [(name, MONDAY, "panic attack debt") for name in ("me", "ann", "bob", "cat")],
        [("me", None, "dread"), ("ann", MONDAY, "dread")],
        [("me", MONDAY, "pancakes"), ("ann", MONDAY, "pancakes")],
    ],
    ids=["some", "one person", "clones", "undated", "nothing known"],
)
def test_the_command_ranks_by_the_definitions(
    posts: list[Post], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = tmp_path / "topics.toml"
    tables = [
        f'[{name}]\ndomain = "one"\nweights = {{ {", ".join(f"{json.dumps(w)} = {x}" for w, x in own.items())} }}\n'
        for name, own in FEATURES.items()
    ]
    topics.write_text("\n".join(tables), encoding="utf-8")
    crowd = crowd_of(posts, tmp_path / "crowd")
    arguments = ["exposure", "rank", str(crowd.path), "--user", "me", "--topics", str(topics), "--json"]
    with pytest.MonkeyPatch.context() as patch, suppress(SystemExit):
        patch.setattr(sys, "argv", ["incrowd", *arguments])
        main()
    found = {
        one["assumptions"]["parameters"]["topic"]: one
        for one in json.loads(capsys.readouterr().out)["assessments"]
    }
    users = sorted({user for user, *_ in posts})
    for topic in FEATURES:
        risks = {user: risk([p for p in posts if p[0] == user], topic, "T") for user in users}
        if math.isnan(risks["me"]):
            assert found[topic]["value"] is None
            assert "undated_posts" in found[topic]["reason"]
        else:
            assert found[topic]["value"] == rank(risks, "me")
            if found[topic]["evidence"]:
                assert found[topic]["explained"] == pytest.approx(risks["me"])

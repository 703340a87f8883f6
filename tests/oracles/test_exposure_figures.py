"""Figures of the exposure comparison against brute force; every interval it prints covers what it says."""

from __future__ import annotations

import csv
import itertools
import json
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.cli import main
from incrowd.crowd import Crowd
from incrowd.measures.exposure.comparison import people_to_judge
from incrowd.measures.exposure.evaluation import (
    auc,
    auc_interval,
    leave_people_out,
    mcnemar,
)
from incrowd.measures.exposure.scoring import score
from incrowd.measures.exposure.space import BagOfWords
from incrowd.measures.exposure.topics import starter_topics
from incrowd.measures.exposure.training import decide

HITS = st.sampled_from([0.0, 0.25, 0.5, 0.6, 1.0])


@given(st.lists(st.tuples(HITS, HITS), min_size=1, max_size=9))
@settings(max_examples=60, deadline=None)
def test_mcnemar_counts_all_ways_to_flip_signs(pairs: list[tuple[float, float]]) -> None:
    differences = [a - b for a, b in pairs]
    seen = abs(sum(differences))
    ways = [
        abs(sum(sign * one for sign, one in zip(signs, differences, strict=True)))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    expected = sum(way >= seen - 1e-9 for way in ways) / len(ways)
    assert mcnemar(*zip(*pairs, strict=True)) == pytest.approx(expected)


def test_mcnemar_does_not_round_ties() -> None:
    """Sixty ties of six tenths are 36 hits expected, against 39: no difference to speak of."""
    assert mcnemar([0.6] * 60, [1] * 39 + [0] * 21) > 0.3
    many = np.random.default_rng(0).choice([0.1, 0.3, 0.55, 0.8], 300)
    assert mcnemar(many, many[::-1]) > 0.9


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0, float("nan")]), st.booleans()), min_size=1, max_size=8)
)
def test_auc_counts_pairs(people: list[tuple[float, bool]]) -> None:
    scores = [-1.0 if np.isnan(s) else s for s, _ in people]
    pairs = [
        1.0 if a > b else 0.5 if a == b else 0.0
        for (a, one), (b, other) in itertools.product(
            zip(scores, (y for _, y in people), strict=True), repeat=2
        )
        if one and not other
    ]
    found = auc([s for s, _ in people], [float(y) for _, y in people])
    undefined = not pairs or all(np.isnan(s) for s, _ in people)
    assert np.isnan(found) if undefined else found == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize(
    ("found", "others", "apart", "steps"),
    [(20, 80, 1.0, 0), (10, 30, 2.5, 0), (40, 60, 0.0, 0), (25, 75, 1.2, 3)],
)
def test_the_interval_of_an_auc_covers_it(found: int, others: int, apart: float, steps: int) -> None:
    rng = np.random.default_rng(found)

    def scores(people: int, shift: float) -> np.ndarray:
        drawn = rng.normal(size=people) + shift
        return np.floor(drawn * steps) if steps else drawn

    big = np.concatenate([scores(20_000, apart), scores(20_000, 0)])
    truth = auc(big, np.repeat([1.0, 0.0], 20_000))
    votes = np.repeat([1.0, 0.0], [found, others])
    held = 0
    for _ in range(400):
        low, high = auc_interval(
            auc(np.concatenate([scores(found, apart), scores(others, 0)]), votes), found, others
        )
        held += low <= truth <= high
    assert held / 400 >= 0.93


@pytest.mark.parametrize(
    ("people", "topics", "share", "apart"),
    [
        (80, 1, 0.25, 1.0), (80, 4, 0.2, 1.0), (50, 3, 0.2, 2.0),
        (12, 1, 0.5, 2.5), (30, 1, 0.2, 4.5), (80, 1, 0.2, 4.0),  # often everybody sensitive comes first
    ],
)  # fmt: skip
def test_the_interval_of_map_covers_it_where_topics_share_people(
    people: int, topics: int, share: float, apart: float
) -> None:
    """What makes one person easy to find makes them so for every topic: people are left out of all topics at once."""
    rng = np.random.default_rng(people + topics)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        common = rng.normal(size=(n, 1))
        votes = np.sqrt(0.5) * (common + rng.normal(size=(n, topics))) > np.sqrt(2) * _quantile(
            1 - share
        ) / np.sqrt(2)
        return apart * votes + np.sqrt(0.5) * (
            rng.normal(size=(n, 1)) + rng.normal(size=(n, topics))
        ), votes * 1.0

    truth = np.mean(
        [_precision(one, vote) for one, vote in zip(*(part.T for part in draw(200_000)), strict=True)]
    )
    held, tries = 0, 150
    for _ in range(tries):
        scores, votes = draw(people)
        while not votes.any(axis=0).all():
            scores, votes = draw(people)
        names = [str(at) for at in range(topics)]
        found = leave_people_out(
            {"x": dict(zip(names, scores.T, strict=True))},
            dict(zip(names, votes.T, strict=True)),
            {name: np.arange(people) for name in names},
        )["x"]
        low, high = found.interval()
        held += low <= truth <= high
        assert found.value < 1 or low < 1 == high
    assert held / tries >= 0.9  # 0.93 within what 150 tries can tell


def _quantile(share: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(share)


def _precision(scores: np.ndarray, votes: np.ndarray) -> float:
    ordered = votes[np.argsort(-scores)]
    return float((np.cumsum(ordered) / np.arange(1, len(ordered) + 1))[ordered > 0].mean())


def test_every_topic_has_people_drawn_for_itself() -> None:
    """Five topics, a hundred people each out of 2,000 who are all alike: about 450 different people, not 100."""
    frame = pl.DataFrame(
        {"user": [f"u{i}" for i in range(2_000)], "community": "c", "time": 0, "text": "pancakes"}
    )
    scored = score(Crowd.from_frame(frame), BagOfWords(starter_topics()))
    drawn = people_to_judge(scored, scored.space.topics.names[:5], 100, 100.0, seed=1)
    assert drawn.height == 500
    assert 420 <= drawn["user"].n_unique() <= 480
    again = people_to_judge(scored, scored.space.topics.names[:5], 100, 100.0, seed=1)
    assert drawn["user"].to_list() == again["user"].to_list()


def test_what_is_undefined_is_printed_as_undefined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without times, no lasting interest is seen: no figure and no p value, but a reason, in text and JSON."""
    words = ["debt", "loan", "pancakes", "maple"]
    with (
        (tmp_path / "posts.jsonl").open("w", encoding="utf-8") as posts,
        (tmp_path / "labels.csv").open("w", encoding="utf-8", newline="") as labels,
    ):
        rows = csv.writer(labels)
        rows.writerow(["user", "topic", "vote"])
        for i in range(12):
            text = f"{words[i % 4]} {words[(i + 1) % 4]}"
            posts.write(json.dumps({"user": f"u{i}", "community": "c", "text": text}) + "\n")
            rows.writerow([f"u{i}", "debts", int(i % 4 < 2)])
    crowd = str(tmp_path / "crowd")

    def run(arguments: list[str]) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["incrowd", *arguments])
            with suppress(SystemExit):
                main()
        return capsys.readouterr().out

    run(["ingest", str(tmp_path / "posts.jsonl"), "--crowd", crowd, "--kind", "posts"])
    asked = ["exposure", "evaluate", crowd, "--labels", str(tmp_path / "labels.csv")]
    plain = json.loads(run([*asked, "--json"]))
    for method in ("BOW-T", "BOW-DT"):
        assert plain["methods"][method]["map"] is None
        assert plain["methods"][method]["r_precision_micro"] is None
        assert "debts" in plain["methods"][method]["reason"]
        assert plain["significance"][method]["mcnemar"] is None
        assert plain["significance"][method]["reason"]
        assert plain["auc"]["debts"][method] is None
    assert plain["methods"]["BOW"]["map"] > 0.5
    low, high = plain["auc_interval"]["debts"]["BOW"]
    assert low <= plain["auc"]["debts"]["BOW"] <= high
    assert "undefined" in run(asked)
    study = run(["study", "exposure", crowd, "--labels", str(tmp_path / "labels.csv"), "--json"])
    assert "NaN" not in study


def test_table_1_counts_judges_who_agree() -> None:
    """The paper's table 1: so many judges say sensitive, on so many topics; from all of them down to none."""
    answers = {0: (1, 1, 1), 1: (1, 0, 1), 2: (0, 0, 1), 3: (1, 1, 1)}
    votes = pl.DataFrame(
        [
            {"judge": f"j{judge}", "topic": topic, "sensitive": vote, "domain": "law"}
            for topic, row in answers.items()
            for judge, vote in enumerate(row)
        ]
    )
    table = decide(votes).table_1()
    assert table.rows() == [(3, 2), (2, 1), (1, 1), (0, 0)]
    assert decide(votes).to_dict()["domains"] == [{"domain": "law", "topics": 4, "sensitive": 3}]

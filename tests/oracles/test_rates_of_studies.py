"""The card study and the disclosure study: every number of theirs from the rows behind it, one by one."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean, median
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.oracles.linking import Forums, spearman

from incrowd.crowd import Crowd
from incrowd.study.card import CardRates, CardStudyOptions, card_rates, card_study
from incrowd.study.disclosures import AttributeRates, disclosure_rates, disclosures_study
from incrowd.text.options import TextOptions


@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_the_card_study(seed: int) -> None:
    """Made-up crowds as rows, people as columns; the line of ten people and the ends of intervals are often met."""
    rng = np.random.default_rng(seed)
    exact = rng.choice([1, 9, 10, 11, 30], 13)
    made = np.maximum(exact + rng.choice([-2, -1, 0, 0, 1, 2], (4, 13)), 1).astype(float)
    low, high = made - rng.choice([0, 1], made.shape), made + rng.choice([0, 1, 3], made.shape)
    community: Any = SimpleNamespace(people=50, words=["a", "b"], concentration=1.0)
    found = CardRates(community, None, exact, made, low, high).to_dict()
    truth, told, ends = exact.tolist(), made.tolist(), list(zip(low.tolist(), high.tolist(), strict=True))
    every = [(n, k) for n in range(4) for k in range(13)]
    assert found["pairs"] == 13
    assert found["crowds"] == 4
    assert found["same_side"] == pytest.approx(mean((truth[k] >= 10) == (told[n][k] >= 10) for n, k in every))
    assert found["covered"] == pytest.approx(
        mean(ends[n][0][k] <= truth[k] <= ends[n][1][k] for n, k in every)
    )
    assert found["spearman"] == pytest.approx(mean(spearman(truth, one) for one in told))
    assert found["median_exact"] == median(truth)
    assert found["median_card"] == pytest.approx(mean(median(one) for one in told))
    factors = [median((h + 1) / (w + 1) for w, h in zip(*one, strict=True)) for one in ends]
    assert found["width"] == pytest.approx(mean(factors))


def test_the_card_table_says_each_number_once(tmp_path: Any) -> None:
    community: Any = SimpleNamespace(people=50, words=["a", "b", "c"], concentration=1.0)
    exact, low, high = np.array([4, 12, 30]), np.array([[1.0, 5.0, 40.0]]), np.array([[9.0, 25.0, 70.0]])
    rates = CardRates(community, None, exact, np.array([[5.0, 8.0, 50.0]]), low, high)
    rows = [("p", "a", "x"), ("p", "b", "y")]
    frame = pl.DataFrame(rows, schema=["user", "community", "text"], orient="row").with_columns(
        time=pl.lit(1)
    )
    crowd = Crowd.from_frame(frame, path=tmp_path / "crowd", plain_names=True)
    (table,) = card_study(crowd, rates, CardStudyOptions(source="a", target="b")).tables
    # 12 and 8 lie on either side of ten; 4 and 12 within their interval, 30 is not; of 10/2, 26/6 and 71/41 the middle.
    assert dict(table.rows) == {
        "people judged": 3,
        "people in the community, by the card": 50,
        "words in the card": 3,
        "Spearman of exact and made-up numbers": pytest.approx(1.0),
        "share on the same side of 10 people": pytest.approx(2 / 3),
        "median, exact": 12,
        "median, from the card": 8,
        "share of exact numbers within the interval": pytest.approx(2 / 3),
        "median width of the interval, as a factor": pytest.approx(26 / 6),
    }


def test_the_exact_number_is_of_people_who_are_not_judged(tmp_path: Any) -> None:
    """Of the target's members who are in no other community: how many are as near as the own second profile is?"""
    rng = np.random.default_rng(0)
    words = [f"w{n}" for n in range(15)]
    posts = []
    for person in range(130):
        likes = rng.dirichlet(np.full(15, 0.5))
        for community in ("chess", "books") if person < 12 else ("chess",):
            posts += [(f"p{person:03}", community, " ".join(rng.choice(words, 9, p=likes))) for _ in range(3)]
    frame = pl.DataFrame(posts, schema=["user", "community", "text"], orient="row").with_columns(
        time=pl.lit(1)
    )
    crowd = Crowd.from_frame(frame, path=tmp_path / "crowd", plain_names=True)
    options = CardStudyOptions(
        source="books", target="chess", min_posts=3, crowds=2, k=2,
        text=TextOptions(tokens="simple", keep_stopwords=True),
    )  # fmt: skip
    found = card_rates(crowd, options)
    forums = Forums(posts)
    judged = [f"p{n:03}" for n in range(12)]
    strangers = [one for one in forums.members("chess") if one[0] not in judged]
    wanted = []
    for one in judged:
        source, own = (one, "books"), forums.far[(one, "books"), (one, "chess")]
        wanted.append(1 + sum(forums.far[source, other] <= own for other in strangers))
    assert found.exact.tolist() == wanted
    assert found.to_dict()["pairs"] == 12
    assert (found.low <= found.made_up).all()
    assert (found.made_up <= found.high).all()


FACTS = {"Berlin": "I live in Berlin.", "Paris": "I live in Paris."}


def test_what_posts_tell_is_counted_person_by_person(tmp_path: Any) -> None:
    """Some tell the truth, some another town, some nothing, and some have no post at all."""
    rng = np.random.default_rng(1)
    posts, truth, said, right = [], [], 0, 0
    for person in range(40):
        town = str(rng.choice(list(FACTS)))
        truth.append((f"p{person:02}", "city", town))
        does = rng.choice(["truth", "lie", "nothing", "no post"])
        if does == "no post":
            continue
        told = town if does == "truth" else next(name for name in FACTS if name != town)
        posts.append((f"p{person:02}", "a", "What a game." if does == "nothing" else FACTS[told]))
        said += does in ("truth", "lie")
        right += does == "truth"
    frame = pl.DataFrame(posts, schema=["user", "community", "text"], orient="row").with_columns(
        time=pl.lit(1)
    )
    crowd = Crowd.from_frame(frame, path=tmp_path / "crowd", plain_names=True)
    source = tmp_path / "truth.csv"
    pl.DataFrame(truth, schema=["user", "attribute", "value"], orient="row").write_csv(source)
    crowd.ingest([source], kind="attributes")
    rates = disclosure_rates(crowd)
    (city,) = [one for name, one in rates.items() if name in ("city", "location", "place")]
    assert (city.people, city.said, city.right, city.exact) == (40, said, right, right)
    assert city.precision == pytest.approx(right / said)
    assert city.coverage == pytest.approx(right / 40)
    study = disclosures_study(crowd, rates)
    row = study.tables[0].rows[0]
    assert row[1:] == pytest.approx((40, said, right, right / said, right / 40))
    assert f"Of 40 facts about people, {said} were told in their posts, and {right} of these" in study.summary


def test_the_table_and_the_reliability_curve(tmp_path: Any) -> None:
    """No row and no point stands for fewer than ten; 1 belongs to the last bin, every lower end to its own."""
    rng = np.random.default_rng(2)
    edges = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
    rates = {}
    for name, people in (("age", 200), ("city", 10), ("job", 9)):
        certain = [
            (float(rng.choice([*edges, 0.49, 0.55, 0.93])), bool(rng.random() < 0.6)) for _ in range(people)
        ]
        told = [hit for sure, hit in certain if sure >= 0.8]
        rates[name] = AttributeRates(people, len(told), sum(told), sum(told), certain)
    crowd = Crowd.from_frame(
        pl.DataFrame({"user": ["p"], "community": ["a"], "text": ["x"], "time": [1]}), path=tmp_path / "crowd"
    )
    study = disclosures_study(crowd, rates)
    assert [row[0] for row in study.tables[0].rows] == ["age", "city"]
    for name, people, said, right, precision, coverage in study.tables[0].rows:
        told = [hit for sure, hit in rates[str(name)].certain if sure >= 0.8]
        assert (people, said, right) == (len(rates[str(name)].certain), len(told), sum(told))
        assert (precision, coverage) == pytest.approx((mean(told), sum(told) / people))
    finds = [one for some in rates.values() for one in some.certain]
    wanted = []
    for low, high in pairwise(edges):
        inside = [one for one in finds if low <= one[0] < high or one[0] == high == 1.0]
        if len(inside) >= 10:
            wanted.append((mean(sure for sure, _ in inside), mean(hit for _, hit in inside)))
    curve = study.charts[0].series[0]
    assert list(zip(curve.x, curve.y, strict=True)) == [pytest.approx(point) for point in wanted]
    assert len(wanted) == 6
    honest = study.charts[0].series[1]
    assert honest.x == honest.y == (edges[0], edges[-1])

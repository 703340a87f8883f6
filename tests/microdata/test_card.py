"""Items from a card: near the truth, within its interval, silent about others, and safe to publish."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from incrowd import AdvisorOptions, Card, CardOptions, Changes, Crowd, Standing, assess, make_card, what_if
from incrowd.cards.card import text_facts
from incrowd.cards.lists import BLUR_PEOPLE, BLUR_SUMS, BlurLists, PrivateLists, even_parts
from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.card_crowd import CardCrowd, crowd_of_export
from incrowd.measures.microdata.card_section import item_section, law_of, numbers_of, read_statistics
from incrowd.measures.microdata.client import score
from incrowd.measures.microdata.item_law import ItemLaw, drawn, holders, log_odds
from incrowd.measures.microdata.table import item_table
from incrowd.result import Assessment

PEOPLE, ITEMS = 700, 300
MEASURED = AdvisorOptions(advice=False)


def lists(people: int = PEOPLE, seed: int = 1) -> pl.DataFrame:
    """Made-up lists with popular and rare items, long and short lists, and two tastes."""
    rng = np.random.default_rng(seed)
    base = -1.0 - 1.1 * np.log(np.arange(1, ITEMS + 1) / 4)
    taste = rng.choice([-0.6, 0.6], ITEMS)
    level, side = rng.normal(0.3, 0.7, people), rng.choice([-1.0, 1.0], people)
    chance = 1 / (1 + np.exp(-(base[None, :] + level[:, None] + side[:, None] * taste[None, :])))
    row, column = np.nonzero(rng.random((people, ITEMS)) < chance)
    names = np.array([f"film {place:03d}" for place in range(ITEMS)])
    return pl.DataFrame({"user": [f"person {one:04d}" for one in row.tolist()], "item": names[column]})


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    folder = tmp_path_factory.mktemp("films")
    lists().write_csv(folder / "films.csv")
    crowd = Crowd.open_or_create(folder / "crowd", plain_names=True)
    crowd.ingest([folder / "films.csv"], kind="items")
    return crowd


@pytest.fixture(scope="module")
def strangers(films: Crowd) -> list[str]:
    table = item_table(films)
    able = np.flatnonzero(table.sizes >= 8)
    return table.users.gather(able[:: len(able) // 24][:24].tolist()).to_list()


@pytest.fixture(scope="module")
def card(films: Crowd, strangers: list[str]) -> Card:
    """A card of the others; the noise is the same in every run."""
    table = item_table(films).without(strangers)
    made = item_section(table, CardOptions(), BlurLists(np.random.default_rng(0)))
    head = {"communities": [], "measures": {"microdata": made.facts}, "text": text_facts(CardOptions().text)}
    return Card.made(head, [], {f"microdata.{name}": table for name, table in made.law.tables().items()})


@pytest.fixture
def list_of(films: Crowd, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes somebody's list as an export of their own, which names nobody."""

    def write(user: str) -> Path:
        path = tmp_path / "ratings-export.csv"
        films.items().filter(pl.col("user") == user).select("item").collect().with_columns(
            rating=pl.lit(4)
        ).write_csv(path)
        return path

    return write


def test_strangers_are_told_about_what_an_exact_count_says(
    films: Crowd, card: Card, strangers: list[str], list_of: Callable[[str], Path]
) -> None:
    """The oracle holds real lists against each other, one person at a time."""
    mine = {user: set(part["item"]) for (user,), part in films.items().collect().group_by("user")}
    others = [mine[user] for user in mine if user not in strangers]
    inside, exact, told = [], [], []
    for user in strangers:
        found = {
            name_of(one): one for one in assess([list_of(user)], card=card, options=MEASURED).assessments
        }
        fits = found["acquaintance"]
        assert fits.interval is not None
        truth = 1 + sum(share_with(mine[user], other) for other in others)
        inside.append(fits.interval[0] <= truth <= fits.interval[1])
        exact.append(truth)
        told.append(fits.value)
    assert np.mean(inside) >= 0.8
    assert np.corrcoef(np.log(exact), np.log(told))[0, 1] > 0.7


def test_strangers_chances_of_being_found_are_covered(
    films: Crowd, card: Card, strangers: list[str], list_of: Callable[[str], Path]
) -> None:
    """Somebody knows three random items, or 5 to 20 %, and picks one of those who have them all: right once in |AS|."""
    table, rng = item_table(films), np.random.default_rng(2)
    has = table.without(strangers).matrix.toarray().astype(bool)
    inside: dict[str, list[bool]] = {"three-items": [], "paper": []}
    for user in strangers:
        mine = np.flatnonzero(table.matrix[table.row_of(user)].toarray().ravel())
        known = {
            "three-items": [3] * 400,
            "paper": [max(1, int(p * len(mine) / 100 + 0.5)) for p in range(5, 21)] * 25,
        }
        told = assess([list_of(user)], card=card, options=MEASURED).assessments
        found = {name_of(one): one for one in told if one.unit.startswith("probability")}
        for name, sizes in known.items():
            fit = [1 + has[:, rng.choice(mine, size, replace=False)].all(axis=1).sum() for size in sizes]
            low, high = found[name].interval or (math.nan, math.nan)
            inside[name].append(low - 0.01 <= np.mean(1 / np.array(fit)) <= high + 0.01)  # of 400 tries
    assert {name: np.mean(each) >= 0.8 for name, each in inside.items()} == dict.fromkeys(inside, True)


def share_with(mine: set[str], other: set[str]) -> float:
    """Return how probably somebody has three random items of a list, from the definition."""
    return math.comb(len(mine & other), 3) / math.comb(len(mine), 3)


def name_of(assessment: Assessment) -> str:
    return str(assessment.assumptions.parameters.get("name"))


def test_every_number_has_an_interval_says_it_is_from_a_card_and_names_nobody(
    card: Card, strangers: list[str], list_of: Callable[[str], Path]
) -> None:
    report = assess([list_of(strangers[0])], card=card)
    numbers = [one for one in report.assessments if one.measure == "microdata"]
    assert {name_of(one) for one in numbers} >= {"three-items", "ten-items", "paper", "friend"}
    for one in numbers:
        assert one.standing is Standing.ESTIMATED
        assert one.interval is not None
        assert one.interval[0] <= one.value <= one.interval[1]
        assert one.crowd_rank is None
        assert "As far as the card can tell: " in one.meaning
    assert "person 0" not in json.dumps(report.to_dict())
    why = {one.measure: one.why for one in report.not_assessed}
    assert why["microdata (dates)"] == "the card holds no dates"
    assert why["anonymity"] == "your files hold no posts"


def test_what_if_from_a_card_leaving_out_what_few_have_helps(
    card: Card, strangers: list[str], list_of: Callable[[str], Path]
) -> None:
    crowd = crowd_of_export([list_of(strangers[1])], card=card)
    law = ItemLaw.of(card.section("microdata"), card.section_facts("microdata"))
    people = dict(zip(law.items, law.holders, strict=True))
    rare = frozenset(sorted(crowd.export.items, key=lambda item: people.get(item, 0.0))[:3])
    before, after = (
        next(one.value for one in report.assessments if name_of(one) == "paper" and one.unit == "people")
        for report in (
            assess(crowd, options=MEASURED),
            what_if(crowd, None, Changes(drop_items=rare), options=MEASURED),
        )
    )
    assert after > before


def test_a_card_of_items_alone_is_small_says_how_good_it_is_and_lists_nothing_of_few(
    films: Crowd, card: Card
) -> None:
    assert card.communities == ()
    assert len(card.to_bytes()) < 30_000
    popularity = dict(films.items().group_by("item").len().collect().iter_rows())
    table = card.section("microdata")["items"]
    assert all(popularity[item] >= 10 for item in table["item"])
    assert all(str(int(people)).rstrip("0").__len__() <= 2 for people in table["people"])
    facts = card.section_facts("microdata")
    assert facts["held_out"] == 100
    assert facts["accuracy"]["paper"]["spearman"] > 0.8
    again = Card.from_bytes(card.to_bytes())
    assert again.section("microdata")["items"].equals(table)
    assert again.section_facts("microdata") == facts


def test_the_same_export_and_seed_give_the_same_numbers(
    card: Card, strangers: list[str], list_of: Callable[[str], Path]
) -> None:
    file = list_of(strangers[2])
    one, same, other = (
        [
            a.value
            for a in assess([file], card=card, options=AdvisorOptions(advice=False, seed=seed)).assessments
        ]
        for seed in (0, 0, 1)
    )
    assert one == same
    assert one != other


def test_the_default_card_says_that_it_tells_nothing_about_items(
    strangers: list[str], list_of: Callable[[str], Path]
) -> None:
    report = assess([list_of(strangers[0])], options=MEASURED)
    (why,) = (one for one in report.not_assessed if one.measure == "microdata")
    assert why.why == "this card does not say who has which items"
    assert "card that tells it" in why.remedy


def test_posts_and_items_go_into_one_card(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    words = [f"w{place}" for place in range(60)]
    posts = [
        {
            "author": f"person {k % 130:04d}",
            "subreddit": "tea",
            "created_utc": 1_600_000_000 + k,
            "body": " ".join(rng.choice(words, 12)),
        }
        for k in range(1300)
    ]
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in posts), encoding="utf-8")
    lists(250, seed=2).write_csv(tmp_path / "films.csv")
    crowd = Crowd.open_or_create(tmp_path / "crowd", plain_names=True)
    crowd.ingest([tmp_path / "posts.jsonl"])
    crowd.ingest([tmp_path / "films.csv"], kind="items")
    private = make_card(crowd, CardOptions(epsilon=8.0, delta=1e-5))
    assert private.communities == ("everybody",)
    assert set(private.section("microdata")) == {"items", "lengths"}
    account = private.head["privacy"]["accountant"]
    assert {"words", "lists: words", "lists: lengths", "lists: listed"} <= set(account["spent"])
    assert sum(account["spent"].values()) <= account["rho"] * (1 + 1e-6)
    assert account["rho"] == pytest.approx(PrivateLists(8.0, 1e-5).budget)

    # How far off it is was not tried, so only what such cards tell about any table is told.
    mine = tmp_path / "ratings-export.csv"
    lists(250, seed=2).filter(pl.col("user") == "person 0007").select("item").with_columns(
        rating=4
    ).write_csv(mine)
    report = assess([mine], card=private, options=MEASURED)
    assert "three-items" in {name_of(one) for one in report.assessments}
    assert not {"ten-items", "three-rarest"} & {name_of(one) for one in report.assessments}
    why = {one.measure: one.why for one in report.not_assessed}
    assert why["microdata (ten-items)"].startswith("nobody was held out")


def test_fewer_than_a_hundred_lists_are_not_published(tmp_path: Path) -> None:
    lists(60, seed=4).write_csv(tmp_path / "films.csv")
    crowd = Crowd.open_or_create(tmp_path / "crowd")
    crowd.ingest([tmp_path / "films.csv"], kind="items")
    with pytest.raises(InputError, match="fewer than 100 are too few"):
        make_card(crowd)


def test_a_score_from_a_card_is_near_the_score_from_published_statistics(
    films: Crowd, card: Card, strangers: list[str], tmp_path: Path
) -> None:
    from incrowd.measures.microdata.provider import Tally, publish

    file = card.write(tmp_path / "films.card")
    published, _ = publish(Tally.count(films.items()))
    published.write(tmp_path / "statistics.json")
    ours, theirs = read_statistics(file), read_statistics(tmp_path / "statistics.json")
    assert theirs.popularity == published.popularity
    mine = films.items().filter(pl.col("user").is_in(strangers)).collect()
    pairs = [
        (score(part["item"], ours).others, score(part["item"], theirs).others)
        for _, part in mine.group_by("user", maintain_order=True)
    ]
    found = np.log1p(np.array(pairs))
    assert np.corrcoef(found.T)[0, 1] > 0.9
    assert np.median(np.abs(found[:, 0] - found[:, 1])) < 0.5


# What makes it safe


@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=8))
def test_nobody_counts_for_more_than_one_whatever_they_list(sizes: list[int]) -> None:
    rows = sp.csr_matrix([[1] * size + [0] * (40 - size) for size in sizes])
    parts = even_parts(rows, longest=25)
    length = np.sqrt(np.asarray(parts.multiply(parts).sum(axis=1)).ravel())
    assert np.allclose(length, [min(size, 1) for size in sizes])
    assert np.diff(parts.indptr).max() <= 25


def test_the_default_noise_bounds_what_anybody_can_tell_to_a_tenth() -> None:
    """The sums, the lengths and the listed shares are told, each once."""
    moved = math.sqrt(1 / BLUR_SUMS**2 + 2 / BLUR_PEOPLE**2)
    assert 2 * norm.cdf(moved / 2) - 1 < 0.1
    blur = BlurLists()
    assert blur.word_spread(np.zeros(2)).tolist() == [BLUR_SUMS, BLUR_SUMS]
    assert blur.spread("lengths", 1.0) == BLUR_PEOPLE


def test_the_noise_is_there_and_as_large_as_it_says(films: Crowd) -> None:
    table = item_table(films)
    exact = np.asarray(even_parts(table.matrix).sum(axis=0)).ravel()
    noises = BlurLists(np.random.default_rng(5))
    lengths = np.array([noises.counts("lengths", np.array([0]), reach=1.0)[0] for _ in range(2000)])
    assert lengths.std() == pytest.approx(BLUR_PEOPLE, rel=0.1)
    listed, _ = noises.words(sp.csr_matrix(table.matrix, dtype=float), tuple(table.items), 10)
    assert set(np.flatnonzero(exact > 5 * BLUR_SUMS)) <= set(listed.tolist())
    assert not set(np.flatnonzero(exact < 0.2)) & set(listed.tolist()) or len(listed) < ITEMS


def test_a_law_in_which_noise_left_no_item_has_tables_that_a_card_takes() -> None:
    law = ItemLaw(
        (),
        np.zeros(0),
        pl.DataFrame({"items_from": [1], "items_to": [9], "people": [120], "listed": [0.5]}),
        1,
        1.0,
        {},
    )
    assert law.tables()["items"].schema == {"item": pl.String, "people": pl.Int32}


def test_a_name_that_begins_like_another_up_to_a_nul_stays_apart_from_it() -> None:
    lists = sp.csr_matrix(np.repeat([[1, 0], [0, 1]], [4_000, 2_000], axis=0))
    listed, sums = PrivateLists(8.0, 1e-6).words(lists, ("film", "film\0again"), k=10)
    assert listed.tolist() == [0, 1]
    assert sums == pytest.approx([4_000, 2_000], rel=0.05)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_a_private_list_spends_its_part_and_no_more(films: Crowd, epsilon: float) -> None:
    table = item_table(films)
    noise = PrivateLists(epsilon, 1e-6, part=0.5)
    law = law_of(table, 10, noise)
    whole = PrivateLists(epsilon, 1e-6).budget
    assert noise.budget == pytest.approx(whole / 2)
    assert sum(noise.spent.values()) <= noise.budget * (1 + 1e-6)
    assert sum(noise.spent.values()) > 0.98 * noise.budget
    assert noise.facts()["epsilon"] == epsilon
    assert noise.line(10) >= 10
    assert all(one >= 1 for one in law.holders)


# People who do not exist


@settings(max_examples=25, deadline=None)
@given(chance=st.floats(0.0005, 0.9), people=st.integers(2500, 9000), seed=st.integers(0, 9))
def test_sparse_and_dense_drawing_are_the_same_law(chance: float, people: int, seed: int) -> None:
    found = holders(people, chance, np.random.default_rng(seed))
    assert len(set(found.tolist())) == len(found)
    assert found.size == 0 or (found.min() >= 0 and found.max() < people)
    assert abs(len(found) - people * chance) <= 6 * math.sqrt(people * chance) + 3
    row, column = drawn(people, np.array([chance, 0.0]), np.random.default_rng(seed))
    assert set(column.tolist()) <= {0}
    assert row.tolist() == found.tolist()


def test_made_up_people_have_items_as_often_as_the_card_says_with_and_without_taste(card: Card) -> None:
    law = ItemLaw.of(card.section("microdata"), card.section_facts("microdata"))
    some = [law.items[place] for place in np.argsort(-law.holders)[:40:4]]
    for taste in (0.0, 1.0):
        counted = np.mean(
            [law.made_up(some, "you", seed, taste).matrix[:-1].sum(axis=0).A1 for seed in range(12)], axis=0
        )
        wanted = np.array([law.holders[law.items.index(item)] for item in sorted(some)])
        assert np.allclose(counted, wanted, rtol=0.12, atol=6)
    table = law.made_up([*some, "nobody lists this"], "you")
    assert table.users[-1] == "you"
    assert table.list_lengths[-1] == len(some) + 1
    assert (table.list_lengths >= table.sizes).all()


def test_alike_tastes_make_people_harder_to_find(card: Card) -> None:
    law = ItemLaw.of(card.section("microdata"), card.section_facts("microdata"))
    some = [law.items[place] for place in np.argsort(-law.holders)[20:60:2]]
    apart, alike = (numbers_of(law.made_up(some, "you", 0, taste)) for taste in (0.0, 1.5))
    assert alike["three-items"] < apart["three-items"]
    assert alike["friend"] > apart["friend"]


def test_an_interval_holds_its_number_and_ends_where_numbers_end(card: Card) -> None:
    law = ItemLaw.of(card.section("microdata"), card.section_facts("microdata"))
    for chance in (0.0, 0.001, 0.3, 1.0):
        low, high = law.interval_of_chance(chance, "three-items")
        assert 0 <= low <= chance <= high <= 1
    for others in (0.0, 4.0, float(law.people)):
        low, high = law.interval_of_people(others, "paper")
        assert 0 <= low <= others <= high <= law.people
    assert float(log_odds(0.5)) == pytest.approx(0.0)


@pytest.mark.parametrize(
    "change",
    [
        {"taste": -1.0},
        {"taste": math.nan},
        {"unlisted_items": 0},
        {"unlisted_items": "many"},
        {"accuracy": {"paper": {"reach": -2.0}}},
        {"accuracy": {"paper": 3}},
    ],
)
def test_a_card_with_numbers_that_cannot_be_true_is_refused(card: Card, change: dict[str, Any]) -> None:
    facts = {**card.section_facts("microdata"), **change}
    with pytest.raises(UnreadableSource):
        ItemLaw.of(card.section("microdata"), facts)


@pytest.mark.parametrize("column", ["people", "items_from", "listed"])
def test_a_card_with_lengths_that_cannot_be_true_is_refused(card: Card, column: str) -> None:
    tables = card.section("microdata")
    tables["lengths"] = tables["lengths"].with_columns(pl.lit(-5).alias(column))
    with pytest.raises(UnreadableSource):
        ItemLaw.of(tables, card.section_facts("microdata"))


def test_a_card_crowd_of_items_has_people_and_no_posts(
    card: Card, strangers: list[str], list_of: Callable[[str], Path]
) -> None:
    crowd = crowd_of_export([list_of(strangers[0])], card=card)
    assert isinstance(crowd, CardCrowd)
    assert crowd.people == card.section_facts("microdata")["people"]
    assert crowd.posts.is_empty()

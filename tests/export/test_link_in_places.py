"""Can two profiles of an export's owner be linked, where everybody else is known by a card only?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from incrowd import AdvisorOptions, Card, Crowd, Standing, assess, default_card
from incrowd.cards.card import text_facts
from incrowd.cards.make import CardOptions, safe_statistics
from incrowd.cards.members import read_members
from incrowd.cards.noise import Blur
from incrowd.crowd.own_export import OwnExport
from incrowd.measures.card_crowd import YOU, CardCrowd, crowd_of_export
from incrowd.measures.linkability.determined import prepare
from incrowd.measures.linkability.from_card import LEARNT, MOST, PairFromCard, places_of, probability
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.person import Changes, Person
from incrowd.measures.protocol import Role, measure_named
from incrowd.result import Assessment
from incrowd.text.reference import tokenise

MEASURED = AdvisorOptions(advice=False)
HERE, THERE = "gardening", "cycling"


@pytest.fixture(scope="module")
def writers(people: Crowd, outsiders: list[str]) -> list[str]:
    """Outsiders who write a lot in the card's community and in another."""
    counted = people.posts().group_by("user", "community").len().filter(pl.col("len") >= 10).collect()
    both = counted.filter(pl.col("user").is_in(outsiders)).group_by("user").agg(pl.col("community"))
    return sorted(both.filter(pl.col("community").list.len() >= 2)["user"])


def determined(crowd: CardCrowd, person: Person | None = None, explain: bool = True) -> Assessment | None:
    person = person or Person(YOU, crowd)
    places = places_of(person.before, 10)
    assert places is not None
    return PairFromCard(crowd, places, 10, 0).assess(person, explain=explain)


def test_two_places_are_linked_by_a_card_of_one(
    card: Card, writers: list[str], export_of: Callable[..., Path], people: Crowd
) -> None:
    report = assess([export_of(writers[0])], card=card, options=MEASURED)
    linked = [one for one in report.assessments if one.measure == "linkability"]
    assert [one.unit for one in linked] == ["probability"]
    told = linked[0]
    assert told.standing is Standing.ESTIMATED
    assert told.interval is not None
    assert told.interval[0] <= told.value <= told.interval[1]
    assert told.baseline == pytest.approx(1 / (card.facts(THERE)["people"] + 1))
    assert told.assumptions.parameters["target"] == THERE
    assert measure_named("linkability").role(told) is Role.DECIDES
    assert told.explained == pytest.approx(math.fsum(part.contribution for part in told.evidence))
    assert not [one for one in report.not_assessed if one.measure.startswith("linkability")]
    others = set(people.posts().select("user").unique().collect()["user"]) - {writers[0]}
    assert not any(name in told.meaning for name in others)


def test_the_card_inside_links_places_of_reddit(writers: list[str], export_of: Callable[..., Path]) -> None:
    crowd = crowd_of_export([export_of(writers[0])])
    assert isinstance(crowd, CardCrowd)
    assert crowd.card.hash == default_card().hash
    assert set(crowd.places.values()) == {"Reddit"}
    assert len(crowd.places) >= 2
    told = determined(crowd)
    assert told is not None
    assert told.crowd_size == crowd.members("Reddit") + 1


def test_the_rank_is_that_of_plain_counting(
    card: Card, writers: list[str], export_of: Callable[..., Path]
) -> None:
    """The oracle reads words with the reference, and compares each made-up person by the definition of the cosine."""
    crowd = crowd_of_export([export_of(writers[0])], card=card)
    assert isinstance(crowd, CardCrowd)
    told = determined(crowd)
    assert told is not None
    places = told.assumptions.parameters
    made, users = crowd.made_up(THERE)
    size, listed = crowd.members(THERE), list(card.tables(THERE)["words"]["word"])
    rarity = {
        word: math.log((1 + size) / (1 + share * size)) + 1 for word, share in zip(listed, users, strict=True)
    }
    unlisted = math.log(1 + size) + 1

    def unit(counts: Counter[str]) -> dict[str, float]:
        raw = {word: (1 + math.log(n)) * rarity.get(word, unlisted) for word, n in counts.items()}
        length = math.sqrt(math.fsum(value**2 for value in raw.values()))
        return {word: value / length for word, value in raw.items()}

    def words(place: str) -> Counter[str]:
        said: Counter[str] = Counter()
        for text in crowd.posts.filter(pl.col("written_in") == place)["text"]:
            said.update(tokenise(text, card.text))
        return said

    source, target = words(places["source"]), words(places["target"])
    asked = unit(source)
    mine = math.fsum(value * unit(target).get(word, 0.0) for word, value in asked.items())
    scores = []
    for row in range(len(made)):
        counts = made.counts[[row]].tocoo()
        person = Counter({listed[at]: int(n) for at, n in zip(counts.col, counts.data, strict=True)})
        squares = math.fsum(((1 + math.log(n)) * rarity[word]) ** 2 for word, n in person.items())
        length = math.sqrt(squares + made.rare[row] * unlisted**2)
        dot = math.fsum((1 + math.log(n)) * rarity[word] * asked.get(word, 0.0) for word, n in person.items())
        scores.append(dot / length if length else 0.0)
    best = sorted(scores, reverse=True)[:31]
    line, excess = best[30], math.fsum(score - best[30] for score in best) / 30
    above = sum(score > mine for score in scores) + sum(score == mine for score in scores) / 2
    rank = math.log(max(above, 30)) if mine <= line else max(math.log(30) - (mine - line) / excess, -40.0)
    assert places["log_rank"] == pytest.approx(rank - math.log(len(made) / size), abs=1e-6)
    assert places["words"] == min(source.total(), target.total())
    odds = LEARNT[0] + LEARNT[1] * places["log_rank"] + LEARNT[2] * math.log(places["words"])
    assert told.value == pytest.approx(1 / (1 + math.exp(-min(odds, MOST))))


def test_whoever_shares_nothing_any_more_is_harder_to_link(
    card: Card, writers: list[str], export_of: Callable[..., Path]
) -> None:
    crowd = crowd_of_export([export_of(writers[0])], card=card)
    assert isinstance(crowd, CardCrowd)
    person = Person(YOU, crowd)
    told = determined(crowd, person)
    assert told is not None
    shared = frozenset(one.what.removeprefix("the word “").removesuffix("”") for one in told.evidence)
    changed = determined(crowd, person.after(Changes(edit_words=shared)), explain=False)
    assert changed is not None
    assert changed.value < told.value
    gone = person.posts.filter(person.posts["community"] == THERE)["number"].to_list()[3:]
    assert determined(crowd, person.after(Changes(delete_posts=frozenset(gone)))) is None


@pytest.mark.parametrize("words", [1.0, 50.0, 5_000.0])
def test_the_further_ahead_the_surer_and_the_ends_lie_around(words: float) -> None:
    told = [probability(rank, words) for rank in (8.0, 3.0, 0.0, -5.0, -20.0, -25.0, -40.0)]
    assert [one for one, _ in told] == sorted(one for one, _ in told)
    assert all(low < value < high for value, (low, high) in told)
    assert told[0][0] < told[-1][0] <= 1 / (1 + math.exp(-MOST))


def test_whoever_writes_in_one_place_is_told_that_it_takes_two(
    card: Card, writers: list[str], people: Crowd
) -> None:
    mine = people.posts(user=writers[0], community=THERE).collect()
    posts = mine.select("community", "time", "text", link=pl.lit(None, pl.String)).with_row_index("number")
    crowd = CardCrowd(card, OwnExport(posts, frozenset(), {}, "x", "x"))
    assert places_of(Person(YOU, crowd), 10) is None
    ready = measure_named("linkability").prepare(crowd, MEASURED)
    assert any("two profiles" in one.why for one in ready.assess(Person(YOU, crowd)).not_assessed)


def test_links_told_by_a_card_lie_between_their_ends_where_people_are_really_attacked(
    people: Crowd,
) -> None:
    """The determined adversary looks for everybody in both communities, none of whom is in the card.

    One person's success is yes or no, so people are put together by what they were told.
    """
    options = LinkabilityOptions(source=HERE, target=THERE, adversary="determined")
    attack = prepare(people, options)
    rows = attack.pairs[:, 0]
    found = (attack.judged()["nearer"][rows] == 0).astype(float)
    judged = attack.people.tolist()
    members = read_members(people, [THERE], CardOptions().text).without(judged)
    community = safe_statistics(members, 10, Blur(np.random.default_rng(1)), THERE)
    head = {"text": text_facts(CardOptions().text), "communities": [{"name": THERE, **community.facts()}]}
    made = Card.made(head, [community.tables()])
    told, drawn = [], {}
    for user in judged:
        mine = people.posts(user=user).filter(pl.col("community").is_in([HERE, THERE])).collect()
        posts = mine.select("community", "time", "text", link=pl.lit(None, pl.String)).with_row_index(
            "number"
        )
        crowd = CardCrowd(made, OwnExport(posts, frozenset(), {}, "x", "x"))
        crowd._drawn = drawn
        one = determined(crowd, explain=False)
        assert one is not None
        assert one.interval is not None
        told.append((one.value, *one.interval))
    chances = np.array(told)
    for group in np.array_split(np.argsort(chances[:, 0], kind="stable"), 3):
        chance = 2 * math.sqrt(max(found[group].mean() * (1 - found[group].mean()), 0.02) / len(group))
        low, high = chances[group, 1].mean(), chances[group, 2].mean()
        assert low - chance <= found[group].mean() <= high + chance

"""A card in a moderator's words: whom it is of, what protects them, how good it is, what it cannot tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scipy.special import ndtr

from incrowd.cards.card import Card
from incrowd.cards.laws import Community
from incrowd.cards.make import COMPARED_POSTS, interval
from incrowd.cards.noise import BLUR
from incrowd.measures.protocol import adversaries, registered
from incrowd.result import say_count, say_percent

EXAMPLE = 20
"""People, in the example of how far off a number may be."""


def described(card: Card) -> list[tuple[str, list[str]]]:
    """Return headings, each with its sentences."""
    communities = [_community(card, name) for name in card.communities]
    return [
        ("What it is", _what_it_is(card)),
        ("Whom it is of", [*communities, *_lists(card), *_sources(card)]),
        ("What protects them", _protection(card)),
        (
            "How good it is",
            [*(_accuracy(card.facts(name)) for name in card.communities), *_lists_tried(card)],
        ),
        ("What it cannot tell", _cannot_tell(card)),
    ]


def advantage(privacy: Mapping[str, Any] | None) -> float:
    """Return how much more often than by guessing somebody who knows everything else can say who is in a card.

    Half of this, added to one half, is how often they are right about a person who is as probably in it as not. For a
    private card it is a proof, by two ways of which the better counts: with epsilon and delta, probabilities differ by
    (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) at most; and a zero-concentrated loss of rho bounds the divergence of
    both distributions, so that they differ by sqrt(rho / 2) at most (Pinsker's inequality). For a blurred one it is
    that of what it says about words, Gaussian noise of :data:`BLUR` on what moves by one: 2 Phi(1 / (2 noise)) - 1.

    >>> round(advantage(None), 3), round(advantage({"epsilon": 3.0, "delta": 0.0, "accountant": {"rho": 0.18}}), 3)
    (0.099, 0.3)
    """
    if privacy is None:
        return float(2 * ndtr(1 / (2 * BLUR)) - 1)
    epsilon, delta = float(privacy["epsilon"]), float(privacy["delta"])
    by_epsilon = math.tanh(epsilon / 2) + 2 * delta / (math.exp(epsilon) + 1)
    rho = float((privacy.get("accountant") or {}).get("rho", math.inf))
    return min(by_epsilon, math.sqrt(rho / 2) + delta)


def _what_it_is(card: Card) -> list[str]:
    return [
        "Statistics that stand in for people: with it, somebody measures how findable they are among them, with "
        "nothing but their own posts or items. No name and no post is in it.",
        f"Made by {card.head.get('made_by', 'an unknown program')}. Content {card.hash}.",
    ]


def _community(card: Card, name: str) -> str:
    laws = Community.of(card, name)
    table = laws.lengths.sort("words_from")
    half = table["people"].cum_sum() >= table["people"].sum() / 2
    typical = int(table.filter(half)["words_from"][0])
    listed = float(laws.listed_share(typical))
    return (
        f"{name}: about {say_count(laws.people, 'person', 'people')}, of whom {laws.how_many(COMPARED_POSTS):,} wrote "
        f"{COMPARED_POSTS} posts or more, and half {float(f'{typical:.1g}'):,.0f} words or more. It names "
        f"{say_count(len(laws.words), 'word')} that many of them use; these make up about {say_percent(listed)} of "
        "what they write."
    )


def _lists(card: Card) -> list[str]:
    said = []
    for name, facts in sorted(card.head.get("measures", {}).items()):
        counted = ", ".join(
            f"{what.replace('_', ' ')} {facts[what]}" for what in sorted(facts) if what != "accuracy"
        )
        said.append(f"For {_about(name)}: {counted}.")
    return said


def _about(measure: str) -> str:
    return registered()[measure].about if measure in registered() else measure


def _sources(card: Card) -> list[str]:
    sources = card.head.get("sources", [])
    return [f"It was made from {'; from '.join(sources)}."] if sources else []


def _protection(card: Card) -> list[str]:
    privacy = card.head.get("privacy")
    right = say_percent((1 + advantage(privacy)) / 2)
    if privacy is None and not card.communities:
        return [
            "Numbers are blurred; no number is exact. There is no proof for all of it.",
            "How little it says of one person's items is worked out in docs/explanation/cards.md; incrowd card audit "
            "attacks what cards say about words, and this one says nothing about any.",
        ]
    if privacy is None:
        return [
            "Numbers are blurred; no number is exact. There is no proof for all of it.",
            f"By what it says about words, somebody who knows what everybody wrote says rightly in {right} of cases, "
            "at most, whether a person is in it; by guessing it is 50%.",
            "What the whole gives away is measured: incrowd card audit DIR attacks cards made like this.",
        ]
    return [
        "It is differentially private: it would come out about as likely without any one of them, all they wrote "
        f"included: epsilon {privacy['epsilon']:g}, delta {privacy['delta']:g}. That is proved, for all of it.",
        f"So even somebody who knows what everybody else wrote says rightly in {right} of cases, at most, whether a "
        "person is in it; by guessing it is 50%.",
    ]


def _accuracy(facts: Mapping[str, Any]) -> str:
    tried = facts.get("accuracy")
    if not tried:
        return (
            f"{facts['name']}: not measured, as nobody was left out of it to be asked. How many people write like "
            "somebody may be many times too many or too few."
        )
    low, high = interval(EXAMPLE, float(tried["reach"]))
    return (
        f"{facts['name']}: tried on {say_count(tried['people'], 'member')} whose words are left out of it. Whether ten "
        f"people or more are near somebody, it tells rightly for {say_percent(tried['same_side'])}; near the one in "
        f"the middle are {tried['median_exact']:g} people, by the card {tried['median_card']:g}. If it says "
        f"{EXAMPLE}, there are {max(0, math.floor(low))} to {math.ceil(high)} in truth, nine times in ten."
    )


def _lists_tried(card: Card) -> list[str]:
    said = []
    for name, facts in sorted(card.head.get("measures", {}).items()):
        if not facts.get("accuracy"):
            said.append(f"For {_about(name)}: not measured, as nobody was left out of it to be asked.")
        for who, one in sorted((facts.get("accuracy") or {}).items()):
            said.append(
                f"For {_about(name)}, {adversaries().get(who, who)}: exactly {one['median_exact']:g} in the middle, "
                f"by the card {one['median_card']:g}; Spearman {one['spearman']:.2f}."
            )
    return said


def _cannot_tell(card: Card) -> list[str]:
    left_out = [f"Not in it: {what}." for what in card.head.get("left_out", [])]
    other = "Whoever writes elsewhere, or in another language, is not like its people: its numbers are not theirs."
    if not card.communities:
        return [*left_out, "It tells nothing about what people write."]
    return [
        *left_out,
        other,
        "Who of its people somebody is: nobody in it has a name, and made-up people stand for all.",
    ]

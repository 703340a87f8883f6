"""Why a microdata number is what it is, in words and in parts that add up."""

from __future__ import annotations

import math

import numpy as np

from incrowd.arrays import Floats, Ints
from incrowd.measures.microdata.expected_crowd import reading
from incrowd.measures.microdata.known_items import KnownItems
from incrowd.measures.microdata.spec import FewItems
from incrowd.result import Evidence, say_amount, say_count, say_percent

SCORE_UNIT = "score from 0 (riskiest) to 1 (safest)"


def by_knowledge(items: int, sizes: Ints, weights: Floats, people: Floats) -> tuple[Evidence, ...]:
    """Split E|AS| by how much the adversary happens to know; the parts add up to it."""
    return tuple(
        Evidence(
            what=f"{weight:.0%} of the time they know {size} of your {items} items: {count_of(fitting)}",
            contribution=float(weight * fitting),
            detail=f"{fitting:.4g} people fit on average, weighted {weight:.4g}",
        )
        for size, weight, fitting in zip(sizes.tolist(), weights.tolist(), people.tolist(), strict=True)
    )


def of_raw_risk(items: int, rare: int, raw: float) -> tuple[Evidence, ...]:
    """Split the paper's raw risk into its two parts."""
    share = rare / items
    return (
        Evidence(what=f"{rare} of your {items} items are rare", contribution=share),
        Evidence(what=f"you list {items} items", contribution=raw - share),
    )


def count_of(people: float) -> str:
    """Say how many people fit, you included."""
    if people < 1.05:
        return "only you fit"
    if people < 10:
        return f"{people:.1f} people fit"
    return f"{people:,.0f} people fit"


def crowd_meaning(people: float, crowd: int, adversary: str) -> str:
    """One sentence about the expected number of people who fit."""
    if people < 1.05:
        return f"{_capital(adversary)} would almost always be left with you alone, out of {crowd:,} people."
    left = f"would be left with about {_round(people)} of {crowd:,} people, you among them"
    return f"{_capital(adversary)} {left}."


def found_meaning(found: float, alone: float, adversary: str) -> str:
    """One sentence about how often a guess is right."""
    return (
        f"{_capital(adversary)} would pick you out with one guess {_often(found)} of the time; "
        f"{say_percent(alone)} of the time nobody else fits at all."
    )


def few_items_meaning(found: float, people: int, who: FewItems, known: KnownItems, still: int) -> str:
    """Say how often a handful of items picks somebody out, and how few it takes.

    `still`: how many of these items the person still lists; what was taken back may have become known before.
    """
    return (
        f"{_capital(who.words)} would pick you out of {people:,} people {_often(found)} of the time. "
        f"To be right half of the time it {_takes(known, taken_back=still < known.items)}."
    )


def _often(found: float) -> str:
    """Write how often somebody would be right as everywhere else: nobody is certain."""
    return say_amount(found, "probability")


def _takes(known: KnownItems, *, taken_back: bool) -> str:
    """Say how few items it takes, in each way to know them; ways by which all of them are too few come once."""
    of, all_of_them = "", "you have"
    if taken_back:
        of, all_of_them = f", of the {say_count(known.items, 'item')} you had,", "these"
    ways = {"random": "picked at random", "rarest": "of your rarest", "dated": "with dates"}
    counted = {way: found[0] for way, found in known.takes.items()}
    enough = [(way, int(count)) for way, count in counted.items() if not math.isinf(count)]
    told = [f"{count:,} {ways[way]}" for way, count in enough]
    if not taken_back:
        told[:1] = [f"{say_count(count, 'item')} {ways[way]}" for way, count in enough[:1]]
    if not told:
        return f"takes{of} more than all of them" if taken_back else "takes more items than you have"
    they_are = {"random": "picked at random", "rarest": "your rarest", "dated": "known with dates"}
    too_few = [they_are[way] for way, count in counted.items() if math.isinf(count)]
    if too_few:
        told.append(f"more than {all_of_them} if they are {' or '.join(too_few)}")
    return f"takes{of} {', '.join(told[:-1])}{', or ' if len(told) > 1 else ''}{told[-1]}"


def estimate_meaning(others: float, adversary: str) -> str:
    """One sentence about the crowd estimated from published statistics."""
    return f"For {adversary}, {reading(others)} as well as you (estimated from the statistics)."


def group_meaning(items: int, group: int, groups: int, people: int) -> str:
    """One sentence about the group of like scores a person is in; 0 = riskiest."""
    if groups == 1:
        return f"Your {items} items put you in the one group, of about {people:,} people."
    ends = {0: f"the riskiest of {groups} groups", groups - 1: f"the safest of {groups} groups"}
    place = ends.get(group, f"group {group + 1} of {groups} (1 is the riskiest)")
    return f"Your {items} items put you in {place}, with about {people:,} people."


def _round(people: float) -> str:
    digits = 1 if people < 10 else 0
    return f"{people:,.{digits}f}"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def rank_of(value: float, everybody: Floats) -> int:
    """Return the rank among all, 1 = most exposed; ties share the better-hidden end's lowest rank."""
    if math.isnan(value):
        raise ValueError("an undefined value has no rank")
    return int(np.sum(everybody < value - 1e-12 * max(1.0, abs(value)))) + 1

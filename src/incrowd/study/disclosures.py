"""How often do posts tell who somebody is, and how often rightly? Rates over a crowd with a table of attributes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import polars as pl

from incrowd import __version__
from incrowd.crowd import Crowd
from incrowd.drawing import Chart, Series
from incrowd.errors import InputError
from incrowd.measures.disclosures.assess import disclosed
from incrowd.measures.disclosures.facts import Told
from incrowd.measures.disclosures.language import load_language
from incrowd.measures.disclosures.normal import agrees, attribute_name
from incrowd.measures.disclosures.spec import DisclosureOptions
from incrowd.measures.protocol import Progress
from incrowd.study.figures import Section, Study, Table

BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
FEWEST = 10
"""No row of a table stands for fewer people: a rate over a handful would be about somebody."""


@dataclass
class AttributeRates:
    """One attribute over a crowd."""

    people: int = 0
    """People with a true value."""
    said: int = 0
    right: int = 0
    exact: int = 0
    """Of those right: exactly what the table says, nothing coarser or near."""
    certain: list[tuple[float, bool]] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """Of what was told, how much is right; NaN if nothing was."""
        return self.right / self.said if self.said else float("nan")

    @property
    def coverage(self) -> float:
        """Of the people with a true value, how many told it rightly."""
        return self.right / self.people if self.people else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Return the keys that other programs rely on."""
        return {
            "people": self.people,
            "said": self.said,
            "right": self.right,
            "exact": self.exact,
            "precision": None if not self.said else self.precision,
            "coverage": None if not self.people else self.coverage,
        }


def disclosure_rates(
    crowd: Crowd, options: DisclosureOptions | None = None, progress: Progress = lambda *_: None
) -> dict[str, AttributeRates]:
    """Compare what posts tell with a crowd's attributes, by attribute."""
    options = options or DisclosureOptions()
    truth = _truth(crowd)
    if not truth:
        raise InputError(
            f"{crowd.path}: this crowd holds no attributes to compare with. "
            "Add some: incrowd ingest FILE --kind attributes"
        )
    found: dict[str, AttributeRates] = defaultdict(AttributeRates)
    for done, (user, facts) in enumerate(_facts(crowd, set(truth), options)):
        progress(done, len(truth), "reading posts")
        for attribute, true in truth.pop(user).items():
            _count(found[attribute], attribute, true, facts, options)
    for rest in truth.values():  # people without posts have told nothing
        for attribute in rest:
            found[attribute].people += 1
    return dict(sorted(found.items()))


def _count(
    rates: AttributeRates, attribute: str, true: str, facts: dict[str, Told], options: DisclosureOptions
) -> None:
    rates.people += 1
    fact = facts.get(attribute)
    if fact is None:
        return
    right, exact = agrees(attribute, fact.value, true, load_language(options.language))
    rates.certain.append((fact.certainty, right))
    if fact.certainty >= options.told:
        rates.said += 1
        rates.right += right
        rates.exact += exact


def _truth(crowd: Crowd) -> dict[str, dict[str, str]]:
    rows = crowd.attributes().sort("user", "attribute", "value").collect()
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for user, attribute, value in rows.select("user", "attribute", "value").iter_rows():
        found[user].setdefault(attribute_name(attribute), value)
    return dict(found)


def _facts(
    crowd: Crowd, users: set[str], options: DisclosureOptions
) -> Iterator[tuple[str, dict[str, Told]]]:
    """Yield what each labelled person tells, the most certain value of each attribute."""
    posts = crowd.posts().filter(pl.col("user").is_in(list(users))).select("user", "time", "text").collect()
    for (user,), mine in posts.partition_by("user", as_dict=True, maintain_order=True).items():
        rows = mine.sort("time", nulls_last=True).select("time", "text").iter_rows()
        told = disclosed(((number, time, text) for number, (time, text) in enumerate(rows)), options)
        best: dict[str, Told] = {}
        for fact in told.facts:
            if fact.attribute not in best or fact.certainty > best[fact.attribute].certainty:
                best[fact.attribute] = fact
        yield str(user), best


def disclosures_study(
    crowd: Crowd,
    rates: dict[str, AttributeRates],
    options: DisclosureOptions | None = None,
) -> Study:
    """Put the rates into tables and a figure."""
    options = options or DisclosureOptions()
    shown = {name: one for name, one in rates.items() if one.people >= FEWEST}
    rows = tuple(
        (name, one.people, one.said, one.right, one.precision, one.coverage) for name, one in shown.items()
    )
    table = Table(
        title="What posts tell of people whose attributes are known",
        columns=("attribute", "people", "said", "right", "precision", "coverage"),
        rows=rows,
        note=f"Told: certain to at least {options.told:.0%}. No row stands for fewer than {FEWEST} people.",
    )
    said, right = (sum(getattr(one, name) for one in rates.values()) for name in ("said", "right"))
    people = sum(one.people for one in rates.values())
    return Study(
        name="disclosures",
        title="What people tell about themselves",
        summary=(
            f"Of {people:,} facts about people, {said:,} were told in their posts, and {right:,} of these rightly."
        ),
        sections=(
            Section(heading="Told, and rightly", text="", parts=(table,)),
            Section(heading="Is the certainty honest?", text="", parts=(_reliability(rates),)),
        ),
        facts={
            "adversary": "someone who reads everything a person wrote",
            "parameters": options.parameters(),
            "data_hash": crowd.data_hash,
            "version": __version__,
        },
    )


def _reliability(rates: dict[str, AttributeRates]) -> Chart:
    """Draw how often finds of each certainty are right; bins with few people are left out."""
    certain = [one for some in rates.values() for one in some.certain]
    x, y = [], []
    for low, high in pairwise(BINS):
        inside = [(sure, right) for sure, right in certain if low <= sure < high or (high == 1.0 == sure)]
        if len(inside) >= FEWEST:
            x.append(sum(sure for sure, _ in inside) / len(inside))
            y.append(sum(right for _, right in inside) / len(inside))
    return Chart(
        kind="lines",
        title="Certainty and how often it is right",
        sentence="On the diagonal, '80 % certain' is right eight times in ten.",
        x_label="certainty",
        y_label="right",
        series=(Series.of("finds", x, y), Series.of("honest", (0.5, 1.0), (0.5, 1.0))),
    )

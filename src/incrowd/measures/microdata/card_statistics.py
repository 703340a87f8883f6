"""A provider's statistics, read from their own file or made of what a card tells of people's lists."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from incrowd.cards.card import Card
from incrowd.errors import InputError
from incrowd.measures.microdata.definition import Ints
from incrowd.measures.microdata.expected_crowd import ActivityGroups, class_probabilities
from incrowd.measures.microdata.item_law import ItemLaw
from incrowd.measures.microdata.provider import score_everybody
from incrowd.measures.microdata.spec import Knowledge, ProfileFilter, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.statistics import RiskGroup, Statistics, load_statistics

SECTION = "microdata"
MOST_MADE_UP = 20_000
"""So many people are made up for the scale of scores at most."""


def read_statistics(path: str | Path) -> Statistics:
    """Read statistics from a card with items, or from a file of `incrowd microdata publish`."""
    if zipfile.is_zipfile(path):
        return statistics_of(Card.read(path), str(path))
    return load_statistics(path)


def statistics_of(card: Card, name: str = "card") -> Statistics:
    """Return the statistics that a card tells; scale and groups of scores are those of people made up from it."""
    tables = card.section(SECTION)
    if not tables:
        raise InputError(
            f"{name}: this card does not say who has which items. Take one made where there are items."
        )
    law = ItemLaw.of(tables, card.section_facts(SECTION))
    spec, release = ScoreSpec(), ReleaseSpec()
    digits, people = release.decimals, law.people
    sizes, rare = _made_up_lists(law, spec)
    usual = (sizes >= ProfileFilter().fewest) & (sizes <= ProfileFilter().most)
    told = usual if usual.any() else np.ones(len(sizes), bool)
    scored = score_everybody(sizes[told], rare[told], spec, outliers=release.crowd)
    return Statistics(
        users=people,
        rare_below=spec.threshold(people),
        log_base=spec.log_base,
        raw_min=round(scored.raw_min, digits),
        raw_max=round(scored.raw_max, digits),
        groups=tuple(
            RiskGroup(round(float(centre), digits), round(int(members) * people / len(sizes)))
            for centre, members in zip(scored.groups.centres, scored.groups.members, strict=True)
        ),
        knowledge=Knowledge(),
        activity=ActivityGroups(law.shares, law.activity.levels),
        unlisted=float(people * (law.shares @ law.unlisted)),
        popularity=dict(zip(law.items, law.holders.tolist(), strict=True)),
        number=1,
        date="a card",
        parameters={"card": card.hash},
    )


def _made_up_lists(law: ItemLaw, spec: ScoreSpec) -> tuple[Ints, Ints]:
    """Return how many items made-up people have, and how many of them are rare."""
    rng = np.random.default_rng([0, 31])
    people = min(law.people, MOST_MADE_UP)
    kind = rng.choice(len(law.shares), people, p=law.shares)
    first, end = (law.lengths[column].to_numpy()[kind] for column in ("items_from", "items_to"))
    sizes = np.floor(first * np.exp(np.log(end / first) * rng.random(people)) + 1e-9).astype(np.int64)
    rare = law.holders < spec.threshold(law.people)
    chances = class_probabilities(law.holders / law.people, law.activity) if len(law.items) else None
    listed_rare = np.zeros(len(law.shares)) if chances is None else chances[:, rare].sum(axis=1)
    share = 1 - law.lengths["listed"].to_numpy() + listed_rare / law.typical
    return sizes, rng.binomial(sizes, np.clip(share, 0.0, 1.0)[kind]).astype(np.int64)

"""What a card says of people's lists, how well it does for members who were held out while it was made, and how a
person scores their own list with it.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from incrowd.arrays import Floats, Ints
from incrowd.cards.card import Card
from incrowd.cards.laws import WORD_STEPS, step_of
from incrowd.cards.make import CLEAR_COUNT, FEWEST_ALIKE, SHARE_UNIT, SMALLEST, CardOptions, ranges
from incrowd.cards.members import word_shares
from incrowd.cards.noise import Noise
from incrowd.errors import InputError
from incrowd.measures.microdata.assess import others_of
from incrowd.measures.microdata.expected_crowd import ActivityGroups, class_probabilities, fit_levels
from incrowd.measures.microdata.item_law import FOUND, ItemLaw, log_odds
from incrowd.measures.microdata.known_items import Success, any_items
from incrowd.measures.microdata.provider import score_everybody
from incrowd.measures.microdata.set_sizes import Effort, SetSizeFinder
from incrowd.measures.microdata.spec import (
    ADVERSARIES,
    FEW_ITEMS,
    PAPER,
    Knowledge,
    ProfileFilter,
    ReleaseSpec,
    ScoreSpec,
)
from incrowd.measures.microdata.statistics import RiskGroup, Statistics, load_statistics
from incrowd.measures.microdata.table import ItemTable
from incrowd.statistics import spearman

LARGEST_NAMES = 1_000_000
"""Bytes of all names of items together: the most popular come first."""
MOST_HELD_OUT = 100
FEWEST_HELD_OUT = 20
FEWEST_ITEMS = 5
"""Those held out have so many items at least: the usual adversary knows three of them."""
TRIED = Effort(steps=20_000, rounds=300)
"""How hard is tried for those held out; nobody's own result is told."""
USUAL_TASTE = 0.7
"""Where nobody was held out."""
LARGEST_TASTE = 2.0
LEAST_REACH = 0.15
"""Of few held-out people all may happen to fit well."""
COVERED = 0.95
"""Share of held-out people whose true number lies within the interval; of others, some nine in ten."""
TELLING = (0.03, 0.97)
"""Taste is fitted to people whom three items find sometimes."""
BY_MATCHING = tuple(who for who in ADVERSARIES.values() if not who.matching.words)
BY_A_FEW = tuple(who for who in FEW_ITEMS.values() if who.way != "dated")


@dataclass(frozen=True, eq=False)
class ItemSection:
    """The law, and what the head says about it."""

    law: ItemLaw
    facts: Mapping[str, Any]


def item_section(table: ItemTable, options: CardOptions, noise: Noise) -> ItemSection:
    """Describe people's lists so that they may be published."""
    people = len(table.users)
    if people < SMALLEST:
        raise InputError(
            f"{people:,} people have items: fewer than {SMALLEST} are too few to be published. Add other people's."
        )
    # Comparing people with each other is not private: a private card has the usual taste.
    held = np.zeros(0, np.int64) if noise.facts() is not None else _held_out(table, options.seed)
    rest = np.setdiff1d(np.arange(people), held)
    others = replace(
        table, matrix=sparse.csr_matrix(table.matrix[rest]), users=table.users.gather(rest.tolist())
    )
    law = law_of(others, options.k, noise)
    tried: dict[str, Any] = {}
    if len(held) >= FEWEST_HELD_OUT:
        trial = Trial.of(table, held, others, options.seed)
        law = trial.fitted(law)
        tried = trial.accuracy(law)
        law = _with_more(law, len(held))
    facts = {
        "people": law.people,
        "items": len(law.items),
        "unlisted_items": law.unlisted_items,
        "taste": law.taste,
        "held_out": len(held) if tried else 0,
        "accuracy": tried or None,
    }
    return ItemSection(law, facts)


def law_of(table: ItemTable, k: int, noise: Noise) -> ItemLaw:
    """Sum up lists, and let only noisy sums out."""
    lengths = _lengths(table.sizes, noise)
    names = tuple(table.items.to_list())
    listed, sums = noise.words(word_shares(sparse.csr_matrix(table.matrix, dtype=np.float64)), names, k)
    listed, sums = _that_fit(listed, sums, names)
    told = _listed_share(table, listed, lengths, noise)
    law = ItemLaw((), np.zeros(0), lengths.with_columns(listed=pl.Series(told)), 1, USUAL_TASTE, {})
    holders = _holders(law, sums) if len(listed) else np.zeros(0)
    law = replace(law, items=tuple(names[place] for place in listed.tolist()), holders=holders)
    return replace(law, unlisted_items=_unlisted_items(law))


def _with_more(law: ItemLaw, people: int) -> ItemLaw:
    """Return the law of so many more people, who have what the others have: those held out are people, too."""
    more = 1 + people / law.people  # never the true number, which noise is to hide
    counted = (pl.col("people") * more / 5).round().cast(pl.Int64) * 5
    return replace(law, lengths=law.lengths.with_columns(people=counted), holders=_told(law.holders * more))


def _told(people: Floats) -> Floats:
    """Return numbers of people to two digits."""
    return np.array([float(f"{max(round(one), 1):.2g}") for one in people.tolist()])


def _lengths(sizes: Ints, noise: Noise) -> pl.DataFrame:
    """Count people by how many items they have, and put ranges together until enough people are in each."""
    counted = np.bincount(step_of(sizes, WORD_STEPS) // 2, minlength=(len(WORD_STEPS) + 1) // 2).astype(
        np.int64
    )
    spread = noise.spread("lengths", 1.0)
    told = noise.counts("lengths", counted, reach=1.0)
    # Noise in the empty ranges at either end would add up to people who have a hundred thousand items.
    clear = np.flatnonzero(told >= CLEAR_COUNT * spread)
    first, last = (clear[0], clear[-1]) if clear.size else (0, -1)
    told[:first], told[last + 1 :] = 0.0, 0.0
    noisy = np.repeat(np.maximum(told, 0.0) / 2, 2)[: len(WORD_STEPS)]
    found = ranges(noisy, max(FEWEST_ALIKE, 4 * spread)) or [(1, 32, SMALLEST)]
    return pl.DataFrame(found, schema=["items_from", "items_to", "people"], orient="row")


def _that_fit(listed: Ints, sums: Floats, names: tuple[str, ...]) -> tuple[Ints, Floats]:
    """Return the most popular items, as many as a card has room for."""
    order = np.argsort(-sums, kind="stable")
    sizes = np.array([len(names[place].encode()) for place in listed[order].tolist()], np.int64)
    kept = np.sort(order[np.cumsum(sizes) <= LARGEST_NAMES])
    return listed[kept], sums[kept]


def _listed_share(table: ItemTable, listed: Ints, lengths: pl.DataFrame, noise: Noise) -> Floats:
    """Return which share of their items is listed, on average over people of each range."""
    share = np.asarray(table.matrix[:, listed].sum(axis=1)).ravel() / np.maximum(table.sizes, 1)
    place = np.maximum(np.searchsorted(lengths["items_from"].to_numpy(), table.sizes, side="right") - 1, 0)
    sums = np.round(SHARE_UNIT * np.bincount(place, share, lengths.height)).astype(np.int64)
    # Rounding the sum, not the shares, moves it by less than a hundredth more.
    noisy = noise.counts("listed", sums, reach=SHARE_UNIT + 1.0) / SHARE_UNIT
    return np.asarray(np.clip(noisy / lengths["people"].to_numpy(), 0.01, 0.99).round(2))


def _holders(law: ItemLaw, sums: Floats) -> Floats:
    """Return about how many people have each item, from sums in which those with long lists count for less."""
    weight = law.lengths["people"].to_numpy() / np.sqrt(law.typical)
    listed = np.maximum(law.typical * law.lengths["listed"].to_numpy(), 1e-3)
    shares, popularity = weight / weight.sum(), sums / weight.sum()
    activity = fit_levels(shares, np.minimum(listed, 0.95 * len(sums)), popularity)
    people = law.lengths["people"].to_numpy() @ class_probabilities(popularity, activity)
    return _told(people)


def _unlisted_items(law: ItemLaw) -> int:
    """Return as if how many equally common items the unlisted ones are, from the listed ones.

    If items above a popularity are as many as it is small (Zipf's law), down to items of one person, the number is as
    in :func:`incrowd.cards.make.rare_words`; half of that fits lists of films and music, of which the middle is fuller.
    """
    unlisted = law.lengths["people"].to_numpy() @ (law.typical * (1 - law.lengths["listed"].to_numpy()))
    least = float(np.quantile(law.holders, 0.05)) if len(law.holders) else SMALLEST / 10
    return max(1, int(float(f"{unlisted / least * max(math.log(least), 1.0) / 2:.2g}")))


# Members held out


def _held_out(table: ItemTable, seed: int) -> Ints:
    able = np.flatnonzero(table.sizes >= FEWEST_ITEMS)
    rng = np.random.default_rng([seed, 2])
    return np.sort(rng.permutation(able)[: min(MOST_HELD_OUT, len(able) // 4)])


@dataclass(frozen=True, eq=False)
class Trial:
    """People held out: what adversaries make of them among the others, and among made-up people."""

    lists: Sequence[tuple[str, ...]]
    exact: Mapping[str, Floats]
    """By adversary, of everybody held out."""
    popularity: Mapping[str, int]
    """How many of the others have each item."""
    seed: int

    @classmethod
    def of(cls, table: ItemTable, held: Ints, others: ItemTable, seed: int) -> Trial:
        """Ask what each adversary makes of those held out, among all others."""
        profiles = [table.profile(row) for row in held.tolist()]
        by_item = others.matrix.tocsc()
        popularity = others.popularity
        numbers = [numbers_of(joined(by_item, others, profile)) for profile in profiles]
        return cls(
            lists=[tuple(table.items.gather(profile.tolist())) for profile in profiles],
            exact=_columns(numbers),
            popularity=dict(zip(table.items.to_list(), popularity.tolist(), strict=True)),
            seed=seed,
        )

    def fitted(self, law: ItemLaw) -> ItemLaw:
        """Choose how common unlisted items are, and how alike tastes, as those held out say."""
        listed = set(law.items)
        rare = [self.popularity[item] for items in self.lists for item in items if item not in listed]
        if rare:
            unlisted = law.lengths["people"].to_numpy() @ (
                law.typical * (1 - law.lengths["listed"].to_numpy())
            )
            law = replace(
                law, unlisted_items=max(1, int(float(f"{unlisted / max(float(np.mean(rare)), 0.2):.2g}")))
            )
        usual = next(who for who in BY_A_FEW if who.way == "random")
        exact = self.exact[usual.name]
        some = (exact > TELLING[0]) & (exact < TELLING[1])
        if some.sum() < FEWEST_HELD_OUT / 2:
            return replace(law, taste=0.0)

        def excess(taste: float) -> float:
            made = np.array(
                [
                    _by_a_few(law.made_up(items, "", self.seed + at, taste))[usual.name]
                    for at, items in enumerate(self.lists)
                    if some[at]
                ]
            )
            return float(np.median(log_odds(made) - log_odds(exact[some])))

        low, high = 0.0, LARGEST_TASTE  # the more alike tastes are, the fewer are found
        for _ in range(6):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return replace(law, taste=float(f"{(low + high) / 2:.2g}"))

    def accuracy(self, law: ItemLaw) -> dict[str, dict[str, float]]:
        """Compare what adversaries make of those held out with what the card says."""
        made = _columns(
            [numbers_of(law.made_up(items, "", self.seed + 1000 + at)) for at, items in enumerate(self.lists)]
        )
        told = {}
        for name, exact in self.exact.items():
            on_scale = np.log1p if is_number_of_people(name) else log_odds
            error = np.abs(on_scale(made[name]) - on_scale(exact))
            alike = spearman(exact, made[name])
            told[name] = {
                "spearman": 0.0 if math.isnan(alike) else round(alike, 2),
                "median_exact": float(f"{np.median(exact):.2g}"),
                "median_card": float(f"{np.median(made[name]):.2g}"),
                "reach": round(max(float(np.quantile(error, COVERED)), LEAST_REACH), 2),
            }
        return told


def is_number_of_people(adversary: str) -> bool:
    """Say whether an adversary is told by how many others fit; others by a probability."""
    return adversary in ADVERSARIES


def numbers_of(table: ItemTable) -> dict[str, float]:
    """Return what each adversary makes of the last row: numbers of others, and probabilities."""
    row = table.matrix.shape[0] - 1
    profile = table.profile(row)
    numbers = {who.name: float(others_of(table, row, [profile], who)[0, 0]) for who in BY_MATCHING}
    sizes = SetSizeFinder(table.matrix, PAPER.knowledge, TRIED).find(profile, member=row, number=row)
    return numbers | _by_a_few(table) | {FOUND: sizes.found.value}


def _by_a_few(table: ItemTable) -> dict[str, float]:
    """Return how probably those who know a few items of the last row name it."""
    row = table.matrix.shape[0] - 1
    items = table.profile(row)
    random = any_items(table, row, items, TRIED)
    order = np.argsort(table.popularity[items], kind="stable")
    rarest = Success(len(items), lambda count: (order[None, :count], True), random.rivals)
    ways = {"random": random, "rarest": rarest}
    return {who.name: ways[who.way](who.count).value for who in BY_A_FEW}


def joined(
    by_item: sparse.csc_matrix, others: ItemTable, profile: NDArray[np.int32], more: int = 0
) -> ItemTable:
    """Return others with the items of somebody only, and that person in the last row.

    `more` is how many items the person has that nobody else has.
    """
    alone = sparse.csr_matrix((by_item.shape[0], more), dtype=np.int8)
    own = sparse.csr_matrix(np.ones((1, len(profile) + more), np.int8))
    theirs = sparse.hstack([by_item[:, profile].tocsr(), alone], format="csr")
    matrix = sparse.vstack([theirs, own], format="csr")
    names = [*others.items.gather(profile.tolist()), *(f"nobody else's {place}" for place in range(more))]
    nothing = np.full(matrix.nnz, np.nan, np.float32)
    return ItemTable(
        matrix,
        others.users,
        pl.Series(names, dtype=pl.String),
        nothing,
        nothing,
        None,
        np.append(others.sizes, len(profile) + more),
    )


def _columns(rows: Sequence[Mapping[str, float]]) -> dict[str, Floats]:
    return {name: np.array([row[name] for row in rows], float) for name in rows[0]}


# A provider's statistics, read from their own file or made of what a card tells of people's lists.

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

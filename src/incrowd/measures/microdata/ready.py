"""One person's items: who fits what somebody knows of them, as they are and with items left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from incrowd.errors import OnlyACard
from incrowd.measures.microdata.assess import (
    crowd_of_everybody,
    expected_assessment,
    few_items_assessment,
    found_assessment,
    others_of,
)
from incrowd.measures.microdata.explain import crowd_meaning
from incrowd.measures.microdata.item_law import FOUND, ItemLaw
from incrowd.measures.microdata.known_items import KnownItems, choices, known_items
from incrowd.measures.microdata.set_sizes import Effort, SetSizeFinder, SetSizes
from incrowd.measures.microdata.spec import ADVERSARIES, FEW_ITEMS, Adversary, FewItems
from incrowd.measures.microdata.table import ItemTable, kept_item_table
from incrowd.measures.protocol import (
    SMALLEST_CROWD,
    AdvisorOptions,
    Changes,
    Finding,
    Findings,
    GivesAway,
    Goal,
    Measure,
    NotAssessed,
    Person,
    PreparedCrowd,
    Proposal,
    Ready,
)
from incrowd.measures.search import NAMED, fewest
from incrowd.result import Assessment, Standing, say_count, say_percent
from incrowd.statistics import first_place

if TYPE_CHECKING:
    import polars as pl

RECHECKED = 300
"""So many choices of known items are drawn for the attacker who is asked once more."""
MOST_NAMED = 3
STRONGEST = "items that few others list"
HELD_BY = 10
"""An item that is proposed to be listed is listed by at least so many others: it names nobody."""
FEWER = "keep such items off public lists or on another account, and leave out when you rated them"
GUESSER = ADVERSARIES["paper"]
"""Who picks one of those who fit."""


@dataclass(frozen=True, eq=False)
class ReadyMicrodata(Ready):
    """Everybody's items; a person's row is looked up when they are asked about."""

    measure: Measure
    crowd: PreparedCrowd
    options: AdvisorOptions
    _people: dict[str, ItemsOfOne] = field(default_factory=dict, repr=False)

    def assess(self, person: Person, *, explain: bool = True, community: str | None = None) -> Findings:
        """Count who fits under every adversary, and how often one guess would be right."""
        if community is not None:
            return Findings()
        if len(self._table.users) < SMALLEST_CROWD:
            return Findings((), (self.measure.too_few_people(),))
        found = self._of(person).assess(person, explain=explain)
        return replace(found, assessments=tuple(map(self._told, found.assessments)))

    @cached_property
    def _table(self) -> ItemTable:
        if self._law is None:
            return kept_item_table(self.crowd)
        owner = self.crowd.user_id("")
        return self._law.made_up(self.crowd.own_items(owner), owner, self.options.seed)

    @cached_property
    def _law(self) -> ItemLaw | None:
        """What a card tells of people's lists, if a card stands in for the crowd."""
        if not self.crowd.is_made_up:
            return None
        name = self.measure.name
        if not (there := self.crowd.section(name)):
            raise OnlyACard("this card does not say who has which items")
        return ItemLaw.of(there, self.crowd.section_facts(name))

    def _told(self, found: Assessment) -> Assessment:
        """Say of a number found among made-up people how far off it may be."""
        if self._law is None or not found.defined:
            return found
        name = str(found.assumptions.parameters["name"])
        if found.unit == "people":
            low, high = self._law.interval_of_people(found.value - 1, name)
            interval = 1 + low, 1 + high
        else:
            interval = self._law.interval_of_chance(found.value, name if name in FEW_ITEMS else FOUND)
        if found.interval is not None:  # known items were drawn, too
            interval = min(interval[0], found.interval[0]), max(interval[1], found.interval[1])
        say = say_percent if found.unit != "people" else "{:,.0f}".format
        meaning = f"{found.meaning} As far as the card can tell: {say(interval[0])} to {say(interval[1])}."
        return replace(found, standing=Standing.ESTIMATED, interval=interval, meaning=meaning)

    @cached_property
    def _everybody(self) -> NDArray[np.float64] | None:
        if self._law is not None:
            return None  # people who do not exist have no ranks
        return crowd_of_everybody(self._table, cache=self.crowd.cache, memory=self.options.memory)

    def _of(self, person: Person) -> ItemsOfOne:
        if person.user not in self._people:
            table = self._table
            row = table.row_of(person.user)
            asked = [one for one in ADVERSARIES.values() if self.options.asked(one.name)]
            few = [one for one in FEW_ITEMS.values() if self.options.asked(one.name)]
            able = tuple(one for one in asked if table.has(one.matching))
            self._people[person.user] = ItemsOfOne(
                self.measure,
                self.crowd,
                table.only_items(table.profile(row)),
                table,
                row,
                able,
                tuple(one for one in few if self._tells(one.name)),
                self._everybody,
                (
                    *(self._no_marks(one) for one in asked if one not in able),
                    *(self._cannot_tell(one) for one in few if not self._tells(one.name)),
                ),
                Effort(seed=self.options.seed),
            )
        return self._people[person.user]

    def _tells(self, name: str) -> bool:
        return self._law is None or self._law.tells(name)

    def _cannot_tell(self, who: FewItems) -> NotAssessed:
        tried = self._law is not None and who.name in self._law.accuracy
        return NotAssessed(
            measure=f"{self.measure.name} ({who.name})",
            why="people held out while the card was made showed that it cannot tell"
            if tried
            else "nobody was held out while this private card was made, and such cards differ too much in it",
            remedy="a card of more people may" if tried else "a card made without --epsilon may tell",
        )

    def _no_marks(self, who: Adversary) -> NotAssessed:
        marks = who.matching.words
        held_by = "crowd" if self._law is None else "card"
        remedy = f"import items with {marks} to see this adversary"
        return NotAssessed(
            measure=f"{self.measure.name} ({who.name})", why=f"the {held_by} holds no {marks}", remedy=remedy
        )

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterable[Proposal]:
        """Try leaving out the rarest items."""
        return self._of(person).propose(person, finding, goal)

    def gives_away(self, person: Person, finding: Finding) -> Sequence[GivesAway]:
        """Name the items that give most away; there is no other kind of habit in a list."""
        named = [part for part in finding.assessment.evidence if not part.is_rest and part.contribution > 0]
        whole = math.fsum(part.contribution for part in finding.assessment.evidence)
        if not named:
            return ()
        strongest = sorted(named, key=lambda part: part.strongest_first)[:MOST_NAMED]
        share = math.fsum(part.contribution for part in strongest) / whole
        examples = tuple(part.what.removeprefix("the item ") for part in strongest)
        return (GivesAway(kind=STRONGEST, share=share, examples=examples, advice=FEWER),)

    def recheck(self, person: Person, finding: Finding) -> float:
        """Let somebody who compares what they know with whole lists, by TF-IDF cosine, look for the person."""
        who = FEW_ITEMS.get(finding.assessment.assumptions.parameters.get("name", ""))
        if (
            who is None or self._law is not None
        ):  # of made-up people, only what they share with the person is known
            return math.nan
        table = self._table
        row, weights = table.row_of(person.user), np.log((1 + len(table.users)) / (1 + table.popularity)) + 1
        before, now = table.profile(row), table.items.is_in(list(person.items)).to_numpy()
        squares = (table.matrix.astype(np.float64) @ weights**2) + 1e-12
        squares[row] = (weights[now] ** 2).sum() + 1e-12
        held = table.matrix[:, before].tolil()
        held[row] = now[before]
        if who.way == "rarest":
            known = np.argsort(table.popularity[before], kind="stable")[None, : who.count]
        else:
            effort = Effort(rounds=RECHECKED, seed=self.options.seed)
            known, _ = choices(len(before), min(who.count, len(before)), effort=effort, row=row)
        asked = np.zeros((len(before), len(known)))
        np.put_along_axis(asked, known.T, weights[before[known.T]] ** 2, axis=0)
        alike = np.asarray(held.tocsr() @ asked) / np.sqrt(squares)[:, None]
        own = alike[row].copy()
        alike[row] = -1.0
        return float(first_place((alike > own).sum(axis=0), (alike == own).sum(axis=0)).mean())


@dataclass(frozen=True, eq=False)
class ItemsOfOne:
    """One person among everybody's items."""

    measure: Measure
    crowd: PreparedCrowd
    table: ItemTable
    """Everybody, but only the items that the person has: nothing else matters here."""
    everything: ItemTable
    """Everybody's items, for those that the person could list."""
    row: int
    adversaries: tuple[Adversary, ...]
    few: tuple[FewItems, ...]
    everybody: NDArray[np.float64] | None
    unheld: tuple[NotAssessed, ...]
    effort: Effort

    def assess(self, person: Person, *, explain: bool = True) -> Findings:
        """Count who fits under every adversary, and how often one guess would be right."""
        if not person.items:
            remedy = "nothing to do: there is nothing to recognise you by"
            return Findings((), (self.measure.not_assessed("no items of yours are left", remedy),))
        table = self._with(person.items)
        found = [self._fitting(table, who, explain) for who in self.adversaries]
        if GUESSER in self.adversaries:
            found.append(found_assessment(table, GUESSER, self._sizes(table), self.effort))
        known = self._known(table) if self.few else None
        few = [
            self._by_a_few(table, known, who)
            for who in self.few
            if known is not None and known.tells(who.way)
        ]
        few = few if explain else [replace(one, evidence=(), explained=None) for one in few]
        return Findings((*few, *found), self.unheld)

    def _by_a_few(self, table: ItemTable, known: KnownItems, who: FewItems) -> Assessment:
        return few_items_assessment(table, self.row, known, who, self._names, self.effort)

    @cached_property
    def _names(self) -> pl.Series:
        """What the person lists, before any change."""
        return self.table.items.gather(self.table.profile(self.row).tolist())

    def _known(self, table: ItemTable) -> KnownItems:
        """Return how often a few items pick the person out, and how few it takes: kept, because it takes long."""
        items = table.profile(self.row)
        before = np.flatnonzero(table.items.is_in(self._names.to_list()).to_numpy()).astype(np.int32)
        find = lambda: known_items(table, self.row, self.effort, before).arrays()  # noqa: E731
        question = {
            "what": "known items, or fewer of them, shortest list first",
            "user": self.table.users[self.row],
            "items": table.items.gather(items.tolist()).to_list(),
            "listed": int(table.list_lengths[self.row]),
            "effort": asdict(self.effort),
        }
        return KnownItems.from_arrays(len(before), self.crowd.answer(question, find))

    def _fitting(self, table: ItemTable, who: Adversary, explain: bool) -> Assessment:
        now = self._now[who.name]
        if explain:
            return (
                now if table is self.table else replace(expected_assessment(table, self.row, who), advice=())
            )
        known = replace(now, evidence=(), explained=None, crowd_rank=None)
        if table is self.table:
            return known
        value = 1 + float(others_of(table, self.row, [table.profile(self.row)], who)[0, 0])
        return replace(known, value=value, meaning=crowd_meaning(value, len(table.users), who.words))

    @cached_property
    def _now(self) -> dict[str, Assessment]:
        """The person as they are, under each adversary."""
        found = {
            who.name: expected_assessment(self.table, self.row, who, self.everybody)
            for who in self.adversaries
        }
        return {name: replace(one, advice=()) for name, one in found.items()}

    def _sizes(self, table: ItemTable) -> SetSizes:
        """Return how many people would fit how often: kept, because finding it out takes compiled kernels."""
        items = table.profile(self.row)

        def find() -> dict[str, NDArray[Any]]:
            finder = SetSizeFinder(table.matrix, GUESSER.knowledge, self.effort)
            found = finder.find(items, member=self.row, number=self.row)
            return {
                "sizes": found.sizes,
                "probabilities": found.probabilities,
                "rounds": np.array([] if found.rounds is None else [found.rounds], np.int64),
            }

        question = {
            "what": "set sizes",
            "user": self.table.users[self.row],
            "items": table.items.gather(items.tolist()).to_list(),
            "knowledge": GUESSER.knowledge.to_dict(),
            "effort": asdict(self.effort),
        }
        kept = self.crowd.answer(question, find)
        rounds = int(kept["rounds"][0]) if len(kept["rounds"]) else None
        return SetSizes(kept["sizes"], kept["probabilities"], rounds is None, rounds)

    def _with(self, items: frozenset[str]) -> ItemTable:
        """Return the table with the person's row changed to some items; nobody else's changes."""
        own = frozenset(self._names.to_list())
        if items == own:
            return self.table
        new = items - own
        table = self._and_also(new)
        start, stop = table.matrix.indptr[self.row : self.row + 2]
        stays = table.items.gather(table.matrix.indices[start:stop].tolist()).is_in(list(items)).to_numpy()
        old, added = np.arange(start, stop)[stays], np.flatnonzero(table.items.is_in(list(new)).to_numpy())
        columns = np.concatenate([table.matrix.indices[old], added])
        order = np.argsort(columns, kind="stable")

        def with_row(values: NDArray[Any], of_new: float) -> NDArray[Any]:
            mine = np.concatenate([values[old], np.full(len(added), of_new, values.dtype)])[order]
            return np.concatenate([values[:start], mine, values[stop:]])

        starts = table.matrix.indptr.copy()
        starts[self.row + 1 :] += len(columns) - int(stop - start)
        indices = np.concatenate([table.matrix.indices[:start], columns[order], table.matrix.indices[stop:]])
        parts = with_row(table.matrix.data, 1), indices.astype(table.matrix.indices.dtype), starts
        matrix = sparse.csr_matrix(parts, shape=table.matrix.shape)
        lengths = table.list_lengths.copy()
        lengths[self.row] += len(new) - len(own - items)
        ratings, days = (with_row(marks, math.nan) for marks in (table.ratings, table.days))
        return replace(table, matrix=matrix, ratings=ratings, days=days, lengths=lengths)

    def _and_also(self, new: frozenset[str]) -> ItemTable:
        """Return the table with the columns of some more items."""
        if not new:
            return self.table
        wanted = self.everything.items.is_in([*self._names.to_list(), *new]).to_numpy()
        return self.everything.only_items(np.flatnonzero(wanted).astype(np.int32))

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterable[Proposal]:
        """Try leaving out the rarest items, listing as many common ones instead, and only listing more of these.

        A list that gets shorter gives away more by what is left: of all whom it fits the shortest is named first.
        """
        popularity = dict(zip(self.table.items.to_list(), self.table.popularity.tolist(), strict=True))
        rarest = sorted(self._names.to_list(), key=lambda item: (popularity[item], item))
        common, now = self._common(len(rarest)), finding.assessment
        most = int(goal.loss * len(rarest))
        for limit, leaves_out, lists in (
            (most, True, False),
            (min(most, len(common)), True, True),
            (len(common), False, True),
        ):

            def relisted(count: int, gone: bool = leaves_out, new: bool = lists) -> Changes:
                return Changes(
                    drop_items=frozenset(rarest[: count * gone]), add_items=frozenset(common[: count * new])
                )

            def lack(count: int, changed: Callable[[int], Changes] = relisted) -> float:
                one = changed(count)
                return goal.short(self._again((person.items - one.drop_items) | one.add_items, now))

            if (count := fewest(limit, lack, goal.short(now))) is not None:
                yield _relisting(relisted(count), rarest, common)

    def _common(self, most: int) -> list[str]:
        """Return items that many others list and the person does not, the commonest first."""
        own = self.everything.items.is_in(self._names.to_list()).to_numpy()
        held = np.where(own, 0, self.everything.popularity)
        order = np.argsort(-held, kind="stable")[:most]
        return [str(item) for item in self.everything.items.gather(order[held[order] >= HELD_BY].tolist())]

    def _again(self, items: frozenset[str], now: Assessment) -> Assessment:
        """Ask one of the questions again, about some of the items."""
        table = self._with(items)
        name = now.assumptions.parameters.get("name")
        if name in FEW_ITEMS:
            return self._by_a_few(table, self._known(table), FEW_ITEMS[name])
        if now.unit != "people":
            return found_assessment(table, GUESSER, self._sizes(table), self.effort)
        who = next(one for one in self.adversaries if one.words == now.assumptions.adversary)
        return self._fitting(table, who, explain=False)


def _relisting(changes: Changes, rarest: Sequence[str], common: Sequence[str]) -> Proposal:
    """Say which items to leave out and which to list; both come in the order in which they help."""
    gone = [item for item in rarest if item in changes.drop_items]
    new = [item for item in common if item in changes.add_items]
    out = (
        f"your rarest item {_named(gone)}"
        if len(gone) == 1
        else f"your {len(gone)} rarest items: {_named(gone)}"
    )
    many = f"many others list and you do not: {_named(new)}"
    if gone and new:
        one = len(new) == 1
        what = f"Leave out {out}; and list {'one' if one else 'as many'} instead that {many}"
    else:
        what = f"Leave out {out}" if gone else f"List {say_count(len(new), 'item')} more that {many}"
    lost = [f"{len(gone):,} of your {len(rarest):,} items"] if gone else []
    shown = [f"{say_count(len(new), 'item')} that you had not meant to list"] if new else []
    return Proposal(what=what, loss="; ".join(lost + shown), changes=changes)


def _named(items: Sequence[str]) -> str:
    more = f" and {len(items) - NAMED} more" if len(items) > NAMED else ""
    return ", ".join(f"“{item}”" for item in items[:NAMED]) + more


def crowds_among_items(crowd: PreparedCrowd, memory: int) -> tuple[NDArray[np.float64] | None, str]:
    """Return how many people fit everybody's items on average, or why that cannot be told."""
    table = kept_item_table(crowd)
    if table.matrix.shape[0] < 2:
        return None, "this crowd has no items of at least two people"
    others = crowd_of_everybody(table, cache=crowd.cache, memory=memory)
    if others is None:
        return None, "too many items for an exact answer; see incrowd microdata evaluate"
    return 1 + np.asarray(others, np.float64), ""

"""Singled out by items: how many others fit what somebody knows of your likes, ratings or purchases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from incrowd.advisor.answer import Changes, Judged, NotAssessed, ThemeName
from incrowd.advisor.examiner import Findings, Goal, Proposal
from incrowd.advisor.search import NAMED, fewest
from incrowd.measures.microdata.assess import assess_row, crowd_of_everybody, others_of
from incrowd.measures.microdata.explain import SCORE_UNIT, crowd_meaning, found_meaning
from incrowd.measures.microdata.set_sizes import Effort, SetSizeFinder
from incrowd.measures.microdata.spec import ADVERSARIES, Adversary
from incrowd.measures.microdata.table import ItemTable, item_table
from incrowd.result import Assessment

if TYPE_CHECKING:
    from incrowd.advisor.person import Own
    from incrowd.advisor.spec import AdvisorOptions
    from incrowd.crowd import Crowd
    from incrowd.crowd.schema import Kind


@dataclass(frozen=True, eq=False)
class ItemExaminer:
    """The exact crowd among everybody's items, under each adversary."""

    measure: ClassVar[str] = "microdata"
    reads: ClassVar[Kind] = "items"

    table: ItemTable
    row: int
    adversaries: tuple[Adversary, ...]
    everybody: NDArray[np.float64] | None
    unheld: tuple[NotAssessed, ...]
    effort: Effort
    memory: int

    @classmethod
    def prepare(cls, crowd: Crowd, own: Own, options: AdvisorOptions) -> ItemExaminer:
        """Read everybody's items."""
        table = item_table(crowd)
        asked = [one for one in ADVERSARIES.values() if options.asked(one.name)]
        able = tuple(one for one in asked if table.has(one.matching))
        return cls(
            table,
            table.row_of(own.user),
            able,
            crowd_of_everybody(table, cache=crowd.cache, memory=options.memory),
            tuple(_no_marks(one) for one in asked if one not in able),
            Effort(seed=options.seed),
            options.memory,
        )

    def examine(self, own: Own, *, explain: bool = True) -> Findings:
        """Count who fits under every adversary, and how often one guess would be right."""
        if not own.items:
            return Findings((), (_no_items(),))
        table = self._with(own.items)
        if not explain:
            return Findings(tuple(self._quick(table, one) for one in self._questions()), self.unheld)
        everybody = self.everybody if table is self.table else None
        found = assess_row(
            table, self.row, self.adversaries, everybody=everybody, effort=self.effort, memory=self.memory
        )
        # The paper's score estimates for a client what is known exactly here.
        wanted = {(one.unit, one.assumptions.adversary) for one in self._questions()}
        kept = (one for one in found if (one.unit, one.assumptions.adversary) in wanted)
        return Findings(tuple(replace(one, advice=()) for one in kept), self.unheld)

    def _questions(self) -> list[Assessment]:
        """Return the assessments of the person as they are: one an adversary, and how often they are found."""
        return [one for one in self._now if one.unit != SCORE_UNIT and self._asked(one)]

    def _asked(self, one: Assessment) -> bool:
        return any(who.words == one.assumptions.adversary for who in self.adversaries)

    @cached_property
    def _now(self) -> tuple[Assessment, ...]:
        return assess_row(self.table, self.row, self.adversaries, effort=self.effort, memory=self.memory)

    def _quick(self, table: ItemTable, now: Assessment) -> Assessment:
        """Measure one of the questions again, without its evidence."""
        who = next(one for one in self.adversaries if one.words == now.assumptions.adversary)
        known = replace(now, evidence=(), explained=None, advice=(), crowd_rank=None)
        items = table.profile(self.row)
        if now.unit == "people":
            value = 1 + float(others_of(table, self.row, [items], who, memory=self.memory)[0, 0])
            return replace(known, value=value, meaning=crowd_meaning(value, len(table.users), who.words))
        sizes = SetSizeFinder(table.matrix, who.knowledge, self.effort).find(
            items, member=self.row, number=self.row
        )
        found = sizes.found
        return replace(
            known,
            value=found.value,
            interval=None if sizes.exact else (found.low, found.high),
            meaning=found_meaning(found.value, sizes.alone.value, who.words),
        )

    def _with(self, items: frozenset[str]) -> ItemTable:
        """Return the table with the person's row reduced to some items; nobody else's changes."""
        table = self.table
        start, stop = table.matrix.indptr[self.row : self.row + 2]
        names = table.items.gather(table.matrix.indices[start:stop].tolist())
        stays = names.is_in(list(items)).to_numpy()
        if stays.all():
            return table
        keep = np.ones(table.matrix.nnz, bool)
        keep[start:stop] = stays
        starts = table.matrix.indptr.copy()
        starts[self.row + 1 :] -= int((~stays).sum())
        parts = (table.matrix.data[keep], table.matrix.indices[keep], starts)
        matrix = sparse.csr_matrix(parts, shape=table.matrix.shape)
        return replace(table, matrix=matrix, ratings=table.ratings[keep], days=table.days[keep])

    def propose(self, own: Own, finding: Judged, goal: Goal) -> Iterable[Proposal]:
        """Try leaving out the rarest items."""
        popularity = dict(zip(self.table.items.to_list(), self.table.popularity.tolist(), strict=True))
        rarest = sorted(own.items, key=lambda item: (popularity[item], item))
        now = finding.assessment

        def lack(count: int) -> float:
            return goal.short(self._quick(self._with(own.items - set(rarest[:count])), now))

        count = fewest(int(goal.loss * len(rarest)), lack, goal.short(finding.assessment))
        if count is not None:
            yield _drop(rarest[:count], len(rarest))


def _drop(items: list[str], of: int) -> Proposal:
    named = ", ".join(f"'{item}'" for item in items[:NAMED])
    more = f" and {len(items) - NAMED} more" if len(items) > NAMED else ""
    what = (
        f"your rarest item {named}" if len(items) == 1 else f"your {len(items)} rarest items: {named}{more}"
    )
    return Proposal(
        what=f"Leave out {what}",
        loss=f"{len(items):,} of your {of:,} items",
        changes=Changes(drop_items=frozenset(items)),
    )


def _no_items() -> NotAssessed:
    return NotAssessed(
        measure="microdata",
        why="no items of yours are left",
        remedy="nothing to do: there is nothing to recognise you by",
        theme=ThemeName.SINGLED_OUT,
    )


def _no_marks(adversary: Adversary) -> NotAssessed:
    return NotAssessed(
        measure=f"microdata ({adversary.name})",
        why=f"the crowd holds no {adversary.matching.words}",
        remedy="import items with ratings and times to see this adversary",
    )

"""Singled out by items: how many others fit what somebody knows of your likes, ratings or purchases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from incrowd.advisor.answer import Changes, Judged, NotAssessed, ThemeName
from incrowd.advisor.examiner import Findings, Proposal, Shortfall
from incrowd.advisor.search import NAMED, fewest
from incrowd.measures.microdata.assess import assess_row, crowd_of_everybody
from incrowd.measures.microdata.explain import SCORE_UNIT
from incrowd.measures.microdata.set_sizes import Effort
from incrowd.measures.microdata.spec import ADVERSARIES, Adversary
from incrowd.measures.microdata.table import ItemTable, item_table
from incrowd.result import Assessment

if TYPE_CHECKING:
    from incrowd.advisor.person import Own
    from incrowd.advisor.spec import AdvisorOptions
    from incrowd.crowd import Crowd


@dataclass(frozen=True, eq=False)
class ItemExaminer:
    """The exact crowd among everybody's items, under each adversary."""

    measure: ClassVar[str] = "microdata"

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
        """Count who fits under every adversary."""
        if not own.items:
            return Findings((), (_no_items(),))
        table = self._with(own.items)
        unchanged = table is self.table
        found = assess_row(
            table,
            self.row,
            self.adversaries,
            everybody=self.everybody if unchanged else None,
            effort=self.effort,
            memory=self.memory,
        )
        # The paper's score estimates for a client what is known exactly here.
        kept = [replace(one, advice=()) for one in found if one.unit != SCORE_UNIT]
        if not any(one.name == "paper" for one in self.adversaries):
            kept = [one for one in kept if one.unit == "people"]
        return Findings(tuple(kept), self.unheld)

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

    def propose(self, own: Own, finding: Judged, short: Shortfall) -> Iterable[Proposal]:
        """Try leaving out the rarest items."""
        popularity = dict(zip(self.table.items.to_list(), self.table.popularity.tolist(), strict=True))
        rarest = sorted(own.items, key=lambda item: (popularity[item], item))
        one = replace(self, adversaries=self._only(finding.assessment), everybody=None)

        def lack(count: int) -> float:
            left = replace(own, items=own.items - set(rarest[:count]))
            found = one.examine(left, explain=False).assessments
            return short(next(part for part in found if part.unit == finding.assessment.unit))

        count = fewest(len(rarest) - 1, lack, short(finding.assessment))
        if count is not None:
            yield _drop(rarest[:count], len(rarest))

    def _only(self, assessment: Assessment) -> tuple[Adversary, ...]:
        return tuple(one for one in self.adversaries if one.words == assessment.assumptions.adversary)


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

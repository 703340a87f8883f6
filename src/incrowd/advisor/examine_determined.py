"""Linkable by all habits: how sure somebody determined would be that two profiles are yours.

What this adversary learned stays learned when the person changes: the weights are those of the crowd as it is.
Each answer is kept in the crowd's cache, since it takes long.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from incrowd.advisor.answer import Judged
from incrowd.advisor.examiner import Findings, Goal, Proposal
from incrowd.advisor.silences import too_few_posts
from incrowd.advisor.stored import remembered
from incrowd.measures.linkability.assess import certainty_assessment, view_evidence
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.result import Assessment, Evidence

if TYPE_CHECKING:
    from incrowd.advisor.person import Own
    from incrowd.crowd import Crowd
    from incrowd.crowd.schema import Kind
    from incrowd.measures.linkability.determined import DeterminedAttack
    from incrowd.profiles.habits import Habits


@dataclass(frozen=True, eq=False)
class DeterminedExaminer:
    """One pair of communities under the strongest adversary we know."""

    measure: ClassVar[str] = "linkability"
    reads: ClassVar[Kind] = "posts"

    crowd: Crowd
    before: Own
    """The person as they are in the store."""
    options: LinkabilityOptions

    @property
    def _both(self) -> tuple[str, str]:
        return self.options.source, self.options.target

    @cached_property
    def _attack(self) -> DeterminedAttack:
        """Prepare the attack; what the adversary learned on other communities is kept, for it takes longest."""
        from incrowd.measures.linkability.determined import prepare
        from incrowd.measures.linkability.link_model import LinkModel

        prepared: list[DeterminedAttack] = []

        def learn() -> dict[str, np.ndarray[Any, Any]]:
            prepared.append(prepare(self.crowd, self.options))
            model = prepared[0].model
            return {
                "views": np.array(model.views),
                "weights": np.array(model.weights),
                "presence": np.array(model.presence),
                "prior": np.array(model.prior),
                "practice": np.array(prepared[0].practice),
            }

        kept = remembered(self.crowd, {"what": "link model", **self.options.parameters()}, learn)
        if prepared:
            return prepared[0]
        model = LinkModel(
            views=tuple(kept["views"].tolist()),
            weights=tuple(kept["weights"].tolist()),
            presence=tuple(kept["presence"].tolist()),
            prior=float(kept["prior"]),
        )
        return prepare(self.crowd, self.options, (model, int(kept["practice"])))

    def examine(self, own: Own, *, explain: bool = True) -> Findings:
        """Return how sure the adversary is, from the cache where the same was asked before."""
        few = [name for name in self._both if own.rows_in(name).sum() < self.options.min_posts]
        if few:
            least = self.options.min_posts
            return Findings((), tuple(too_few_posts("linkability (determined)", name, least) for name in few))
        question = {"what": "determined", "person": _digest(own, self._both), **self.options.parameters()}
        found = remembered(self.crowd, question, lambda: self._measure(own))
        return Findings((self._assessment(found, explain),))

    def _measure(self, own: Own) -> dict[str, Any]:
        attack = self._attack if own is self.before else self._changed(own)
        place = int(np.flatnonzero(attack.people == own.user)[0])
        certainty = attack.judged()["own"][attack.pairs[:, 0]]
        parts = view_evidence(attack, place)
        return {
            "sure": np.array(certainty[place]),
            "rank": np.array(1 + int((certainty > certainty[place]).sum())),
            "sizes": np.array([len(attack.targets), len(certainty), attack.practice]),
            "views": np.array([part.what for part in parts]),
            "adds": np.array([part.contribution for part in parts]),
        }

    def _changed(self, own: Own) -> DeterminedAttack:
        """Return the attack with the person's own two rows read again."""
        from incrowd.measures.linkability.link_model import Resemblance

        attack = self._attack
        sources, targets = (
            _with_row(habits, own, name)
            for habits, name in zip((attack.sources, attack.targets), self._both, strict=True)
        )
        resemblance = Resemblance(sources, targets, attack.model.views)
        return replace(attack, sources=sources, targets=targets, resemblance=resemblance)

    def _assessment(self, found: Any, explain: bool) -> Assessment:
        targets, pairs, practice = (int(x) for x in found["sizes"])
        parts = zip(found["views"].tolist(), found["adds"].tolist(), strict=True)
        return certainty_assessment(
            self.options,
            float(found["sure"]),
            targets=targets,
            rank=int(found["rank"]),
            pairs=pairs,
            practice=practice,
            data_hash=self.crowd.data_hash,
            evidence=tuple(Evidence(what=what, contribution=adds) for what, adds in parts) if explain else (),
        )

    def propose(self, own: Own, finding: Judged, goal: Goal) -> Iterable[Proposal]:
        """Propose nothing of its own: what pulls words apart is measured against this adversary in the plan."""
        return ()


def _with_row(habits: Habits, own: Own, community: str) -> Habits:
    """Return everybody's habits with the person's own counted again from these posts."""
    from scipy import sparse

    from incrowd.profiles.habits import habits as count_habits

    mine = own.posts.filter(own.rows_in(community)).with_columns(user=pl.lit(own.user))
    again = count_habits(mine.select("user", "community", "time", "text"))
    row = int((habits.identities["user"] == own.user).arg_max() or 0)
    rows = {}
    for name, matrix in habits.rows.items():
        new = again.rows[name]
        width = max(matrix.shape[1], new.shape[1])
        both = [_wide(part, width) for part in (matrix[:row], new, matrix[row + 1 :])]
        rows[name] = sparse.vstack(both, format="csr")
    return replace(habits, rows=rows)


def _wide(rows: Any, width: int) -> Any:
    from incrowd.advisor.others import widened

    return widened(rows, width)


def _digest(own: Own, communities: tuple[str, str]) -> str:
    """Return a name for what the adversary can read of the person."""
    said = own.posts.filter(pl.col("community").is_in(list(communities))).select("community", "time", "text")
    rows = repr([own.user, *said.rows()])
    return blake2b(rows.encode(), digest_size=12).hexdigest()

"""One person under the determined adversary: how sure somebody would be, by all habits, that two profiles are theirs.

What this adversary learned stays learned when the person changes: the weights are those of the crowd as it is.
Each answer is kept in the crowd's cache, since it takes long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from incrowd.measures.linkability.in_words import certainty_assessment
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.protocol import Person, PreparedCrowd
from incrowd.result import Assessment, Evidence

if TYPE_CHECKING:
    from incrowd.measures.linkability.determined import DeterminedAttack
    from incrowd.profiles.habits import Habits


@dataclass(frozen=True, eq=False)
class DeterminedPerson:
    """One pair of a person's communities under the strongest adversary we know."""

    crowd: PreparedCrowd
    before: Person
    """The person as they are in the store."""
    options: LinkabilityOptions

    @property
    def _both(self) -> tuple[str, str]:
        return self.options.source, self.options.target

    @cached_property
    def _attack(self) -> DeterminedAttack:
        """Prepare the attack; what the adversary learned on other communities is kept, for it takes longest."""
        # Imported here and below: a second look at the same person finds the answer kept, and need not wait for these.
        from incrowd.measures.linkability.determined import prepare
        from incrowd.measures.linkability.link_model import LinkModel

        crowd = self.crowd.crowd()
        prepared: list[DeterminedAttack] = []

        def learn() -> dict[str, np.ndarray[Any, Any]]:
            prepared.append(prepare(crowd, self.options))
            model = prepared[0].model
            return {
                "views": np.array(model.views),
                "weights": np.array(model.weights),
                "presence": np.array(model.presence),
                "prior": np.array(model.prior),
                "practice": np.array(prepared[0].practice),
            }

        kept = self.crowd.answer({"what": "link model 2", **self.options.parameters()}, learn)
        if prepared:
            return prepared[0]
        model = LinkModel(
            views=tuple(kept["views"].tolist()),
            weights=tuple(kept["weights"].tolist()),
            presence=(float(kept["presence"][0]), float(kept["presence"][1])),
            prior=float(kept["prior"]),
        )
        return prepare(crowd, self.options, (model, int(kept["practice"])))

    def assess(self, person: Person, *, explain: bool = True) -> Assessment:
        """Return how sure the adversary is, from the cache where the same was asked before."""
        question = {"what": "determined", "person": _digest(person, self._both), **self.options.parameters()}
        found = self.crowd.answer(question, lambda: self._measure(person))
        return self._assessment(found, explain)

    def _measure(self, person: Person) -> dict[str, Any]:
        from incrowd.measures.linkability.assess import view_evidence

        attack = self._attack if person is self.before else self._changed(person)
        place = int(np.flatnonzero(attack.people == person.user)[0])
        found = attack.certainty()
        certainty, parts = found.sure, view_evidence(attack.model, found.scores[place])
        return {
            "sure": np.array(certainty[place]),
            "rank": np.array(1 + int((certainty > certainty[place]).sum())),
            "sizes": np.array([len(attack.targets), len(certainty), attack.practice]),
            "views": np.array([part.what for part in parts]),
            "adds": np.array([part.contribution for part in parts]),
        }

    def _changed(self, person: Person) -> DeterminedAttack:
        """Return the attack with the person's own two rows read again."""
        attack = self._attack
        sources, targets = (
            _with_row(habits, person, name)
            for habits, name in zip((attack.sources, attack.targets), self._both, strict=True)
        )
        return replace(attack, sources=sources, targets=targets)

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


def _with_row(habits: Habits, person: Person, community: str) -> Habits:
    """Return everybody's habits with the person's own counted again from these posts."""
    from incrowd.profiles.habits import habits as count_habits

    mine = person.posts.filter(person.rows_in(community)).with_columns(user=pl.lit(person.user))
    again = count_habits(mine.select("user", "community", "time", "text"))
    return habits.with_row(person.user, again)


def _digest(person: Person, communities: tuple[str, str]) -> str:
    """Return a name for what the adversary can read of the person."""
    said = person.posts.filter(pl.col("community").is_in(list(communities))).select(
        "community", "time", "text"
    )
    rows = repr([person.user, *said.rows()])
    return blake2b(rows.encode(), digest_size=12).hexdigest()

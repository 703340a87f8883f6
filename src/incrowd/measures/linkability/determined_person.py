"""One person under the determined adversary: how sure somebody would be, by all habits, that two profiles are theirs.

What this adversary learned stays learned when the person changes: the weights, and who resembles everybody, are those
of the crowd as it is. That needs everybody compared with everybody, once for a pair of communities; of large ones a
sample is, which has the person in it. Each change is compared with everybody else alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from incrowd.crowd.array_cache import set_aside
from incrowd.measures.linkability.in_words import VIEW_NAMES, certainty_assessment
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.protocol import Finding, Goal, Person, PreparedCrowd, Proposal
from incrowd.measures.sampling import SampledRank
from incrowd.measures.search import alternating, delete_first, first_to_reach, start_over, steps, take_out
from incrowd.measures.telling import Kind, Telling, kept_habits, rarity_of, same_hours, same_weeks
from incrowd.profiles.habits import CELL_BITS, TEXT_FAMILIES, post_habits
from incrowd.profiles.habits import habits as count_habits
from incrowd.result import Assessment, Evidence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.measures.linkability.determined import Certainty, DeterminedAttack
    from incrowd.measures.linkability.link_model import ViewHubs
    from incrowd.measures.telling import Habit
    from incrowd.profiles.habits import Habits


LEAST_LEFT = 4
"""A profile that a change leaves with fewer posts is none; the others in the attack all have many more."""
MOST_ATTACKS = 2
EXAMPLES = 3
WORDS = (12, 24)
"""So many words are tried to be taken out."""


@dataclass(frozen=True, eq=False)
class DeterminedPerson:
    """One pair of a person's communities under the strongest adversary we know."""

    crowd: PreparedCrowd
    before: Person
    """The person as they are in the store."""
    options: LinkabilityOptions
    attacks: dict[Hashable, DeterminedAttack] = field(default_factory=dict, repr=False)
    """Pairs of communities that were read, for whoever is asked about next; the latest few."""

    @property
    def _both(self) -> tuple[str, str]:
        return self.options.source, self.options.target

    @property
    def _attack(self) -> DeterminedAttack:
        """Everybody's habits in both communities, and what the adversary has learned."""
        key = self._both, self._asked
        if key not in self.attacks:
            while len(self.attacks) >= MOST_ATTACKS:
                self.attacks.pop(next(iter(self.attacks)))
            self.attacks[key] = set_aside(self._prepared(), self.crowd.cache)
        return self.attacks[key]

    def _prepared(self) -> DeterminedAttack:
        """Prepare the attack; what the adversary learned on other communities is kept, for it takes longest."""
        # Imported here and below: a second look at the same person finds the answer kept, and need not wait for these.
        from incrowd.measures.linkability.determined import prepare
        from incrowd.measures.linkability.link_model import LinkModel

        crowd = self.crowd.crowd()
        prepared: list[DeterminedAttack] = []

        def learn() -> dict[str, np.ndarray[Any, Any]]:
            prepared.append(prepare(crowd, self.options, asked=self._asked))
            model = prepared[0].model
            return {
                "views": np.array(model.views),
                "weights": np.array(model.weights),
                "practice": np.array(prepared[0].practice),
            }

        kept = self.crowd.answer({"what": "link model 3", **self.options.parameters()}, learn)
        if prepared:
            return prepared[0]
        model = LinkModel(views=tuple(kept["views"].tolist()), weights=tuple(kept["weights"].tolist()))
        return prepare(crowd, self.options, (model, int(kept["practice"])), asked=self._asked)

    @property
    def _asked(self) -> str | None:
        """For whom large communities may be sampled; None: everybody is compared."""
        return None if self.crowd.exact else self.before.user

    @cached_property
    def _pair(self) -> Mapping[str, Any]:
        """What is the same for everybody who is in both: hubs under each view, and how sure of each true pair."""

        def compare() -> dict[str, Any]:
            hubs: dict[str, ViewHubs] = {}
            sure = self._attack.certainty(hubs).sure
            kept = {"sure": np.array(sure)}
            for name, one in hubs.items():
                spread = np.array([one.mean, one.deviation])
                kept |= {f"{name} source": one.source, f"{name} target": one.target, f"{name} spread": spread}
            return kept

        question = {"what": "link hubs", "asked": self._asked, **self.options.parameters()}
        return self.crowd.answer(question, compare)

    def _hubs(self) -> dict[str, ViewHubs]:
        from incrowd.measures.linkability.link_model import ViewHubs

        kept = self._pair
        return {
            name: ViewHubs(kept[f"{name} source"], kept[f"{name} target"], *kept[f"{name} spread"].tolist())
            for name in self._attack.model.views
        }

    def assess(self, person: Person, *, explain: bool = True, examples: bool = True) -> Assessment:
        """Return how sure the adversary is, from the cache where the same was asked before."""
        found = self.crowd.answer(self._question(person), lambda: self._measured([person])[0])
        told = self._assessment(found, explain)
        return (
            replace(told, evidence=self._with_examples(told.evidence, person))
            if explain and examples
            else told
        )

    def _with_examples(self, parts: Sequence[Evidence], person: Person) -> tuple[Evidence, ...]:
        """Name the strongest habits of each kind."""
        kinds = {
            VIEW_NAMES["vocabulary"]: (Kind.WORDS, Kind.NAMES),
            VIEW_NAMES["phrases"]: (Kind.PHRASES,),
            VIEW_NAMES["style"]: (Kind.WRITING, Kind.LITTLE),
        }
        found = []
        for part in parts:
            # Habits are what the profiles have in common: no example of what speaks against a link.
            fit = kinds.get(part.what, ()) if part.contribution > 0 else ()
            some = [one.name for one in self.habits(person) if one.kind in fit][:EXAMPLES]
            found.append(replace(part, what=f"{part.what}: {', '.join(some)}") if some else part)
        return tuple(found)

    def habits(self, person: Person) -> tuple[Habit, ...]:
        """Return the written habits that the two profiles have in common, the strongest first."""
        question = {**self._question(person), "what": "kinds of habits of a pair 3"}
        return kept_habits(self.crowd, question, lambda: self._telling(person).habits)

    def assess_many(self, people: Sequence[Person]) -> list[Assessment]:
        """Return the same for several changed versions of the person, in one go: everybody else is laid out once."""
        measured = self._measured(people) if people else []
        kept = [
            self.crowd.answer(self._question(person), lambda one=one: one)  # type: ignore[misc]
            for person, one in zip(people, measured, strict=True)
        ]
        return [self._assessment(found, explain=False) for found in kept]

    # What gives the pair away, and what would help

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterator[Proposal]:
        """Try to do without the posts and words that make the two profiles alike, and a new name for either."""
        source, target = self._both
        telling = self._telling(person)
        orders = [telling.order(place) for place in (0, 1)]
        places = ((source, orders[0]), (target, orders[1]), (f"{source} and {target}", alternating(*orders)))
        ways = [
            [delete_first(order, count, where) for count in steps(int(goal.loss * len(order)))]
            for where, order in places
        ]
        words = telling.words(person)
        reworded = [take_out(person, words[:count], places[2][0]) for count in WORDS if words]
        anew = [start_over(person, name) for name in self._both]
        ways += [reworded, *anew]
        # The most that may be asked for, where less does not help.
        if words:
            ways += [[way[-1] + reworded[-1]] for way in (ways[2], *anew) if way]
        if all(anew):
            ways.append([anew[0][-1] + anew[1][-1]])
        enough = [
            [(one, changed) for one in way if self._enough(changed := person.after(one.changes))]
            for way in ways
        ]
        assessed = iter(self.assess_many([changed for way in enough for _, changed in way]))
        now = goal.short(finding.assessment)
        for way in enough:
            best = first_to_reach([(one, goal.short(next(assessed))) for one, _ in way], now)
            if best is not None:
                yield best

    def _enough(self, person: Person) -> bool:
        return all(person.communities.get(name, 0) >= LEAST_LEFT for name in self._both)

    def _telling(self, person: Person) -> TellingPair:
        """Say what the person's two profiles have in common, each view as strong as it is in the attack."""
        attack = self._attack
        parts = self.assess(person, explain=True, examples=False).evidence
        strength = {
            view: max(part.contribution, 0.0) for view, part in zip(attack.model.views, parts, strict=True)
        }
        rarity = {
            name: rarity_of((attack.sources.rows[name], attack.targets.rows[name]), 1 << CELL_BITS[name])
            for name in TEXT_FAMILIES
        }
        return TellingPair.of(person, self._both, rarity, strength)

    def _question(self, person: Person) -> dict[str, Any]:
        return {
            "what": "determined",
            "person": person.digest(*self._both),
            "exact": self.crowd.exact,
            **self.options.parameters(),
        }

    def _certainty(self, people: Sequence[Person]) -> Certainty:
        source, target = self._both
        as_it_is = self.before.state_in(target)
        again = [
            (
                _habits(person, source),
                None if person.state_in(target) == as_it_is else _habits(person, target),
            )
            for person in people
        ]
        return self._attack.certainty_of(self.before.user, again, self._hubs())

    def _measured(self, people: Sequence[Person]) -> list[dict[str, Any]]:
        from incrowd.measures.linkability.assess import view_evidence

        attack, everybody = self._attack, self._pair["sure"]
        others = np.delete(everybody, np.flatnonzero(attack.people == self.before.user))
        sizes = np.array([attack.candidates, attack.in_both, attack.practice, len(others)])
        found = self._certainty(people)
        told = []
        for sure, ends, scores in zip(found.sure.tolist(), found.ends, found.scores, strict=True):
            parts = view_evidence(attack.model, scores)
            told.append(
                {
                    "sure": np.array([sure, *ends]),
                    "before": np.array((others > sure).sum()),
                    "sizes": sizes,
                    "views": np.array([part.what for part in parts]),
                    "adds": np.array([part.contribution for part in parts]),
                }
            )
        return told

    def _assessment(self, found: Any, explain: bool) -> Assessment:
        targets, pairs, practice, ranked = (int(x) for x in found["sizes"])
        sure, low, high = (float(x) for x in found["sure"])
        parts = zip(found["views"].tolist(), found["adds"].tolist(), strict=True)
        return certainty_assessment(
            self.options,
            sure,
            interval=(low, high) if low < high else None,
            targets=targets,
            rank=SampledRank.of(int(found["before"]), ranked, pairs - 1),
            pairs=pairs,
            practice=practice,
            data_hash=self.crowd.data_hash,
            evidence=tuple(Evidence(what=what, contribution=adds) for what, adds in parts) if explain else (),
        )


@dataclass(frozen=True, eq=False)
class TellingPair:
    """What a person's profiles in two communities have in common, and which posts and words show it."""

    numbers: tuple[NDArray[np.int64], NDArray[np.int64]]
    weights: tuple[NDArray[np.float64], NDArray[np.float64]]
    """How much each post of either community gives away."""
    habits: tuple[Habit, ...]
    """The written habits in common, the strongest first."""

    @classmethod
    def of(
        cls,
        person: Person,
        communities: tuple[str, str],
        rarity: Mapping[str, NDArray[np.float64]],
        strength: Mapping[str, float],
    ) -> TellingPair:
        """Compare the two; `strength` says how much each view counts."""
        posts = [person.posts.filter(person.rows_in(name)) for name in communities]
        counted = [post_habits(one["text"]) for one in posts]
        here, there = counted
        ways = [Telling.of(here, there, rarity), Telling.of(there, here, rarity)]
        weights = []
        for way, mine, theirs in zip(ways, posts, posts[::-1], strict=True):
            weight = way.posts(strength)
            weight += strength.get("weeks", 0.0) * same_weeks(mine["time"], theirs["time"])
            weight += strength.get("hours", 0.0) * same_hours(mine["time"], theirs["time"])
            weights.append(weight)
        texts = [text for one in posts for text in one["text"]]
        numbers = tuple(one["number"].to_numpy() for one in posts)
        habits = ways[0].named(texts, strength)
        return cls((numbers[0], numbers[1]), (weights[0], weights[1]), tuple(habits))

    def order(self, place: int) -> NDArray[np.int64]:
        """Return the numbers of the first or second community's posts, those first that give most away."""
        order = np.argsort(-self.weights[place], kind="stable")
        return np.asarray(self.numbers[place][order], np.int64)

    def words(self, person: Person) -> list[str]:
        """Return the words in common that could be taken out, the strongest first."""
        known = set(person.words.vocabulary.to_list())
        return [word for one in self.habits if (word := one.word) in known]


def _habits(person: Person, community: str) -> Habits:
    """Count the person's own habits in a community from these posts."""
    mine = person.posts.filter(person.rows_in(community)).with_columns(user=pl.lit(person.user))
    return count_habits(mine.select("user", "community", "time", "text"))

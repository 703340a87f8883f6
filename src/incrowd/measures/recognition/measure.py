"""Recognised by how you write: how few of your posts, read elsewhere, it takes to find you in a community."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from incrowd.measures.protocol import (
    AdvisorOptions,
    Findings,
    Measure,
    Person,
    PreparedCrowd,
    Ready,
    ThemeName,
    largest_communities,
)
from incrowd.measures.recognition.spec import ADVERSARIES, RecognitionOptions

if TYPE_CHECKING:
    from incrowd.crowd import Crowd
    from incrowd.measures.recognition.assess import CommunityRecognition, MemberRecognition
    from incrowd.measures.recognition.history import OwnHistory, Rivals
    from incrowd.result import Assessment
    from incrowd.statistics import Logistic

JUDGED, DRAWS = 150, 4
"""Enough to learn from for one person's answer; `incrowd recognition` takes more time and tries more."""


class Recognition(Measure):
    """How soon a person is recognised in each community they write in."""

    name = "recognition"
    about = "how few posts it takes to recognise you"
    question = "How few of your posts, read elsewhere, does it take to recognise you in a community?"
    theme = ThemeName.SINGLED_OUT
    reads = "posts"
    adversaries = ADVERSARIES

    def prepare(self, crowd: PreparedCrowd, options: AdvisorOptions) -> Ready:
        """Look at communities as people are asked about."""
        return ReadyRecognition(self, crowd, options)

    def is_exact_after_changes(self, assessment: Assessment) -> bool:
        """Say no: what was learnt from others stays as it was before the change."""
        return False


@dataclass(frozen=True, eq=False)
class ReadyRecognition(Ready):
    """Communities whose past was looked at, each when the first of its people is asked about."""

    measure: Recognition
    crowd: PreparedCrowd
    options: AdvisorOptions
    _known: dict[Hashable, MemberRecognition] = field(default_factory=dict, repr=False)
    _taught: dict[tuple[str, str], tuple[Rivals, Mapping[int, Logistic], int]] = field(
        default_factory=dict, repr=False
    )

    def assess(self, person: Person, *, explain: bool = True, community: str | None = None) -> Findings:
        """Say nothing yet: a whole community's past has to be read first."""
        return Findings()

    def assess_thorough(self, person: Person, *, explain: bool = True) -> Findings:
        """Say, for each community, how likely the plausible adversary finds the person, and how few posts it takes."""
        from incrowd.measures.recognition.assess import recognition_assessment

        if not self.measure.asked(self.options):
            return Findings()
        names, missing = largest_communities(self.measure, person, self.options)
        if not self.options.thorough:
            why = "holding everybody's later posts against earlier ones takes long and was left out"
            return Findings((), (self.measure.not_assessed(why, "incrowd assess --thorough"),))
        found = []
        for name in names:
            one = recognition_assessment(self._ask(person, name), self._chosen(name), self.crowd.data_hash)
            if one.defined:
                found.append(one)
            else:
                missing.append(self.measure.not_assessed(one.reason.partition(": ")[2], "nothing to do"))
        return Findings(tuple(found), tuple(missing))

    def _chosen(self, name: str) -> RecognitionOptions:
        o = self.options
        return RecognitionOptions(community=name, draws=DRAWS, judged=JUDGED, seed=o.seed, memory=o.memory)

    def _ask(self, person: Person, name: str) -> MemberRecognition:
        key = person.user, name, person.state_in(name)
        if key not in self._known:
            self._known[key] = self._tried(person, name) if person.changes else self._kept(person, name)
        return self._known[key]

    def _kept(self, person: Person, name: str) -> MemberRecognition:
        """Return the answer for a person as they are, found out once."""
        from incrowd.measures.recognition.assess import MemberRecognition

        made: list[MemberRecognition] = []

        def find() -> dict[str, NDArray[Any]]:
            made.append(self._tried(person, name))
            return made[0].arrays()

        question = {"what": "recognition", "user": person.user, **self._chosen(name).parameters()}
        arrays = self.crowd.answer(question, find)
        return made[0] if made else MemberRecognition.from_arrays(name, arrays)

    def _tried(self, person: Person, name: str) -> MemberRecognition:
        from incrowd.measures.recognition.assess import predicted

        rivals, models, members = self._rivals(person, name)
        return predicted(self._own(person, name), rivals, models, self._chosen(name), members)

    def _own(self, person: Person, name: str) -> OwnHistory:
        from incrowd.measures.recognition.assess import own_history

        mine = person.posts.filter(person.rows_in(name)).sort("time", "text", nulls_last=True)
        return own_history(mine["text"], mine["time"])

    def _rivals(self, person: Person, name: str) -> tuple[Rivals, Mapping[int, Logistic], int]:
        """Return everybody else in a community, what its past taught, and how many people it has."""
        from incrowd.measures.recognition.assess import community_histories, taught
        from incrowd.measures.recognition.history import Rivals

        key = person.user, name
        if key not in self._taught:
            o = self._chosen(name)
            histories, _, users, members = community_histories(self.crowd.crowd(), o, keep=person.user)
            models = taught(self.crowd, histories, o)
            others = histories.without(users.index(person.user))
            rivals = Rivals(others, draws=o.draws, seed=o.seed, memory=o.memory // 4)
            self._taught[key] = rivals, models, members
        return self._taught[key]


def measure(crowd: Crowd, options: RecognitionOptions) -> CommunityRecognition:
    """Try out how soon the members of a community are recognised."""
    from incrowd.measures.recognition.assess import community_recognition

    return community_recognition(crowd, options)


def assess(crowd: Crowd, user: str, options: RecognitionOptions) -> Assessment:
    """Say how soon one member (by name) is recognised by somebody who has read three of their posts."""
    from incrowd.measures.recognition.assess import (
        community_recognition,
        member_recognition,
        recognition_assessment,
    )

    person = crowd.user(user)
    result = community_recognition(crowd, options, keep=person)
    return recognition_assessment(member_recognition(result, person), options, crowd.data_hash)

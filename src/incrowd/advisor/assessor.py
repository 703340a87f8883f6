"""Asks every measure that applies about one person, as they are and as they would be."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.errors import InputError, OnlyACard
from incrowd.measures.prepared import YOU
from incrowd.measures.protocol import (
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
    Progress,
    Proposal,
    Ready,
    Targets,
    ThemeName,
    measure_named,
    registered,
)

if TYPE_CHECKING:
    from incrowd.cards.card import Card
    from incrowd.crowd import Crowd
    from incrowd.crowd.sources import Paths


@dataclass(frozen=True, eq=False)
class Assessor:
    """One person, and all measures that can say something about them, ready."""

    person: Person
    """As they are in the store."""
    ready: tuple[tuple[Measure, Ready], ...]
    missing: tuple[NotAssessed, ...]
    _known: dict[Hashable, Findings] = field(default_factory=dict, repr=False)
    _changed: dict[Changes, Person] = field(default_factory=dict, repr=False)

    def assess(
        self,
        person: Person,
        *,
        explain: bool = True,
        thorough: bool = True,
        progress: Progress | None = None,
    ) -> tuple[tuple[Finding, ...], tuple[NotAssessed, ...]]:
        """Return what all measures say about the person, and what they cannot say.

        `thorough`: also what takes seconds for every change.
        """
        rounds = [(one, ready, slow) for slow in (False, True)[: 1 + thorough] for one, ready in self.ready]
        asked = []
        for done, (one, ready, slow) in enumerate(rounds):
            if progress is not None:
                progress(done, len(rounds) + 1, f"looking at {one.about}")
            asked.append((one, self._ask(one, ready, person, explain, slow)))
        findings = tuple(one.finding(about) for one, found in asked for about in found.assessments)
        # What was tried comes before what there is nothing of: it says more about why a question stays open.
        silent = (*(about for _, found in asked for about in found.not_assessed), *self.missing)
        return findings, tuple(sorted(dict.fromkeys(silent), key=_by_question))

    def _ask(self, one: Measure, ready: Ready, person: Person, explain: bool, slow: bool) -> Findings:
        """Ask a measure, unless nothing it reads has changed since it was asked."""
        key = one.name, person.state(one.reads), explain, slow
        if key not in self._known:
            ask = ready.assess_thorough if slow else ready.assess
            self._known[key] = unless_only_a_card(one, partial(ask, person, explain=explain))
        return self._known[key]

    def changed(self, changes: Changes) -> Person:
        """Return the person after some changes."""
        if changes not in self._changed:
            self._changed[changes] = self.person.after(changes)
        return self._changed[changes]

    def quickly_known(self, findings: Sequence[Finding]) -> list[Finding]:
        """Leave out what takes seconds for every change."""
        quick = {one.key for one in self.assess(self.person, explain=False, thorough=False)[0]}
        return [one for one in findings if one.key in quick]

    def assess_again(self, person: Person, finding: Finding) -> Finding | None:
        """Measure one finding of a changed person; None if it can no longer be made."""
        one, ready = self._asked_by(finding)
        key = "again", finding.key, person.state(one.reads)
        if key not in self._known:
            found = ready.assess_again(person, finding)
            self._known[key] = Findings(() if found is None else (found,))
        return next(map(one.finding, self._known[key].assessments), None)

    def recheck(self, person: Person, finding: Finding) -> float:
        """Return the risk of a changed person by an attacker that its measure does not contain; NaN: none."""
        return self._asked_by(finding)[1].recheck(person, finding)

    def gives_away(self, finding: Finding) -> Sequence[GivesAway]:
        """Return which kinds of habits a finding about the person, as they are, rests on."""
        return self._asked_by(finding)[1].gives_away(self.person, finding)

    def _asked_by(self, finding: Finding) -> tuple[Measure, Ready]:
        return next((one, ready) for one, ready in self.ready if one.name == finding.assessment.measure)

    def proposals(self, person: Person, finding: Finding, targets: Targets) -> Iterator[Proposal]:
        """Return what its measure would try against a finding."""
        one, ready = self._asked_by(finding)
        goal = Goal(partial(one.shortfall, targets=targets), targets.loss)
        yield from ready.propose(person, finding, goal)


def unless_only_a_card(one: Measure, ask: Callable[[], Findings]) -> Findings:
    """Return what a measure finds; what takes real people cannot be told from a card."""
    try:
        return ask()
    except OnlyACard as why:
        return Findings((), (one.not_assessed(str(why), CROWD_HELPS),))


CROWD_HELPS = (
    "import other people's data with your own: incrowd ingest FILE --crowd DIR; or take a card that tells it"
)


LOADED = 384 * 2**20
"""What an answer takes before it looks at anybody: the libraries, their compiled loops and Python's own."""
LEAST_FOR_WORK = 512 * 2**20


def memory_for_work(budget: int) -> int:
    """Return what is left of a budget for the data, since the process itself counts, too.

    A small budget is left as it is: below this, databases fail rather than go to the disk.
    """
    return max(budget - LOADED, min(budget, LEAST_FOR_WORK))


def among(
    crowd: Crowd | PreparedCrowd | Paths,
    user: str | None,
    card: Card | str | Path | None,
    options: AdvisorOptions,
) -> tuple[PreparedCrowd, str, AdvisorOptions]:
    """Return the people to be compared with, the name to be told, and the options as these people allow them."""
    from incrowd.crowd import Crowd

    options = replace(options, memory=memory_for_work(options.memory))

    if isinstance(crowd, PreparedCrowd):
        return crowd, user or YOU, replace(options, text=crowd.text)
    if not isinstance(crowd, Crowd):
        files = [crowd] if isinstance(crowd, str | os.PathLike) else list(crowd)
        crowd = Crowd(files[0]) if len(files) == 1 and Path(files[0]).is_dir() else files
    if not isinstance(crowd, Crowd):
        # Not at the top: whoever asks in a crowd need not wait for what makes people up.
        from incrowd.measures.card_crowd import crowd_of_export

        made_up = crowd_of_export(crowd, user, card, memory=options.memory, seed=options.seed)
        return made_up, user or YOU, replace(options, text=made_up.text)
    if user is None:
        raise InputError("expected the name of the person in this crowd (--user), got none")
    if card is not None:
        raise InputError("a card (--card) stands in for a crowd, and here is one; leave it out")
    return PreparedCrowd.of(crowd, options.text, options.memory, exact=options.exact), user, options


YOUR_FILES = "rows of your files"


def prepare(crowd: Crowd | PreparedCrowd, user: str, options: AdvisorOptions) -> Assessor:
    """Find out what is known of a person (by id) and make every measure ready that applies."""
    if not isinstance(crowd, PreparedCrowd):
        crowd = PreparedCrowd.of(crowd, options.text, options.memory, exact=options.exact)
    person = Person(user, crowd)
    ready: list[tuple[Measure, Ready]] = []
    missing: list[NotAssessed] = []
    for one in registered().values():
        if not one.asked(options):
            remedy = "incrowd assess without --adversary asks all"
            missing.append(one.not_assessed("none of its adversaries was asked for", remedy))
        elif nothing := one.nothing_known(person):
            missing.append(nothing)
        else:
            ready.append((one, one.prepare(person.crowd, options)))
    if why := person.crowd.unread:
        remedy = "repair the file; what an import sets aside is listed by incrowd info DIR --quarantine FILE"
        missing.append(NotAssessed(measure=YOUR_FILES, why=why, remedy=remedy))
    return Assessor(person, tuple(ready), tuple(missing))


def _by_question(one: NotAssessed) -> int:
    """Order what could not be told as the questions of the label are."""
    if one.measure == YOUR_FILES:
        return len(ThemeName)
    return list(ThemeName).index(measure_named(one.measure.split(" ")[0]).theme)

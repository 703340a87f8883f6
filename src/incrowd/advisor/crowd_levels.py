"""Everybody's verdict, or that of a random sample: how many people stand at each level, by the rule for one person."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.advisor.assessor import unless_only_a_card
from incrowd.advisor.combine import label, verdict, worst
from incrowd.measures.crowd_rates import CrowdOptions
from incrowd.measures.level_rates import LevelRates
from incrowd.measures.protocol import (
    AdvisorOptions,
    Finding,
    Level,
    Person,
    PreparedCrowd,
    Progress,
    ThemeName,
    registered,
)
from incrowd.result import Threat

ANY = "any"
THREATS = {
    Threat.SINGLING_OUT: "they can be told from everybody else",
    Threat.LINKABILITY: "what they wrote in two places can be put together",
    Threat.INFERENCE: "something sensitive, or something they hide, can be guessed",
}


@dataclass(frozen=True, kw_only=True)
class CrowdLevels:
    """How many people stand at each level."""

    people: int
    """Assessed one by one."""
    sampled: bool
    """True: they stand for a larger crowd."""
    overall: LevelRates
    """By the verdict: the worst question counts."""
    questions: tuple[LevelRates, ...]
    """One for each question of the label."""
    threats: tuple[LevelRates, ...]
    """The same people by the three risks of data-protection authorities."""


def crowd_levels(
    crowd: PreparedCrowd, options: CrowdOptions, progress: Progress | None = None
) -> CrowdLevels:
    """Assess everybody, or a fixed random sample of a large crowd, and count levels."""
    everybody = crowd.crowd().user_ids()
    chosen = np.random.default_rng(options.seed).permutation(len(everybody))[: options.sampled]
    users = [everybody[place] for place in chosen]
    found = []
    for done, findings in enumerate(_findings(crowd, users, options)):
        found.append(findings)
        if progress is not None:
            progress(done + 1, len(users), "assessing people")
    return _counted(found, options, len(everybody))


def _findings(crowd: PreparedCrowd, users: Sequence[str], options: CrowdOptions) -> Iterator[list[Finding]]:
    """Ask every measure about each of some people, as an assessment of one person does."""
    chosen = AdvisorOptions(
        radius=options.radius,
        min_posts=options.min_posts,
        space=options.space,
        text=options.text,
        memory=options.memory,
        seed=options.seed,
        advice=False,
    )
    ready = [(one, one.prepare(crowd, chosen)) for one in registered().values()]
    for user in users:
        person = Person(user, crowd)
        asked = [(one, ask) for one, ask in ready if not one.nothing_known(person)]
        yield [
            one.finding(about)
            for one, ask in asked
            for part in (ask.assess, ask.assess_thorough)
            for about in unless_only_a_card(one, lambda: part(person, explain=False)).assessments  # noqa: B023
        ]


def _counted(found: Sequence[Sequence[Finding]], options: CrowdOptions, everybody: int) -> CrowdLevels:
    sampled = len(found) < everybody
    # So many of a sample stand for the smallest number of the crowd that is told.
    smallest = math.ceil(options.smallest * len(found) / everybody) if sampled else options.smallest

    def rates(name: str, question: str, levels: Sequence[Level]) -> LevelRates:
        return LevelRates.of(name, question, levels, smallest=smallest, sampled=sampled)

    labels = [label(findings, ()) for findings in found]
    verdicts = [verdict(themes).level for themes in labels]
    return CrowdLevels(
        people=len(found),
        sampled=sampled,
        overall=rates(ANY, "any of these", verdicts),
        questions=tuple(
            rates(str(name), name.of_people, [themes[place].level for themes in labels])
            for place, name in enumerate(ThemeName)
        ),
        threats=tuple(
            rates(str(threat), question, [_level(findings, threat) for findings in found])
            for threat, question in THREATS.items()
        ),
    )


def _level(findings: Sequence[Finding], threat: Threat) -> Level:
    """Return where somebody stands by the findings that decide and speak of a threat."""
    return worst(one.level for one in findings if one.decides and threat in one.assessment.threats)

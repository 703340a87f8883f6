"""For data officers: how the risk is spread over a whole crowd. Nobody is named, quoted or pointed at."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.advisor.assessor import unless_only_a_card
from incrowd.advisor.combine import label, verdict, worst
from incrowd.drawing import Chart, Series, picture
from incrowd.measures.crowd_rates import (
    CommunityRisk,
    CrowdOptions,
    CrowdRates,
    LevelRates,
    People,
    Spread,
    TopicRisk,
)
from incrowd.measures.protocol import (
    AdvisorOptions,
    Finding,
    Level,
    Person,
    PreparedCrowd,
    Progress,
    ThemeName,
    given_or,
    registered,
)
from incrowd.result import Result, Threat, say_count

if TYPE_CHECKING:
    from incrowd.crowd import Crowd


@dataclass(frozen=True, kw_only=True, repr=False)
class CrowdReport(Result):
    """Everything about a crowd, in the order in which to read it."""

    people: int
    levels: CrowdLevels
    """How many people stand at each level, by the rule for one person."""
    wanted: int
    smallest: int
    spreads: tuple[Spread, ...]
    communities: tuple[CommunityRisk, ...]
    """The worst first."""
    unnamed_communities: int
    """Communities too small to be named."""
    topics: tuple[TopicRisk, ...]
    exposed: People | None
    """People among the first for at least one topic; None if there are no posts."""
    not_measured: tuple[str, ...]
    assumptions: Mapping[str, Any]
    fingerprint: Mapping[str, Any]

    def of_threat(self, threat: Threat) -> tuple[Spread, ...]:
        """Return the spreads that speak of a threat."""
        return tuple(spread for spread in self.spreads if spread.threat == threat)

    def threats(self) -> dict[str, dict[str, Any]]:
        """Return the three risks of data-protection authorities: people at risk by the findings that speak of each.

        Beside that stands what version 0.1 said of each, by the papers' numbers of everybody: `finding` says which.
        """
        return {
            one.name: self._by_the_papers(Threat(one.name)) | one.to_dict() for one in self.levels.threats
        }

    def _by_the_papers(self, threat: Threat) -> dict[str, Any]:
        """Return how many people there are for whom a paper's quantity is on the wrong side, by the worst of them."""
        people, finding = self.exposed, "among the most exposed for a sensitive topic"
        if threat is not Threat.INFERENCE:
            spreads = self.of_threat(threat)
            worst = max(spreads, key=lambda one: one.under(self.wanted).most, default=None)
            people = None if worst is None else worst.under(self.wanted)
            finding = "" if worst is None else f"fewer than {self.wanted} people to hide among: {worst.name}"
        if people is None:
            return {"people": None, "share": None, "of": None, "fewer_than": None, "finding": "not measured"}
        return {**people.to_dict(), "finding": finding}

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        one = self.levels.overall
        if not one.known:
            whom = say_count(self.people, "person", "people")
            return f"Cannot tell how well {whom} can hide: {'; '.join(self.not_measured) or 'too little is here'}."
        if self.levels.sampled:
            about = "" if one.at_risk.hidden else "About "
            first = f"{about}{one.say(one.at_risk)} of people are at risk"
            first = f"{first[:1].upper()}{first[1:]}"
        else:
            first = (
                f"{one.at_risk.sentence_start()} people {'is' if one.at_risk.count == 1 else 'are'} at risk"
            )
        return f"{first}: somebody who knows a little of them would be right about them more often than not."

    def whom(self) -> str:
        """Say whom the numbers are about."""
        count = say_count(self.levels.people, "person", "people")
        if not self.levels.sampled:
            return f"All {count} were assessed one by one, as incrowd assess does."
        return (
            f"{count} of {self.people:,}, chosen at random, were assessed one by one, as incrowd assess does. They "
            "stand for all; in brackets stands where the share of everybody lies, 19 times out of 20."
        )

    @property
    def risk(self) -> float:
        """The share of people at risk; a hidden share counts as the largest it may be. NaN: cannot tell."""
        return self.levels.overall.risk

    def rounding(self) -> str:
        """Say how exact the numbers are."""
        return (
            f"Numbers of people from 1 to {self.smallest - 1} are shown as “fewer than {self.smallest}”; larger ones "
            f"may be rounded up by less than {self.smallest}, so that nobody is found by subtraction."
        )

    def why(self) -> str:
        """Say where the risk comes from, for somebody who drew a line."""
        if math.isnan(self.risk):
            return "the risk cannot be told; unknown is not safe"
        one = self.levels.overall
        counted = f", counted as {one.at_risk.smallest - 1}," if one.at_risk.hidden else ""
        whom = "people" if not self.levels.sampled else "people chosen at random"
        return f"the risk is {self.risk:.3g}: {one.at_risk.words()}{counted} of {one.at_risk.of:,} {whom} are at risk"

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row for each spread and line: how many people have a smaller set."""
        return [
            {"name": one.name, "threat": str(one.threat), "smaller_than": size, **people.to_dict()}
            for one in self.spreads
            for size, people in one.below
        ]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return the share of people at risk by each question; hidden shares at their largest."""
        return [(one.question, one.risk) for one in self.levels.questions]

    @property
    def figure(self) -> Chart:
        """The share of people below each set size."""
        sizes = [size for size, _ in self.spreads[0].below]
        return Chart(
            kind="bars",
            title="How many people have few others like them",
            sentence=(
                "Each bar is the share of people who have fewer than that many people to hide among, themselves "
                "included. Tall bars on the left are the worst: below 2 means alone. Shares of too few people are left "
                "out."
            ),
            x_label="people to hide among",
            y_label="share of people, in %",
            series=tuple(
                Series.of(one.name, range(len(sizes)), [100 * people.share for _, people in one.below])
                for one in self.spreads
            ),
            categories=tuple(f"below {size}" for size in sizes),
        )

    def chart(self) -> str:
        """Draw the chart of the report page; where nothing was counted, nothing is in it."""
        return picture(self.figure) if self.spreads else super().chart()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return {
            "sentence": self.sentence(),
            "people": self.people,
            "risk": None if math.isnan(self.risk) else self.risk,
            "wanted": self.wanted,
            "smallest_count_told": self.smallest,
            "levels": {
                "assessed": self.levels.people,
                "sampled": self.levels.sampled,
                "overall": self.levels.overall.to_dict(),
                "questions": {one.name: one.to_dict() for one in self.levels.questions},
            },
            "threats": self.threats(),
            "spreads": [_spread(one) for one in self.spreads],
            "communities": [_community(one) for one in self.communities],
            "unnamed_communities": self.unnamed_communities,
            "topics": [
                {
                    "topic": one.topic,
                    "shown": one.shown.to_dict(),
                    "highest_tenth_from": None if math.isnan(one.highest_tenth) else one.highest_tenth,
                }
                for one in self.topics
            ],
            "exposed": None if self.exposed is None else self.exposed.to_dict(),
            "not_measured": list(self.not_measured),
            "assumptions": dict(self.assumptions),
            "fingerprint": dict(self.fingerprint),
        }


def _spread(one: Spread) -> dict[str, Any]:
    return {
        "name": one.name,
        "threat": str(one.threat),
        "meaning": one.meaning,
        "adversary": one.adversary,
        "standing": one.standing,
        "who": one.who,
        "people": one.people,
        "below": {str(size): people.to_dict() for size, people in one.below},
        "quantiles": {f"{share:g}": size for share, size in one.quantiles},
    }


def _community(one: CommunityRisk) -> dict[str, Any]:
    return {
        "community": one.community,
        "members": one.members,
        "alone": one.alone.to_dict(),
        "small": one.small.to_dict(),
        "median": one.median,
    }


ANY = "any"
THREATS = {
    Threat.SINGLING_OUT: "they can be told from everybody else",
    Threat.LINKABILITY: "what they wrote here and elsewhere can be put together",
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


def _crowd_levels(
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


def crowd_report(
    crowd: Crowd,
    *,
    options: CrowdOptions | None = None,
    space: Any = None,
    progress: Progress | None = None,
) -> CrowdReport:
    """Assess everybody, or a random sample of a large crowd, and tell totals only.

    How many people stand at which level follows from the rule for one person; the papers' numbers of everybody stand
    beside that. `space`: how an adversary recognises topics; None: by words.
    """
    chosen = given_or(options, CrowdOptions)
    chosen = chosen if space is None else replace(chosen, space=space)
    prepared = PreparedCrowd.of(crowd, chosen.text, chosen.memory)
    told = _rates(prepared, chosen, progress)
    spreads = [one for rates in told for one in rates.spreads]
    few = [one for one in spreads if one.people < chosen.smallest]
    missing = [line for rates in told for line in rates.not_measured]
    missing += [f"{one.name}: fewer than {chosen.smallest} people, too few to tell anything" for one in few]
    return CrowdReport(
        people=crowd.info().users,
        levels=_crowd_levels(prepared, chosen, progress),
        wanted=chosen.wanted,
        smallest=chosen.smallest,
        spreads=tuple(one for one in spreads if one not in few),
        communities=tuple(one for rates in told for one in rates.communities),
        unnamed_communities=sum(rates.unnamed_communities for rates in told),
        topics=tuple(one for rates in told for one in rates.topics),
        exposed=next((rates.exposed for rates in told if rates.exposed is not None), None),
        not_measured=tuple(missing),
        assumptions=chosen.parameters(),
        fingerprint=_fingerprint(crowd),
    )


def _rates(crowd: PreparedCrowd, options: CrowdOptions, progress: Progress | None) -> list[CrowdRates]:
    """Ask every measure about everybody."""
    crowd.count_together(crowd.population.communities)
    measures = list(registered().values())
    found: list[CrowdRates | None] = []
    if not crowd.population.communities:
        silent = [one.name for one in measures if one.reads == "posts"]
        measures = [one for one in measures if one.reads != "posts"]
        found.append(CrowdRates(not_measured=(f"{', '.join(silent)}: this crowd has no posts",)))
    for done, one in enumerate(measures):
        if progress is not None:
            progress(done, len(measures), f"looking at {one.about}")
        found.append(one.everybody(crowd, options))
    return [rates for rates in found if rates is not None]


def _fingerprint(crowd: Crowd) -> dict[str, Any]:
    """Return what the report was made from and on: no host name, nobody's name."""
    from incrowd import __version__

    info = crowd.info().to_dict()
    wanted = (
        "users",
        "posts",
        "communities",
        "identities",
        "items",
        "item_rows",
        "attribute_rows",
        "imports",
    )
    return {
        "data_hash": crowd.data_hash,
        "data": {name: info[name] for name in wanted if name in info},
        "names": crowd.names,
        "incrowd": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }

"""What an adversary makes of one person's two profiles, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from incrowd.measures.linkability.spec import ADVERSARIES, LinkabilityOptions
from incrowd.measures.sampling import SampledRank
from incrowd.result import (
    Advice,
    Assessment,
    Assumptions,
    Direction,
    Evidence,
    Standing,
    Threat,
    say_amount,
    say_count,
    say_percent,
)

VIEW_NAMES = {
    "words": "words as you write them",
    "vocabulary": "the words you use",
    "phrases": "the phrases you use",
    "style": "punctuation, capitals and short words",
    "hours": "the hours at which you post",
    "weeks": "the weeks in which you were active",
}

SAME_TIMES = {VIEW_NAMES["hours"]: "the same hours", VIEW_NAMES["weeks"]: "the same weeks"}


def same_times(evidence: Sequence[Evidence]) -> dict[str, float]:
    """Return what being there at the same times counts for, as shares of all that speaks for a link."""
    whole = math.fsum(max(part.contribution, 0.0) for part in evidence)
    when = {
        SAME_TIMES[part.what]: max(part.contribution, 0.0) / whole
        for part in evidence
        if whole and part.what in SAME_TIMES
    }
    return dict(sorted(when.items(), key=lambda one: -one[1]))


def pair_assessment(
    options: LinkabilityOptions,
    crowd_size: int,
    *,
    targets: int,
    rank: int | None,
    pairs: int | None,
    distance: float,
    data_hash: str,
    evidence: tuple[Evidence, ...] = (),
    advice: tuple[Advice, ...] = (),
    facts: Mapping[str, Any] | None = None,
) -> Assessment:
    """Put one person's matching set of `crowd_size` people, their own profile included, into words."""
    return Assessment(
        measure="linkability",
        subject=_subject(options),
        value=float(crowd_size),
        unit="people",
        direction=Direction.HIGHER_IS_SAFER,
        meaning=_meaning(options, crowd_size, targets),
        standing=Standing.REPRODUCTION,
        assumptions=_assumptions(data_hash, options, distance=distance, **(facts or {})),
        baseline=float(targets),
        crowd_rank=rank,
        crowd_size=pairs,
        threats=(Threat.LINKABILITY,),
        evidence=evidence,
        explained=1 - distance**2 if evidence else None,
        advice=advice,
    )


def unknown_pair(options: LinkabilityOptions, others: int, reason: str, data_hash: str) -> Assessment:
    """Say why two profiles cannot be compared, among `others` who could be mistaken for the second."""
    return Assessment(
        measure="linkability",
        subject=_subject(options),
        value=math.nan,
        unit="people",
        direction=Direction.HIGHER_IS_SAFER,
        meaning="",
        standing=Standing.REPRODUCTION,
        assumptions=_assumptions(data_hash, options),
        baseline=float(others),
        threats=(Threat.LINKABILITY,),
        reason=reason,
    )


def certainty_assessment(
    options: LinkabilityOptions,
    sure: float,
    *,
    targets: int,
    rank: SampledRank,
    pairs: int,
    practice: int,
    data_hash: str,
    interval: tuple[float, float] | None = None,
    evidence: tuple[Evidence, ...] = (),
) -> Assessment:
    """Put how sure the determined adversary is of one true pair into words."""
    return Assessment(
        measure="linkability",
        subject=_subject(options),
        value=sure,
        unit="probability",
        direction=Direction.LOWER_IS_SAFER,
        meaning=(
            f"Somebody determined, starting from your profile in {options.source}, would be {_sure(sure)} "
            f"that your profile in {options.target} is the same person"
            + (
                f"; a guess gives {say_percent(1 / targets)}."
                if sure > 1 / targets
                else ", no more than a guess."
            )
        ),
        standing=Standing.HEURISTIC,
        assumptions=_assumptions(data_hash, options, practice=practice, **rank.to_dict()),
        interval=interval,
        baseline=1 / targets,
        crowd_rank=rank.rank,
        crowd_size=pairs,
        threats=(Threat.LINKABILITY,),
        evidence=evidence,
        explained=sum(part.contribution for part in evidence) if evidence else None,
    )


def card_assessment(
    options: LinkabilityOptions,
    value: float,
    *,
    interval: tuple[float, float],
    community: str,
    people: int,
    facts: Mapping[str, Any],
    data_hash: str,
    evidence: tuple[Evidence, ...] = (),
    explained: float | None = None,
) -> Assessment:
    """Put into words how probably the determined adversary is right, as a card of `community` lets one estimate."""
    return Assessment(
        measure="linkability",
        subject=_subject(options),
        value=value,
        unit="probability",
        direction=Direction.LOWER_IS_SAFER,
        meaning=(
            f"Somebody determined, starting from your posts in {options.source}, would pick your profile in "
            f"{options.target} out of {people:,} people of {community} {say_percent(value)} of the time; a guess gives "
            f"{say_percent(1 / people)}."
        ),
        standing=Standing.ESTIMATED,
        assumptions=_assumptions(data_hash, options, community=community, **facts),
        interval=interval,
        baseline=1 / people,
        crowd_size=people,
        threats=(Threat.LINKABILITY,),
        evidence=evidence,
        explained=explained if evidence else None,
    )


def _sure(probability: float) -> str:
    """Say a certainty; nobody is ever entirely sure."""
    return f"{say_amount(probability, 'probability')} sure"


def _subject(options: LinkabilityOptions) -> str:
    return f"you in {options.source} and {options.target}"


def _meaning(options: LinkabilityOptions, crowd_size: int, targets: int) -> str:
    if crowd_size == 1:
        found = (
            f"your profile in {options.target} is the nearest of {targets:,}: there is no crowd to hide in"
        )
    else:
        found = (
            f"{crowd_size - 1:,} other{'s' if crowd_size > 2 else ''} of {targets:,} in {options.target} "
            "would have to be considered before, or together with, you"
        )
    return f"For somebody who compares words and starts from your profile in {options.source}, {found}."


def say_bound(pair: Assessment) -> str:
    """Say theorem 2 of paper 000 where it was worked out for the two profiles; empty: it was not."""
    facts = pair.assumptions.parameters
    if "linkage_bound" not in facts:
        return ""
    bound = facts["linkage_bound"]
    chance, most = (say_percent(one) for one in (facts["chosen_with_probability"], bound["bound"]))
    return (
        "Whoever does not take the nearest, but draws by lot with chances by distance, takes it for yours with a "
        f"chance of {chance}; it cannot be more than {most}, "
        f"because {say_count(bound['crowd'], 'profile')} there, yours among them, lie within {bound['radius']:.2f} of "
        "it."
    )


def _assumptions(data_hash: str, options: LinkabilityOptions, **more: Any) -> Assumptions:
    return Assumptions(
        adversary=ADVERSARIES[options.adversary],
        parameters=options.parameters() | more,
        seed=options.seed,
        data_hash=data_hash,
    )

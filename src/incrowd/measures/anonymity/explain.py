"""One member's crowd in words."""

from __future__ import annotations

import math

from incrowd.distances.choice import linkage_bound
from incrowd.measures.anonymity.spec import ADVERSARY, AnonymityOptions
from incrowd.measures.sampling import SampledRank
from incrowd.result import Assessment, Assumptions, Direction, Evidence, Standing, Threat, say_count


def crowd_assessment(
    options: AnonymityOptions,
    size: int,
    rank: SampledRank | None,
    members: int,
    data_hash: str,
    evidence: tuple[Evidence, ...] = (),
    explained: float | None = None,
) -> Assessment:
    """Put one member's crowd of `size` people (rank 1 = smallest, None = not known) among `members` into words."""
    return Assessment(
        measure="anonymity",
        subject=f"you in {options.community}",
        value=float(size),
        unit="people",
        direction=Direction.HIGHER_IS_SAFER,
        meaning=_meaning(options, size, rank, members),
        standing=Standing.PROVED,
        assumptions=Assumptions(
            adversary=ADVERSARY,
            parameters=options.parameters() | ({} if rank is None else rank.to_dict()),
            data_hash=data_hash,
        ),
        baseline=float(members),
        crowd_rank=None if rank is None else rank.rank,
        crowd_size=members,
        threats=(Threat.SINGLING_OUT, Threat.LINKABILITY),
        evidence=evidence,
        explained=explained,
    )


def unknown_crowd(options: AnonymityOptions, others: int, data_hash: str) -> Assessment:
    """Say that somebody without a word in a community has no crowd there."""
    return Assessment(
        measure="anonymity",
        subject=f"you in {options.community}",
        value=math.nan,
        unit="people",
        direction=Direction.HIGHER_IS_SAFER,
        meaning="",
        standing=Standing.PROVED,
        assumptions=Assumptions(adversary=ADVERSARY, parameters=options.parameters(), data_hash=data_hash),
        crowd_size=others,
        threats=(Threat.SINGLING_OUT, Threat.LINKABILITY),
        reason=f"empty_profile: no words of yours are in {options.community}",
    )


def _meaning(o: AnonymityOptions, size: int, rank: SampledRank | None, members: int) -> str:
    alike = "None" if size == 1 else f"{size - 1:,}"
    verb = "writes" if size <= 2 else "write"
    bound = float(linkage_bound(o.radius, o.radius, size, o.rule))
    return (
        f"{alike} of the {say_count(members - 1, 'other person', 'other people')} in {o.community} {verb} much as "
        f"you do{_smaller(rank)}. Somebody who goes by words alone, and takes another profile "
        f"of yours for one of them, is right at most {bound:.0%} of the time."
    )


def _smaller(rank: SampledRank | None) -> str:
    if rank is None:
        return ""
    who = "nobody there has" if rank.rank == 1 else say_count(rank.rank - 1, "member has", "members have")
    if rank.interval is not None:
        low, high = rank.interval
        who = f"between {low - 1:,} and {high - 1:,} members have"
    return f"; {who} a smaller crowd of people alike"

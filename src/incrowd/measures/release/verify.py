"""Checking a released set again, on another path than the one that found it.

Nothing of the search is used: users are plain sets here, the local counts are recounted one by one, and a
part whose q was counted is counted once more by a solver that works differently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from incrowd.measures.release.definition import Component, count_with
from incrowd.measures.release.patterns import Holders, PatternCounts, absorb, parts
from incrowd.measures.release.spec import Budget, Certificate, Deadline, PartCertificate

OTHER_SOLVER = "sweep"
"""The search counts by products and sums."""
Lists = Mapping[frozenset[Hashable], int]
"""What people list of a part -> how many of them list exactly that."""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Whether a certificate holds; every problem names a part by number, never a value or a person."""

    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True if nothing was found wrong."""
        return not self.problems


def verify(
    holders: Holders,
    certificate: Certificate,
    *,
    budget: Budget = Budget(seconds=60.0),  # noqa: B008  a frozen value
) -> Verification:
    """Check that the released values reach the threshold, as a whole and without any single one.

    >>> from incrowd.measures.release.suppress import suppress
    >>> answer = {"rare": [1], "common": list(range(20))}
    >>> verify(answer, suppress(answer, threshold=10).certificate).holds
    True
    """
    problems = _structure(holders, certificate)
    if problems:
        return Verification(problems=tuple(problems))
    listed = _what_each_user_lists(holders, certificate)
    if any(len({_part_of(certificate)[value] for value in values}) > 1 for values in listed):
        return Verification(problems=("a user lists values of two parts that are said to be unconnected",))
    deadline = Deadline(budget.seconds)
    for number, part in enumerate(certificate.parts, start=1):
        members = frozenset(part.values)
        own = {values: users for values, users in listed.items() if values & members}
        check = _check_counted if part.exact else _check_local
        problem = check(part, own, certificate.threshold, deadline, budget.memory)
        if problem:
            problems.append(f"part {number}: {problem}")
    return Verification(problems=tuple(problems))


def _structure(holders: Holders, certificate: Certificate) -> list[str]:
    named = [value for part in certificate.parts for value in part.values]
    problems = []
    if len(named) != len(set(named)):
        problems.append("a value is in two parts, or twice in one")
    if not set(named) <= set(holders):
        problems.append("a released value is not in the answer")
    if any(
        part.exact and len(part.values) > 1 and len(part.without) != len(part.values)
        for part in certificate.parts
    ):
        problems.append("a counted part does not say what happens without each of its values")
    if any(part.at_least < certificate.threshold for part in certificate.parts):
        problems.append("a part itself claims less than the threshold")
    return problems


def _part_of(certificate: Certificate) -> dict[Hashable, int]:
    return {value: number for number, part in enumerate(certificate.parts) for value in part.values}


def _what_each_user_lists(holders: Holders, certificate: Certificate) -> Lists:
    released = certificate.released
    of_user: dict[Hashable, set[Hashable]] = {}
    for value, users in holders.items():
        if value in released:
            for user in users:
                of_user.setdefault(user, set()).add(value)
    return Counter(frozenset(values) for values in of_user.values())


def _check_local(
    part: PartCertificate, listed: Lists, threshold: int, deadline: Deadline, memory: int
) -> str:
    alone = {value: listed.get(frozenset([value]), 0) for value in part.values}
    weak = {value for value, users in alone.items() if users < threshold}
    for pattern in listed:
        for value in pattern & weak:
            within = sum(users for other, users in listed.items() if value in other and other <= pattern)
            if within < part.at_least:
                return "somebody has fewer local companions than claimed"
    if any(users < part.at_least for value, users in alone.items() if value not in weak and users):
        return "a value has fewer users of its own than claimed"
    return ""


def _check_counted(
    part: PartCertificate, listed: Lists, threshold: int, deadline: Deadline, memory: int
) -> str:
    claims = [(frozenset[Hashable](), part.at_least)]
    claims += [(frozenset([value]), q) for value, q in zip(part.values, part.without, strict=False)]
    for left_out, claimed in claims:
        kept = [value for value in part.values if value not in left_out]
        q = _recount(kept, listed, deadline, memory)
        if q is None:
            return "could not be counted again within the budget"
        if q != claimed or q < threshold:
            return "counted again, q is not what was claimed or not enough"
    return ""


def _recount(kept: list[Hashable], listed: Lists, deadline: Deadline, memory: int) -> Fraction | None:
    bit = {value: 1 << place for place, value in enumerate(kept)}
    counts: Counter[int] = Counter()
    for values, users in listed.items():
        counts[sum(bit.get(value, 0) for value in values)] += users
    found = []
    for part in parts(absorb(PatternCounts.from_counts(counts, kept))):
        count = count_with(OTHER_SOLVER, Component(part), deadline, memory)
        if count is None:
            return None
        found.append(Fraction(count.groups, max(count.each)))
    return min(found)

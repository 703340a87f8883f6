"""An answer in, an assessment out: how sure it could make somebody, in words, and what to withhold."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from incrowd.measures.release.patterns import HolderIndex, Holders, PatternCounts
from incrowd.measures.release.solve import measure_q
from incrowd.measures.release.spec import ADVERSARY, Budget, Method, QMeasurement, SuppressOptions
from incrowd.measures.release.suppress import suppress
from incrowd.result import Advice, Assessment, Assumptions, Direction, Evidence, Standing, Threat


def assess(
    holders: Holders | PatternCounts | HolderIndex,
    *,
    threshold: int = 10,
    budget: Budget = Budget(),  # noqa: B008  a frozen value
    subject: str = "this answer",
) -> Assessment:
    """Say how sure an answer could make somebody, and what to withhold if that is too sure.

    The value is q. It is NaN, with the proved interval beside it, where the budget was too small to count.
    """
    measured = measure_q(holders, budget=budget)
    return Assessment(
        measure="release",
        subject=subject,
        value=math.nan if measured.q is None else float(measured.q),
        unit="q_measured",
        direction=Direction.HIGHER_IS_SAFER,
        meaning=_sentence(measured, subject),
        standing=Standing.HEURISTIC,
        assumptions=Assumptions(
            adversary=ADVERSARY,
            parameters={"threshold": threshold, "method": str(measured.method), "lcv": measured.lcv},
        ),
        interval=_floats(measured.interval),
        baseline=float(measured.users) if measured.users else math.nan,
        crowd_size=measured.users,
        threats=(Threat.INFERENCE, Threat.SINGLING_OUT),
        evidence=_evidence(measured),
        advice=_advice(holders, measured, threshold, budget),
        reason=_reason(measured),
    )


def _sentence(measured: QMeasurement, subject: str) -> str:
    if measured.q is None:
        return f"How sure {subject} could make somebody is not known."
    groups = "" if measured.n is None else f" {_rounded(measured.n)} groups of people could account for it;"
    return (
        f"With {subject} somebody could tie one person to it with a probability of "
        f"{float(1 / measured.q):.1%}:{groups} one person is in every {float(measured.q):.3g}th of them."
    )


def _rounded(number: int) -> str:
    return f"{number:,}" if number < 10**9 else f"about 10^{math.floor(math.log10(number))}"


def _reason(measured: QMeasurement) -> str:
    if measured.method is Method.NOTHING:
        return "nothing_released: there is no value, so there is nothing to measure"
    if measured.interval:
        low, high = measured.interval
        return f"over_budget: q is proved to lie between {float(low):g} and {float(high):g}"
    return ""


def _evidence(measured: QMeasurement) -> tuple[Evidence, ...]:
    """The parts of the answer that limit q most; q of the answer is the smallest."""
    weakest = sorted(measured.parts, key=lambda part: part.at_least)[:5]
    return tuple(
        Evidence(
            what=f"a connected part of {part.values} value{'s' * (part.values != 1)}",
            contribution=float(part.at_least),
            detail=f"{part.users} people; " + (f"counted by {part.solver}" if part.solver else "bound only"),
        )
        for part in weakest
    )


def _advice(
    holders: Holders | PatternCounts | HolderIndex, measured: QMeasurement, threshold: int, budget: Budget
) -> tuple[Advice, ...]:
    low = measured.at_least
    if low is None or low >= threshold:
        return ()
    thinner = suppress(holders, threshold, options=SuppressOptions(budget=budget))
    if thinner.q is None:
        return (
            Advice(
                what="Release nothing of this answer.", before=float(low), after=math.inf, loss="all of it"
            ),
        )
    return (
        Advice(
            what=f"Withhold {len(thinner.withheld)} of {measured.values} values.",
            before=float(low),
            after=float(thinner.q),
            loss=f"{len(thinner.withheld)} values",
        ),
    )


def _floats(interval: tuple[Fraction, Fraction] | None) -> tuple[float, float] | None:
    return None if interval is None else (float(interval[0]), float(interval[1]))


@dataclass(frozen=True, kw_only=True)
class Releasable:
    """How much of an attribute may leave at one threshold."""

    threshold: int
    values: int
    released: int
    mentions: int
    """Pairs of a user and a value they list."""
    released_mentions: int
    in_time: bool
    """False if the budget ended before anything was proved; nothing is released then."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def releasable(
    holders: Holders | HolderIndex,
    thresholds: Iterable[int] = (10, 27),
    *,
    options: SuppressOptions = SuppressOptions(),  # noqa: B008  a frozen value
) -> list[Releasable]:
    """Count how many values an attribute can release at each threshold, e.g. before and after canonicalising."""
    index = holders if isinstance(holders, HolderIndex) else HolderIndex.from_holders(holders)
    sizes = dict(zip(index.values, index.supports.tolist(), strict=True))
    found = []
    for threshold in thresholds:
        thinned = suppress(index, threshold, options=options)
        released = thinned.released
        found.append(
            Releasable(
                threshold=threshold,
                values=len(index.values),
                released=len(released),
                mentions=sum(sizes.values()),
                released_mentions=sum(sizes[value] for value in released),
                in_time=not thinned.reason.startswith("over_budget"),
            )
        )
    return found

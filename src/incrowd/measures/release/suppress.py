"""Releasing as much as is safe: which values to withhold so that q reaches a threshold.

A recipient may ignore a value, and q can fall when one is left out, so the released set has to pass the
threshold itself and without any single value. The outcome depends on the data, the options and the key
alone; over its budget nothing is released.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from time import monotonic
from typing import Any

import numpy as np

from incrowd.errors import BudgetExceeded, InputError
from incrowd.measures.release.certificate import Certificate
from incrowd.measures.release.clock import Deadline
from incrowd.measures.release.measurement import Method
from incrowd.measures.release.patterns import HolderIndex, Holders, PatternCounts
from incrowd.measures.release.search import Search, keyed_order
from incrowd.measures.release.spec import Budget, SuppressOptions

MASKED_VALUES = 1024
"""Up to this many values users are grouped by pattern first; beyond, each user is a row."""
GROUPING_SECONDS = 20e-9
"""What grouping users by pattern takes a cell of the table, users by values; a rough figure."""
READING_SECONDS = 15e-9
"""What going once over a table of patterns takes a cell."""
COUNTING_SHARE = 0.03
"""Part of the time budget that exact counts may be expected to take while larger parts are thinned."""


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """What may leave, what is withheld, and why the former is safe."""

    released: tuple[Hashable, ...]
    """In an order that the key decides, so that it says nothing about the data."""
    withheld: tuple[Hashable, ...]
    threshold: int
    q: Fraction | None
    """q of the released set where the method is exact; a proved lower bound where it is certified."""
    method: Method
    certificate: Certificate
    reason: str
    """Why nothing is released; empty otherwise."""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return {
            "released": list(self.released),
            "withheld": list(self.withheld),
            "threshold": self.threshold,
            "q": None if self.q is None else float(self.q),
            "method": str(self.method),
            "reason": self.reason,
            "seconds": round(self.seconds, 6),
        }


def suppress(
    holders: Holders | PatternCounts | HolderIndex,
    threshold: int = 10,
    *,
    options: SuppressOptions = SuppressOptions(),  # noqa: B008  a frozen value
) -> Suppression:
    """Choose the values that may leave so that nobody is tied to them with a probability above 1/threshold.

    Parameters
    ----------
    holders
        Value -> the users who list it; or these users already grouped (`PatternCounts`) or indexed.
    threshold
        The least q of the released set, and of the released set without any single value.
    options
        Key, class size, budget and effort.

    Examples
    --------
    >>> result = suppress({"rare": [1], "common": list(range(20))}, threshold=10)
    >>> result.released, result.withheld, str(result.method)
    (('common',), ('rare',), 'certified')
    """
    started = monotonic()
    if threshold < 1:
        raise InputError(f"threshold: expected 1 or more, got {threshold}")
    source = (
        holders if isinstance(holders, PatternCounts | HolderIndex) else HolderIndex.from_holders(holders)
    )
    try:
        certificate, reason = _certified(source, threshold, options), ""
    except BudgetExceeded:
        certificate, reason = None, "over_budget: no proof within the time and memory given"
    if certificate is None or not certificate.parts:
        reason = reason or "nothing_fits: no value reaches the threshold"
        certificate = Certificate(threshold=threshold, parts=())
    released = certificate.released
    in_order = [value for value in source.values if value in released]
    in_order = [in_order[place] for place in np.argsort(keyed_order(in_order, options.key))]
    return Suppression(
        released=tuple(in_order),
        withheld=tuple(value for value in source.values if value not in released),
        threshold=threshold,
        q=min((part.at_least for part in certificate.parts), default=None),
        method=_method(certificate),
        certificate=certificate,
        reason=reason if not certificate.parts else "",
        seconds=monotonic() - started,
    )


def _method(certificate: Certificate) -> Method:
    if not certificate.parts:
        return Method.NOTHING
    return Method.EXACT if all(part.exact for part in certificate.parts) else Method.CERTIFIED


def _too_large_to_group(cells: int, budget: Budget) -> bool:
    """Decide by the expected cost whether each user stays a row of their own; the clock has no say."""
    return cells > budget.memory or cells * GROUPING_SECONDS > budget.seconds / 4


def _certified(
    source: PatternCounts | HolderIndex, threshold: int, options: SuppressOptions
) -> Certificate | None:
    deadline = Deadline.within(options.budget.seconds)
    if options.class_size is not None and options.class_size < threshold:
        return None
    # q is at most the number of holders of any released value.
    eligible = np.flatnonzero(source.supports >= threshold)
    allowance = [options.budget.seconds * COUNTING_SHARE]
    search = Search(threshold=threshold, options=options, deadline=deadline, allowance=allowance)
    rows = source.users if isinstance(source, HolderIndex) else len(source.weights)
    if isinstance(source, PatternCounts) and rows * len(eligible) * READING_SECONDS > options.budget.seconds:
        raise BudgetExceeded("suppression: the table of patterns is too large for the time given")
    if len(eligible) > MASKED_VALUES or _too_large_to_group(rows * len(eligible), options.budget):
        return search.over_users(source, eligible)
    if isinstance(source, HolderIndex):
        patterns = source.patterns([source.values[i] for i in eligible])
    else:
        patterns = source.select(eligible)
    return search.over_patterns(patterns)

"""Quantiles of a crowd's risks, so that a person can find their rank alone, without anybody's posts.

A provider puts people into groups by their risk and publishes, for each topic, the mean of every group. Each
group has at least `smallest` people, so that no number is one person's.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.exposure.definition import Floats
from incrowd.measures.exposure.scoring import Scored
from incrowd.measures.exposure.spec import method_name

FORMAT = "incrowd exposure quantiles 1"
MOST_GROUPS = 100
DIGITS = 4
ROUNDING = 0.5 * 10.0**-DIGITS


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """What a provider publishes: people in groups by ascending risk, and each group's mean risk."""

    method: str
    people: int
    smallest: int
    edges: tuple[int, ...]
    """How many people are in the groups up to each one; from 0 to everybody."""
    risks: Mapping[str, tuple[float, ...]]
    """For each topic the mean risk of every group, lowest first."""
    parameters: Mapping[str, Any]

    def rank(self, topic: str, risk: float) -> tuple[int, int]:
        """Return the best and the worst rank that somebody with this risk can have; 1 = most exposed.

        Whoever is in a higher group than one whose mean is above the risk, is above it too; whoever is in a
        lower group than one whose mean is below it, is not.
        """
        if topic not in self.risks:
            raise InputError(f"topic '{topic}' was not published; there are: {', '.join(self.risks)}")
        values = self.risks[topic]
        first_above = bisect_right(values, risk + ROUNDING)
        last_below = bisect_left(values, risk - ROUNDING) - 1
        best = 1 + self.people - self.edges[first_above + 1] if first_above < len(values) else 1
        worst = self.people - self.edges[last_below] if last_below >= 0 else self.people
        return best, worst

    def check(self, scored: Scored) -> None:
        """Raise unless a person's risks were computed as the published ones were."""
        for name, value in _parameters(scored).items():
            if name != "community" and self.parameters.get(name) != value:
                raise InputError(
                    f"the quantiles were published with {name} = {self.parameters.get(name)!r}, your risk was "
                    f"computed with {value!r}; use the provider's topics, model and options"
                )

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        return {
            "format": FORMAT,
            "method": self.method,
            "people": self.people,
            "smallest": self.smallest,
            "edges": list(self.edges),
            "risks": {topic: list(values) for topic, values in self.risks.items()},
            "parameters": dict(self.parameters),
        }


def quantiles(scored: Scored, smallest: int = 10) -> Quantiles:
    """Return what may be published about a scored crowd."""
    people = len(scored.users)
    if smallest < 2:
        raise InputError(f"smallest must be at least 2, got {smallest}")
    groups = min(MOST_GROUPS, people // smallest)
    if groups < 2:
        raise InputError(
            f"{people} people are too few to publish numbers about no fewer than {smallest}; "
            "use a larger community or lower --smallest"
        )
    edges = np.round(np.linspace(0, people, groups + 1)).astype(np.int64)
    names = scored.space.topics.names
    risks = scored.risks()
    return Quantiles(
        method=method_name(scored.space.name, scored.options.dimension),
        people=people,
        smallest=smallest,
        edges=tuple(edges.tolist()),
        risks={name: _group_means(risks[:, at], edges) for at, name in enumerate(names)},
        parameters=_parameters(scored),
    )


def _parameters(scored: Scored) -> dict[str, Any]:
    return scored.options.parameters() | {"topics": scored.space.topics.hash, "space": scored.space.hash}


def _group_means(values: Floats, edges: NDArray[np.int64]) -> tuple[float, ...]:
    # Undefined counts as no risk to be seen; the lowest defined value keeps the order.
    known = values[~np.isnan(values)]
    lowest = known.min() if known.size else 0.0
    ordered = np.sort(np.where(np.isnan(values), lowest, values))
    return tuple(float(np.round(ordered[a:b].mean(), DIGITS)) for a, b in pairwise(edges))


def load_quantiles(path: Path | str) -> Quantiles:
    """Read published quantiles."""
    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
        if plain.pop("format") != FORMAT:
            raise ValueError("another format")
        plain["edges"] = tuple(plain["edges"])
        plain["risks"] = {topic: tuple(values) for topic, values in plain["risks"].items()}
        return Quantiles(**plain)
    except FileNotFoundError:
        raise UnreadableSource(
            f"{path}: no such file; a provider writes it with: incrowd exposure publish"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnreadableSource(f"{path}: expected quantiles written by incrowd exposure publish") from None

"""What linking two communities would give an adversary: rates, never who matches whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from incrowd.measures.linkability.definition import (
    DEFAULT_KS,
    Interval,
    clustered_mean,
    guess_at,
    hits_at,
)
from incrowd.result import Result


@dataclass(frozen=True, kw_only=True)
class HitRate:
    """Precision at k, beside somebody who guesses and beside the same attack on shuffled pairs."""

    k: int
    hit: Interval
    guess: float
    shuffled: float

    def to_dict(self) -> dict[str, float]:
        """Return plain numbers."""
        return {
            "rate": self.hit.mean,
            "low": self.hit.low,
            "high": self.hit.high,
            "guess": self.guess,
            "shuffled": self.shuffled,
        }


def hit_rates(
    nearer: Any, ties: Any, people: Any, targets: int, shuffled_nearer: Any, shuffled_ties: Any
) -> tuple[HitRate, ...]:
    """Return precision at 1, 5, 10 and 20 with intervals clustered by person, and both baselines."""
    rates = []
    for k in DEFAULT_KS:
        control = hits_at(shuffled_nearer, k, shuffled_ties)
        rates.append(
            HitRate(
                k=k,
                hit=clustered_mean(hits_at(nearer, k, ties), people),
                guess=guess_at(k, targets),
                shuffled=float(control.mean()) if control.size else float("nan"),
            )
        )
    return tuple(rates)


@dataclass(frozen=True, kw_only=True, repr=False)
class LinkRates(Result):
    """The result of one attack on one pair of communities."""

    source: str
    target: str
    adversary: str
    sources: int
    targets: int
    pairs: int
    hit_rates: tuple[HitRate, ...]
    parameters: dict[str, Any]
    data_hash: str
    figures: dict[str, Any] = field(default_factory=dict)
    """Further numbers under the names of the JSON output."""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers other programs rely on; undefined ones as None."""
        plain = {
            "source": self.source,
            "target": self.target,
            "adversary": self.adversary,
            "sources": self.sources,
            "targets": self.targets,
            "pairs": self.pairs,
            "precision_at": {str(rate.k): rate.hit.mean for rate in self.hit_rates},
            "precision_at_detail": {str(rate.k): rate.to_dict() for rate in self.hit_rates},
            **self.figures,
            "parameters": self.parameters,
            "data_hash": self.data_hash,
            "notes": list(self.notes),
        }
        return {key: _plain(value) for key, value in plain.items()}

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row for each k: how often the true match is among the first k."""
        return [{"k": rate.k, **rate.to_dict()} for rate in self.hit_rates]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return how often the true match is among the first k."""
        return [(f"among the first {rate.k:,}", rate.hit.mean) for rate in self.hit_rates]

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        if not self.pairs:
            return f"Cannot tell: nobody with enough posts is in both {self.source} and {self.target}."
        first, ten = self.hit_rates[0], self.hit_rates[2]
        return (
            f"Of {self.pairs:,} people in both {self.source} and {self.target}, the adversary puts the "
            f"true match first for {first.hit.mean:.0%} and among the first ten for {ten.hit.mean:.0%}; "
            f"guessing would reach {first.guess:.1%} and {ten.guess:.1%}."
        )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value

"""What a measurement of q says, and how far it got."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from incrowd.errors import InputError
from incrowd.measures.release.budget import Budget


class Method(StrEnum):
    """How far a measurement got."""

    EXACT = "exact"
    """q is known."""
    CERTIFIED = "certified"
    """q was proved to reach the threshold asked for, and not computed further."""
    INTERVAL = "interval"
    """The budget ran out; q was proved to lie in the interval."""
    NOTHING = "nothing"
    """Nothing is released: there is no group, and q is undefined."""


@dataclass(frozen=True, kw_only=True)
class PartMeasurement:
    """One connected part of the answer, after absorption."""

    values: int
    users: int
    at_least: Fraction
    at_most: Fraction
    solver: str
    """What counted it; empty if only bounds are known."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return {
            "values": self.values,
            "users": self.users,
            "at_least": float(self.at_least),
            "at_most": float(self.at_most),
            "solver": self.solver,
        }


@dataclass(frozen=True, kw_only=True)
class QMeasurement:
    """How sure an answer could make somebody: q, or what is proved about it.

    q ranges from 1 (some person is certain to be tied to the answer) up to the number of holders of the
    least common value; higher is safer. It is a heuristic posterior, not a guarantee (see NOTES.md).
    """

    method: Method
    n: int | None
    """How many minimal groups of people account for the answer; None where not counted."""
    m: int | None
    """How many of them hold the most frequent person."""
    q: Fraction | None
    interval: tuple[Fraction, Fraction] | None
    """Proved bounds on q; None if q is exact or undefined."""
    lcv: int | None
    """Holders of the least common value: q is at most this."""
    p_min: int | None
    """The fewest users who list one released value and no other: q is at least this."""
    users: int
    values: int
    parts: tuple[PartMeasurement, ...]
    posteriors: Mapping[Any, Fraction] | None = None
    """How likely each user is tied to the answer: by user, or by the values they list if users are unknown."""
    seconds: float
    budget: Budget

    @property
    def at_least(self) -> Fraction | None:
        """The proved lower end: q itself where it is exact."""
        if self.q is not None:
            return self.q
        return self.interval[0] if self.interval else None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types; integers that may be long become decimal strings."""
        return {
            "n": None if self.n is None else decimal(self.n),
            "m": None if self.m is None else decimal(self.m),
            "q": None if self.q is None else float(self.q),
            "method": str(self.method),
            "interval": None if self.interval is None else [float(end) for end in self.interval],
            "lcv": self.lcv,
            "p_min": self.p_min,
            "users": self.users,
            "values": self.values,
            "parts": [part.to_dict() for part in self.parts],
            "seconds": round(self.seconds, 6),
            "budget": {"seconds": self.budget.seconds, "memory": self.budget.memory},
        }


def decimal(number: int) -> str:
    """Write a non-negative integer of any length; Python itself refuses more than 4,300 digits."""
    if number < 10**4000:
        return str(number)
    half = int(number.bit_length() * 0.30103) // 2
    high, low = divmod(number, 10**half)
    return decimal(high) + decimal(low).zfill(half)


@dataclass(frozen=True, kw_only=True)
class PartCertificate:
    """Why one part of the released values reaches the threshold; no user lists values of two parts.

    Either q was counted (`exact`): `at_least` is q of the part, and `without` holds q after withholding each
    single value in turn. Or every local count is at least `at_least`: then q is at least that, also after
    withholding any further values.
    """

    values: tuple[Hashable, ...]
    at_least: Fraction
    exact: bool
    without: tuple[Fraction, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The released values in parts, each with its reason."""

    threshold: int
    parts: tuple[PartCertificate, ...]

    @property
    def released(self) -> frozenset[Hashable]:
        """Every value of every part."""
        return frozenset(value for part in self.parts for value in part.values)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types; fractions are written "5/3"."""
        return {
            "threshold": self.threshold,
            "parts": [
                {
                    "values": list(part.values),
                    "at_least": str(part.at_least),
                    "exact": part.exact,
                    "without": [str(q) for q in part.without],
                }
                for part in self.parts
            ],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Certificate:
        """Read what `to_dict` wrote."""
        try:
            return cls(
                threshold=int(plain["threshold"]),
                parts=tuple(
                    PartCertificate(
                        values=tuple(part["values"]),
                        at_least=Fraction(part["at_least"]),
                        exact=bool(part["exact"]),
                        without=tuple(Fraction(q) for q in part["without"]),
                    )
                    for part in plain["parts"]
                ),
            )
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise InputError(
                "certificate: expected an object with threshold and parts as `release suppress --certificate` "
                "writes it, got something else"
            ) from None

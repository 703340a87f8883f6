"""What comes with a released set so that somebody else can check it without trusting the search."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from incrowd.errors import InputError


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

"""The choices of the belief measure, as a value, and who the adversaries are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from incrowd.errors import InputError

Engine = Literal["crowd", "network"]
Knows = Literal["stranger", "insider"]
ADVERSARIES: dict[str, str] = {
    "stranger": "someone who has read what you published and knows a crowd of people like you, but not you",
    "insider": "someone who holds the whole table, your row in it without your name, and reads what you published",
}


@dataclass(frozen=True, kw_only=True)
class BeliefOptions:
    """Where the adversary's belief comes from, and how far to search for what gives a secret away."""

    engine: Engine = "crowd"
    """crowd: people like you; network: a Bayesian network (tree) learnt from the crowd."""
    adversary: Knows = "stranger"
    smoothing: float | None = None
    """s: how probably a person differs from somebody like them, attribute by attribute; None: chosen so that
    hidden values of left-out people are guessed best."""
    largest: int = 4
    """Critical sets are searched exhaustively up to this many attributes."""
    text: bool = False
    """Also use what the person's words suggest."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("engine", self.engine, get_args(Engine)),
            ("adversary", self.adversary, get_args(Knows)),
        ):
            if value not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}; got '{value}'")
        if self.smoothing is not None and not 0 <= self.smoothing <= 1:
            raise InputError(f"smoothing must be from 0 to 1, got {self.smoothing}")
        if self.largest < 1:
            raise InputError(f"the largest critical set must be at least 1, got {self.largest}")
        if self.engine == "network" and self.adversary == "insider":
            raise InputError("a network holds no rows: an insider needs --engine crowd")

    def parameters(self) -> dict[str, Any]:
        """Return what decides the result, for the record."""
        return asdict(self)

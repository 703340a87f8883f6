"""The choices of the recognition measure, as a value."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from incrowd.errors import InputError

KNOWN = (1, 3, 10, 30)
"""How many of a person's posts the adversary has read elsewhere."""
FEATURES = (
    *(f"log rank by {n}" for n in KNOWN),
    *(f"likeness by {n}" for n in KNOWN),
    *("posts", "words", "typical length", "days"),
)
"""What predicts: how the parts of a history fared against each other, and plain facts of it."""
RIDGE = 30.0
"""How strongly the weights of a community are drawn to what others taught: as much as some thirty people tell."""
_SPELT = dict(zip(KNOWN, ("one post", "three posts", "ten posts", "thirty posts"), strict=True))
ADVERSARIES = {
    f"read-{known}": f"someone who has read {words} of yours elsewhere and everything in the community"
    for known, words in _SPELT.items()
}
DEFAULT_KNOWN = 3
"""The plausible adversary of a verdict: has read three posts."""
EVERYBODY = 10**12
"""As a number of candidates: no sample, however large the community."""


@dataclass(frozen=True)
class How:
    """How posts are drawn, and how much memory comparing them may take."""

    draws: int
    seed: int
    memory: int


@dataclass(frozen=True, kw_only=True)
class RecognitionOptions:
    """In which community, and how much work the answer is worth."""

    community: str
    draws: int = 6
    """So many times n posts are drawn from a person's history."""
    judged: int = 1_500
    """At most so many people are tried out for each n; more are sampled."""
    candidates: int = 5_000
    """Everybody is a candidate in a community of up to so many; of a larger one, a random sample is, and what the
    rest would add is extrapolated."""
    min_posts: int = 4
    """With fewer posts in the community there is too little to tell."""
    seed: int = 0
    memory: int = 2**30

    def __post_init__(self) -> None:
        for name, least in (("draws", 1), ("judged", 20), ("candidates", 100), ("min_posts", 2)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}")

    @property
    def how(self) -> How:
        """How posts are drawn and compared."""
        return How(self.draws, self.seed, self.memory // 4)

    def parameters(self) -> dict[str, Any]:
        """Return what decides the result, for the record."""
        chosen = {part.name: getattr(self, part.name) for part in fields(self)}
        del chosen["memory"]
        return chosen

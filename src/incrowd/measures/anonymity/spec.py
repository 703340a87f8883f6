"""The choices of the anonymity measure, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from incrowd.distances.choice import RULES, Rule
from incrowd.distances.reference import METRICS
from incrowd.errors import InputError
from incrowd.text.options import TextOptions

Model = Literal["unigram", "indicator", "tfidf"]
Distance = Literal["jensen-shannon", "angular-cosine", "total-variation", "hellinger"]

BY_DISTANCE = float("nan")
"""The mark of a radius that was not said: this very value, no other NaN."""
DEFAULT_SHARE = 0.8

ADVERSARY = "someone who has read the whole community and compares which words people use"
ADVERSARIES = {"reader": ADVERSARY}


@dataclass(frozen=True, kw_only=True)
class AnonymityOptions:
    """In which community, and how like is like."""

    community: str
    radius: float = BY_DISTANCE
    """d: two members this far apart still count as alike; 0 = identical. Not said: 0.8 of what two members
    without a common word are apart, which is 1, or 0.5 for the distance `angular-cosine`."""
    wanted: int = 10
    """k: the crowd a member would like to hide in."""
    min_posts: int = 1
    model: Model = "unigram"
    distance: Distance = "jensen-shannon"
    rule: Rule = "inverse"
    """How an adversary who sees only distances chooses."""
    text: TextOptions = field(default_factory=TextOptions)
    memory: int = 2**30

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("model", self.model, get_args(Model)),
            ("distance", self.distance, get_args(Distance)),
            ("rule", self.rule, RULES),
        ):
            if value not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}; got '{value}'")
        largest = METRICS[self.distance].largest
        if self.radius is BY_DISTANCE:
            object.__setattr__(self, "radius", DEFAULT_SHARE * largest)
        if not 0 <= self.radius <= largest:
            raise InputError(
                f"radius must be between 0 and {largest:g}, the largest {self.distance} distance there is; "
                f"got {self.radius:g}"
            )
        if self.wanted < 1 or self.min_posts < 1:
            raise InputError("the wanted crowd and the minimum of posts must be at least 1")

    def parameters(self) -> dict[str, Any]:
        """Return what decides the result, for the record."""
        chosen = {part.name: getattr(self, part.name) for part in fields(self)}
        chosen["text"] = self.text.hash
        del chosen["memory"]
        return chosen

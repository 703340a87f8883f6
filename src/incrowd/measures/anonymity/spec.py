"""The choices of the anonymity measure, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from incrowd.distances.choice import RULES, Rule
from incrowd.errors import InputError
from incrowd.text.options import TextOptions

Model = Literal["unigram", "indicator", "tfidf"]
Distance = Literal["jensen-shannon", "angular-cosine", "total-variation", "hellinger"]

ADVERSARY = "someone who has read the whole community and compares which words people use"
ADVERSARIES = {"reader": ADVERSARY}


@dataclass(frozen=True, kw_only=True)
class AnonymityOptions:
    """In which community, and how like is like."""

    community: str
    radius: float = 0.8
    """d: two members this far apart still count as alike; 0 = identical, 1 = no word in common."""
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
        if not 0 <= self.radius <= 1:
            raise InputError(f"radius must be between 0 and 1, got {self.radius}")
        if self.wanted < 1 or self.min_posts < 1:
            raise InputError("the wanted crowd and the minimum of posts must be at least 1")

    def parameters(self) -> dict[str, Any]:
        """Return what decides the result, for the record."""
        chosen = {part.name: getattr(self, part.name) for part in fields(self)}
        chosen["text"] = self.text.hash
        del chosen["memory"]
        return chosen

"""The choices of the linkability measure, as values, and the adversaries by name."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from incrowd.distances.choice import RULES, Rule
from incrowd.errors import InputError
from incrowd.text.options import TextOptions

Model = Literal["unigram", "indicator", "tfidf", "topics"]
Distance = Literal["jensen-shannon", "angular-cosine"]
AdversaryName = Literal["unigram", "determined"]

ADVERSARIES: dict[str, str] = {
    "unigram": "someone who has read both communities and compares which words people use",
    "determined": (
        "someone who has read both communities and compares words, phrases, punctuation, capitals and "
        "posting times, having practised on other communities"
    ),
}


@dataclass(frozen=True, kw_only=True)
class LinkabilityOptions:
    """Whom to link to whom, and how the adversary goes about it."""

    source: str
    """The community the adversary starts from."""
    target: str
    """The community in which they look for the same people."""
    min_posts: int = 10
    """Identities with fewer posts are left out: too little to tell."""
    adversary: AdversaryName = "unigram"
    model: Model = "unigram"
    distance: Distance = "jensen-shannon"
    rule: Rule = "inverse"
    """How a distance becomes a probability for one known pair."""
    half_life: float | None = None
    """Days after which a word counts half; None: all posts count alike. For the adversary `unigram` only."""
    text: TextOptions = field(default_factory=TextOptions)
    seed: int = 0
    memory: int = 2**30

    def __post_init__(self) -> None:
        _one_of("model", self.model, get_args(Model))
        _one_of("distance", self.distance, get_args(Distance))
        _one_of("adversary", self.adversary, get_args(AdversaryName))
        _one_of("rule", self.rule, RULES)
        if self.min_posts < 1:
            raise InputError(f"min_posts must be at least 1, got {self.min_posts}")
        if self.half_life is not None and (self.adversary != "unigram" or self.model == "topics"):
            raise InputError("half_life goes with the adversary 'unigram' and a model of word counts")
        if self.source == self.target:
            raise InputError(
                f"source and target are both '{self.source}': linking needs two different communities"
            )

    def parameters(self) -> dict[str, Any]:
        """Return what decides the result, for the record."""
        chosen = {part.name: getattr(self, part.name) for part in fields(self)}
        chosen["text"] = self.text.hash
        del chosen["memory"]
        if self.adversary == "determined":
            del chosen["model"], chosen["distance"], chosen["rule"]
        return chosen


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}; got '{value}'")

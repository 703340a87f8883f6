"""What the advisor can be asked, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from incrowd.errors import InputError
from incrowd.text.options import TextOptions

AT_RISK_ABOVE = 1 / 5
WATCH_ABOVE = 1 / 10
SMALLEST_CROWD = 5
"""In a crowd of fewer people a rank or a guess says nothing."""


def adversaries() -> dict[str, str]:
    """Return every adversary the advisor sweeps over, by name, in plain words."""
    from incrowd.measures.anonymity.spec import ADVERSARY
    from incrowd.measures.belief.spec import ADVERSARIES as BELIEF
    from incrowd.measures.exposure.spec import ADVERSARIES as EXPOSURE
    from incrowd.measures.linkability.spec import ADVERSARIES as LINKS
    from incrowd.measures.microdata.spec import ADVERSARIES as ITEMS

    return {
        **LINKS,
        "reader": ADVERSARY,
        **{one.name: one.words for one in ITEMS.values()},
        "stranger": BELIEF["stranger"],
        "BOW": EXPOSURE["BOW"],
    }


@dataclass(frozen=True, kw_only=True)
class Targets:
    """What the person wants to reach; the plan aims at it."""

    people: float = 10.0
    """Hide among at least so many people, oneself included."""
    gain: float = 0.2
    """Nobody should lose more than this share of their doubt about a hidden attribute."""
    exposed: float = 0.1
    """Do not show a personal interest among this share of the most exposed people for a topic."""

    loss: float = 0.5
    """Give up at most this share of the posts of a community, of the items, or of the attributes."""

    def __post_init__(self) -> None:
        if not 0 < self.loss <= 1:
            raise InputError(f"targets: expected 0 < loss <= 1, got loss={self.loss:g}")
        if not self.people >= 1:
            raise InputError(
                f"targets: expected at least 1 person to hide among (--people), yourself; got {self.people:g}"
            )
        if not 0 < self.gain <= 1 or not 0 <= self.exposed <= 1:
            raise InputError(
                f"targets: expected 0 < gain <= 1 and 0 <= exposed <= 1, got gain={self.gain:g}, "
                f"exposed={self.exposed:g}"
            )


@dataclass(frozen=True, kw_only=True)
class AdvisorOptions:
    """Which adversaries to sweep over, what to reach, how hard to look for advice."""

    adversaries: tuple[str, ...] = ()
    """Only these, by the names of :func:`adversaries`; empty: all that apply."""
    targets: Targets = field(default_factory=Targets)
    radius: float = 0.8
    """Distance within which two writers of a community count as alike."""
    min_posts: int = 10
    """Profiles with fewer posts are not linked: too little to tell."""
    most_communities: int = 4
    """Only the person's largest communities are assessed, so many."""
    topics: tuple[str, ...] = ()
    """Sensitive topics to look at; empty: all shipped ones."""
    thorough: bool = True
    """False: leave out the determined adversary, who takes long the first time."""
    advice: bool = True
    """False: measure only, look for no advice."""
    quote_posts: bool = False
    """Put the text of the person's own posts into the report where advice names them."""
    text: TextOptions = field(default_factory=TextOptions)
    seed: int = 0
    memory: int = 2**30

    def __post_init__(self) -> None:
        if not 0 <= self.radius <= 1:
            raise InputError(f"radius must be between 0 and 1, got {self.radius}")
        if self.min_posts < 1 or self.most_communities < 1:
            raise InputError("min_posts and most_communities must be at least 1")
        if self.adversaries and (unknown := set(self.adversaries) - set(adversaries())):
            raise InputError(
                f"adversary '{min(unknown)}': no such adversary. There are: {', '.join(adversaries())}."
            )

    def asked(self, name: str) -> bool:
        """Say whether an adversary is part of the sweep."""
        return not self.adversaries or name in self.adversaries

    def parameters(self) -> dict[str, Any]:
        """Return what decides the result, for the record."""
        chosen = asdict(self)
        chosen["text"] = self.text.hash
        del chosen["memory"]
        return chosen

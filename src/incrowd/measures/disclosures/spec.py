"""The choices of the disclosures measure, as a value, and who the adversary is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from incrowd.errors import InputError

PROFILER = "profiler"
ADVERSARIES = {
    PROFILER: "someone who reads all your posts and puts together what you say about yourself",
}


@dataclass(frozen=True, kw_only=True)
class DisclosureOptions:
    """How posts are read."""

    language: str = "en"
    """The language of the posts, by its code; posts in others tell nothing here."""
    told: float = 0.8
    """From this certainty on, something counts as told, 0 to 1."""
    quote: bool = False
    """Show the person their own words beside each find."""

    def __post_init__(self) -> None:
        if not 0.5 <= self.told <= 1:
            raise InputError(f"told: expected a certainty from 0.5 to 1, got {self.told}")

    def parameters(self) -> dict[str, Any]:
        """Return what decides the result, for the record."""
        return {name: value for name, value in asdict(self).items() if name != "quote"}

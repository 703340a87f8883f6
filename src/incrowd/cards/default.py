"""The card that comes with incrowd: people who write on Reddit."""

from __future__ import annotations

from functools import cache
from importlib import resources

from incrowd.cards.card import Card

NAME = "reddit.card"
SERVICE = "Reddit"
"""Where its people write."""


@cache
def default_card() -> Card:
    """Return the card inside; how it was made: ``docs/explanation/cards.md``."""
    return Card.from_bytes(default_bytes(), NAME)


def default_bytes() -> bytes:
    """Return the file of the card inside."""
    return resources.files("incrowd.cards").joinpath(NAME).read_bytes()

"""Makes a card of a crowd: statistics of each community, and what every measure adds to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl

from incrowd.cards.card import Card, text_facts
from incrowd.cards.make import EVERYBODY, CardOptions, Progress, describe
from incrowd.cards.members import Members, read_members
from incrowd.cards.noise import Noise
from incrowd.measures.prepared import PreparedCrowd
from incrowd.measures.protocol import registered

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

LEFT_OUT = (
    "names, posts and the order of words",
    "words of fewer people than the noise lets through",
    "who wrote what together with whom, and when, beyond the hours of the day",
)


def make_card(crowd: Crowd, options: CardOptions | None = None, progress: Progress | None = None) -> Card:
    """Make a card of some communities of a crowd, or of everybody as one."""
    from incrowd import __version__

    options = options or CardOptions()
    prepared = PreparedCrowd.of(crowd, options.text, options.memory)
    for name in options.communities:
        prepared.require(name)
    facts: list[dict[str, Any]] = []
    parts: list[dict[str, pl.DataFrame]] = []
    noises: list[Noise] = []
    for name, members in _communities(crowd, options, progress):
        community, accuracy, noise = describe(members, options, name, progress)
        parts.append(community.tables())
        facts.append(
            {"name": name, **community.facts(), "accuracy": None if accuracy is None else asdict(accuracy)}
        )
        noises.append(noise)
    # Measures count everybody in a community: in a private card of several, somebody would count twice.
    told = parts if options.epsilon is None or len(parts) == 1 else []
    for place, tables in enumerate(told):
        community_name = options.communities[place] if options.communities else None
        for measure in registered().values():
            for table, content in (
                measure.card(prepared, community_name, options, noises[place]) or {}
            ).items():
                tables[f"{measure.name}.{table}"] = content
    head = {
        "made_by": f"incrowd {__version__}",
        "communities": facts,
        "k": options.k,
        # Everybody counts in one community only, so several cost what the dearest does: all have the same budget.
        "privacy": noises[-1].facts(),
        "text": text_facts(options.text),
        "left_out": list(LEFT_OUT),
    }
    return Card.made(head, list(parts))


def _communities(
    crowd: Crowd, options: CardOptions, progress: Progress | None
) -> Iterator[tuple[str, Members]]:
    def read(names: list[str] | None) -> Members:
        return read_members(crowd, names, options.text, memory=options.memory, progress=progress)

    if not options.communities:
        yield EVERYBODY, read(None)
    elsewhere = _counted_elsewhere(crowd, options) if options.epsilon is not None else {}
    for name in options.communities:
        yield name, read([name]).without(elsewhere.get(name, ()))


def _counted_elsewhere(crowd: Crowd, options: CardOptions) -> dict[str, set[str]]:
    """Return who does not count in each community, so that everybody counts in one only: where they posted most.

    Then the communities of a private card cost together what one of them costs.
    """
    posts = crowd.posts().filter(pl.col("community").is_in(list(options.communities)))
    counted = posts.group_by("user", "community").len().sort(["len", "community"], descending=[True, False])
    ranked = counted.with_columns(first=pl.col("community").first().over("user")).collect()
    rest = ranked.filter(pl.col("community") != pl.col("first"))
    return {name: set(rest.filter(pl.col("community") == name)["user"]) for name in options.communities}

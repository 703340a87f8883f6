"""Makes a card of a crowd: statistics of each community, and what every measure adds to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from incrowd.cards.card import Card, text_facts
from incrowd.cards.lists import POSTS_PART, list_noise
from incrowd.cards.make import EVERYBODY, SMALLEST, CardOptions, Progress, describe, people_elsewhere
from incrowd.cards.members import Members, read_members
from incrowd.cards.noise import Noise
from incrowd.measures.prepared import PreparedCrowd
from incrowd.measures.protocol import CardSection, Measure, registered

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

LEFT_OUT = (
    "names, posts and the order of words",
    "words of fewer people than the noise lets through",
    "who wrote what together with whom, and when, beyond the hours of the day",
)

LEFT_OUT_OF_LISTS = (
    "items of fewer people than the noise lets through",
    "which items go together, and their ratings and dates",
)


def make_card(crowd: Crowd, options: CardOptions | None = None, progress: Progress | None = None) -> Card:
    """Make a card of some communities of a crowd, or of everybody as one; people's items are a section of it."""
    from incrowd import __version__

    options = options or CardOptions()
    prepared = PreparedCrowd.of(crowd, options.text, options.memory)
    for name in options.communities:
        prepared.require(name)
    of_lists = _lists(crowd, prepared, options, progress)
    if of_lists is not None and _has_posts(crowd):
        options = replace(options, posts_part=POSTS_PART)
    told = _posts(crowd, prepared, options, progress) if of_lists is None or _has_posts(crowd) else []
    noises = [*(noise for *_, noise in told), *([] if of_lists is None else [of_lists.noise])]
    head = {
        "made_by": f"incrowd {__version__}",
        "communities": [facts for facts, *_ in told],
        "measures": {} if of_lists is None else of_lists.facts,
        "k": options.k,
        "privacy": _account(noises, both=bool(told) and of_lists is not None),
        "text": text_facts(options.text),
        "left_out": list(LEFT_OUT if of_lists is None else (*LEFT_OUT, *LEFT_OUT_OF_LISTS)),
    }
    return Card.made(head, [tables for _, tables, _ in told], {} if of_lists is None else of_lists.tables)


def _posts(
    crowd: Crowd, prepared: PreparedCrowd, options: CardOptions, progress: Progress | None
) -> list[tuple[dict[str, Any], dict[str, pl.DataFrame], Noise]]:
    """Return what the head says about each community, its tables, and what made them safe."""
    found = []
    for name, members in _communities(crowd, options, progress):
        elsewhere = people_elsewhere(crowd, name, options) if options.communities else None
        community, accuracy, noise = describe(members, options, name, progress, elsewhere)
        tried = None if accuracy is None else asdict(accuracy)
        found.append(({"name": name, **community.facts(), "accuracy": tried}, community.tables(), noise))
    # Measures count everybody in a community: in a private card of several, somebody would count twice.
    for place, (_, tables, noise) in enumerate(found if options.epsilon is None or len(found) == 1 else []):
        community_name = options.communities[place] if options.communities else None
        for measure in registered().values():
            if measure.reads != "items":
                section = measure.card(prepared, community_name, options, noise)
                tables |= {} if section is None else _named(measure, section)
    return found


@dataclass(frozen=True)
class _OfLists:
    """What measures of items tell about everybody."""

    tables: dict[str, pl.DataFrame]
    facts: dict[str, Any]
    noise: Noise


def _lists(
    crowd: Crowd, prepared: PreparedCrowd, options: CardOptions, progress: Progress | None
) -> _OfLists | None:
    """Ask measures of items; None if too few people have any for a section, and there are posts to tell of."""
    listed = crowd.items()
    if options.leave_out:
        listed = listed.filter(~pl.col("user").is_in(sorted(options.leave_out)))
    people = int(listed.select(pl.col("user").n_unique()).collect().item())
    if people == 0 or (people < SMALLEST and _has_posts(crowd)):
        return None
    told = progress or (lambda done, total, what: None)
    told(0, 1, "counting items")
    noise = list_noise(options.epsilon, options.delta, 1 - POSTS_PART if _has_posts(crowd) else 1.0)
    tables: dict[str, pl.DataFrame] = {}
    facts: dict[str, Any] = {}
    for measure in registered().values():
        section = measure.card(prepared, None, options, noise) if measure.reads == "items" else None
        if section is not None:
            tables |= _named(measure, section)
            facts[measure.name] = dict(section.facts)
    return _OfLists(tables, facts, noise)


def _has_posts(crowd: Crowd) -> bool:
    return bool(crowd.posts().head(1).collect().height)


def _named(measure: Measure, section: CardSection) -> dict[str, pl.DataFrame]:
    return {f"{measure.name}.{table}": content for table, content in section.tables.items()}


def _account(noises: list[Noise], *, both: bool) -> dict[str, Any] | None:
    """Return what is proved of a whole card.

    Everybody counts in one community only, so several cost what the dearest does: all have the same budget. What people
    write and what they list adds up.
    """
    told = [noise.facts() for noise in (noises[-2:] if both else noises[-1:])]
    if told[0] is None or len(told) == 1:
        return told[0]
    posts, lists = (one["accountant"] for one in told if one is not None)
    spent = {**posts["spent"], **{f"lists: {name}": loss for name, loss in lists["spent"].items()}}
    return {**told[0], "accountant": {**posts, "rho": posts["rho"] + lists["rho"], "spent": spent}}


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

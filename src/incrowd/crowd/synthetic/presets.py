"""Ready-made crowds: the demonstration's, and the papers' sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.crowd.synthetic.attributes import SyntheticAttributes
from incrowd.crowd.synthetic.holders import SyntheticHolders
from incrowd.crowd.synthetic.items import SyntheticItems
from incrowd.crowd.synthetic.members import LASTING, PASSING, PROFESSIONAL, Character
from incrowd.crowd.synthetic.posts import SyntheticPosts
from incrowd.crowd.synthetic.table import SyntheticTable, as_crowd, require
from incrowd.errors import InputError

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

COMMUNITIES = ("cycling", "gardening", "films", "cooking")


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Alex writes in two communities, is easy to recognise by style, and keeps coming back to one topic."""

    person: str
    communities: tuple[str, str]
    """Where the person writes."""
    topic: str
    """What the person keeps coming back to, in the first community."""
    posts: SyntheticPosts
    items: SyntheticItems
    attributes: SyntheticAttributes

    def write(self, folder: Path | str) -> list[Path]:
        """Write posts, ratings and attributes as files that `incrowd ingest` takes."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        return [
            self.posts.write(Path(folder) / "posts.ndjson.zst"),
            self.items.write(Path(folder) / "ratings.csv"),
            self.attributes.write(Path(folder) / "attributes.csv"),
        ]

    def crowd(self, path: Path | str | None = None, *, plain_names: bool = True) -> Crowd:
        """Import all three tables into one crowd."""
        return as_crowd([self.posts, self.items, self.attributes], path, plain_names=plain_names)


def demo_person(*, name: str = "alex", users: int = 400, seed: int = 0) -> Demo:
    """Return a crowd of `users` people, the first of whom is the person of that name.

    Examples
    --------
    >>> demo_person(users=50).communities
    ('cycling', 'gardening')
    """
    require(users >= 20, "users", "at least 20", users)
    alex = Character(name=name, posts=(140, 120, 0, 0), linkability=0.9, topic="depression", state=LASTING)
    others = (users - 1) * 3 // 2
    return Demo(
        person=name,
        communities=COMMUNITIES[:2],
        topic=alex.topic,
        posts=SyntheticPosts(
            users=users,
            communities=len(COMMUNITIES),
            identities=others + 2,
            posts=others * 60 + sum(alex.posts),
            cast=(alex,),
            community_names=COMMUNITIES,
            warts=True,
            seed=seed,
        ),
        items=SyntheticItems(
            users=users, items=400, entries=users * 25, fewest=8, cast=((name, 45),), seed=seed
        ),
        attributes=SyntheticAttributes(users=users, cast=((name, {"age": "26-35"}),), seed=seed),
    )


FEBRUARY_2015, MARCH_2006, JANUARY_2000 = 1_422_835_200, 1_141_603_200, 946_857_600


def _forum(seed: int) -> SyntheticPosts:
    """Papers 000 and 003: what their filters left of a month of Reddit."""
    return SyntheticPosts(
        users=37_935,
        communities=1_930,
        identities=58_091,
        posts=15_000_000,
        fewest_posts=100,
        most_posts=1_000,
        subjects=400,
        seed=seed,
    )


def _judged(seed: int) -> SyntheticPosts:
    """Paper 004: as many profiles as people judged there, with every kind of interest."""
    return SyntheticPosts(
        users=1_100,
        communities=1,
        states={LASTING: 0.2, PASSING: 0.15, PROFESSIONAL: 0.15},
        seed=seed,
    )


def _questions(seed: int) -> SyntheticPosts:
    """Paper 004, questions and answers: few posts a user, 15 weeks of 2015."""
    return SyntheticPosts(
        users=200_000,
        communities=1,
        posts=1_300_000,
        fewest_posts=1,
        weeks=15,
        start=FEBRUARY_2015,
        words_per_post=60.0,
        seed=seed,
    )


def _searches(seed: int) -> SyntheticPosts:
    """Paper 004, search queries: many, and of three words; 13 weeks of 2006."""
    return SyntheticPosts(
        users=107_000,
        communities=1,
        posts=13_000_000,
        fewest_posts=20,
        weeks=13,
        start=MARCH_2006,
        words_per_post=3.0,
        seed=seed,
    )


def _health_boards(seed: int) -> SyntheticPosts:
    """Paper 004, health boards: 14 years of long posts. The number of users is ours; the paper gives none."""
    return SyntheticPosts(
        users=60_000,
        communities=40,
        posts=5_000_000,
        weeks=14 * 52,
        start=JANUARY_2000,
        words_per_post=80.0,
        seed=seed,
    )


def _ratings(
    users: int, items: int, entries: int, most: int = 5_000, fewest: int = 8
) -> Callable[[int], SyntheticItems]:
    """Paper 002: profiles of 8 to 5,000 items."""
    return lambda seed: SyntheticItems(
        users=users, items=items, entries=entries, fewest=fewest, most=most, seed=seed
    )


PRESETS: dict[str, Callable[[int], SyntheticTable]] = {
    "paper-000": _forum,
    "paper-001": lambda seed: SyntheticHolders(users=700, values=2_000, spellings=8, seed=seed),
    "paper-001-million": lambda seed: SyntheticHolders(users=1_000_000, values=20_000, seed=seed),
    "paper-002-netflix": _ratings(9_938, 1_763, 426_639),
    "paper-002-music": _ratings(13_265, 13_630, 1_190_496),
    "paper-002-movies": _ratings(7_626, 11_916, 201_579),
    "netflix-prize": _ratings(480_189, 17_770, 100_480_507, most=17_653, fewest=1),
    "paper-003": _forum,
    "paper-004": _judged,
    "paper-004-questions": _questions,
    "paper-004-searches": _searches,
    "paper-004-health": _health_boards,
    "attributes-million": lambda seed: SyntheticAttributes(users=1_000_000, seed=seed),
}
"""Every preset by name."""


def preset(name: str, seed: int = 0) -> SyntheticTable:
    """Return the synthetic crowd of that name.

    Examples
    --------
    >>> preset("netflix-prize").rows
    100480507
    """
    if name not in PRESETS:
        raise InputError(f"preset '{name}': no such preset. There are: {', '.join(PRESETS)}.")
    return PRESETS[name](seed)

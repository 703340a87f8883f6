"""Ready-made crowds: the demonstration's, and the papers' sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.crowd.synthetic.attributes import SyntheticAttributes
from incrowd.crowd.synthetic.items import SyntheticHolders, SyntheticItems
from incrowd.crowd.synthetic.members import LASTING, PASSING, PROFESSIONAL, Character
from incrowd.crowd.synthetic.posts import SyntheticPosts
from incrowd.crowd.synthetic.sentences import Sentences
from incrowd.crowd.synthetic.table import SyntheticTable, as_crowd, require
from incrowd.errors import InputError

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

COMMUNITIES = ("cycling", "gardening", "films", "cooking")


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Alex writes whole sentences in two communities, is easy to recognise, and keeps coming back to one topic."""

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
    sentences = Sentences.ours()
    alex = Character(
        name=name,
        posts=(140, 120, 0, 0),
        linkability=0.9,
        topic="depression",
        state=LASTING,
        sentences=sentences,
    )
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
            real_words=sentences.words(),
            warts=True,
            seed=seed,
        ),
        items=SyntheticItems(
            users=users, items=400, entries=users * 25, fewest=8, cast=((name, 45),), seed=seed
        ),
        attributes=SyntheticAttributes(users=users, cast=((name, {"age": "26-35"}),), seed=seed),
    )


FEBRUARY_2015, MARCH_2006, JANUARY_2000 = 1_422_835_200, 1_141_603_200, 946_857_600


# Papers 000 and 003: what their filters left of a month of Reddit.
_FORUM = partial(
    SyntheticPosts,
    users=37_935,
    communities=1_930,
    identities=58_091,
    posts=15_000_000,
    fewest_posts=100,
    most_posts=1_000,
    subjects=400,
)
# Paper 004: every kind of interest among as many profiles as people judged there.
_FOR_JUDGES = {LASTING: 0.2, PASSING: 0.15, PROFESSIONAL: 0.15}
_RATINGS = partial(SyntheticItems, fewest=8, most=5_000)


PRESETS: dict[str, Callable[..., SyntheticTable]] = {
    "paper-000": _FORUM,
    "paper-001": partial(SyntheticHolders, users=700, values=2_000, spellings=8),
    "paper-001-million": partial(SyntheticHolders, users=1_000_000, values=20_000),
    "paper-002-netflix": partial(_RATINGS, users=9_938, items=1_763, entries=426_639),
    "paper-002-music": partial(_RATINGS, users=13_265, items=13_630, entries=1_190_496),
    "paper-002-movies": partial(_RATINGS, users=7_626, items=11_916, entries=201_579),
    "netflix-prize": partial(
        SyntheticItems, users=480_189, items=17_770, entries=100_480_507, most=17_653, fewest=1
    ),
    "paper-003": _FORUM,
    "paper-004": partial(SyntheticPosts, users=1_100, communities=1, states=_FOR_JUDGES),
    # Few posts a user, 15 weeks of 2015.
    "paper-004-questions": partial(
        SyntheticPosts,
        users=200_000,
        communities=1,
        posts=1_300_000,
        fewest_posts=1,
        weeks=15,
        start=FEBRUARY_2015,
        words_per_post=60.0,
    ),
    # Many queries, of three words; 13 weeks of 2006.
    "paper-004-searches": partial(
        SyntheticPosts,
        users=107_000,
        communities=1,
        posts=13_000_000,
        fewest_posts=20,
        weeks=13,
        start=MARCH_2006,
        words_per_post=3.0,
    ),
    # 14 years of long posts. The number of users is ours; the paper gives none.
    "paper-004-health": partial(
        SyntheticPosts,
        users=60_000,
        communities=40,
        posts=5_000_000,
        weeks=14 * 52,
        start=JANUARY_2000,
        words_per_post=80.0,
    ),
    "attributes-million": partial(SyntheticAttributes, users=1_000_000),
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
    return PRESETS[name](seed=seed)

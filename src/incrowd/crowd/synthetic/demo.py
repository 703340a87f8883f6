"""A crowd with one marked member whose story is known, for the demonstration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.crowd.synthetic.attributes import SyntheticAttributes
from incrowd.crowd.synthetic.items import SyntheticItems
from incrowd.crowd.synthetic.members import Character
from incrowd.crowd.synthetic.posts import SyntheticPosts
from incrowd.crowd.synthetic.style import LASTING
from incrowd.crowd.synthetic.table import require
from incrowd.crowd.synthetic.write import as_crowd

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

"""What a person may change, and what they wish to try, as forms say it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from incrowd.advisor.answer import OwnPost, PersonReport
from incrowd.errors import InputError
from incrowd.measures.protocol import Changes

if TYPE_CHECKING:
    from starlette.datastructures import FormData

    from incrowd.crowd import Crowd

MOST_POSTS = 200
"""Posts listed a community, the newest; older ones can be named by number."""
MOST_ITEMS = 500


@dataclass(frozen=True, eq=False)
class Holdings:
    """What the person has in the crowd, to choose from."""

    posts: Mapping[str, tuple[OwnPost, ...]]
    """By community, newest first."""
    counts: Mapping[str, int]
    items: tuple[str, ...]
    attributes: Mapping[str, str]
    texts: bool

    @property
    def communities(self) -> list[str]:
        """Where the person writes."""
        return list(self.posts)


def holdings(crowd: Crowd, person: str, texts: bool) -> Holdings:
    """Read what the crowd holds of one person; texts only where they ask to see them."""
    import polars as pl

    from incrowd.measures.person import own_posts

    user = crowd.user(person)
    posts, mine = own_posts(crowd, user), pl.col("user") == user
    by_community = {
        str(name): tuple(_post(row, texts) for row in part.reverse().head(MOST_POSTS).iter_rows(named=True))
        for (name,), part in posts.group_by("community", maintain_order=True)
    }
    items = crowd.items().filter(mine).select(pl.col("item").unique().sort()).collect()["item"].to_list()
    attributes = crowd.attributes().filter(mine).select("attribute", "value").sort("attribute").collect()
    counts = dict(posts.group_by("community").len().iter_rows())
    return Holdings(by_community, counts, tuple(items[:MOST_ITEMS]), dict(attributes.iter_rows()), texts)


def _post(row: Mapping[str, Any], texts: bool) -> OwnPost:
    text = row["text"] if texts else None
    return OwnPost(number=row["number"], community=row["community"], time=row["time"], text=text)


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What was ticked and typed."""

    plan: bool = False
    actions: frozenset[int] = frozenset()
    """Places in the report's list of actions."""
    delete: frozenset[int] = frozenset()
    move: frozenset[int] = frozenset()
    items: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    words: str = ""
    texts: bool = False
    page: str = ""
    """The open page that asks; of its questions only the latest is worked on."""

    @classmethod
    def fresh(cls) -> Wish:
        """Return an empty wish for a page that is opened now."""
        return cls(page=secrets.token_urlsafe(9))

    @classmethod
    def from_form(cls, form: FormData) -> Wish:
        """Read a form; a field that is missing was not ticked."""
        return cls(
            plan="plan" in form,
            actions=_numbers(form.getlist("advice")),
            delete=_numbers(form.getlist("delete")) | _numbers(str(form.get("delete_more", "")).split(",")),
            move=_numbers(form.getlist("move")),
            items=frozenset(map(str, form.getlist("item"))),
            attributes=frozenset(map(str, form.getlist("attribute"))),
            words=str(form.get("words", "")),
            texts="texts" in form,
            page=str(form.get("page", ""))[:20],
        )

    def changes(self, report: PersonReport) -> Changes:
        """Return all of it as changes to the person's data."""
        chosen = Changes(
            delete_posts=self.delete,
            move_posts=self.move - self.delete,
            drop_items=self.items,
            withhold_attributes=self.attributes,
            edit_words=frozenset(word.strip().lower() for word in self.words.split(",") if word.strip()),
        )
        for place in sorted(self.actions):
            if place < len(report.actions):
                chosen |= report.actions[place].changes
        return chosen | report.plan.changes if self.plan and report.plan else chosen


def _numbers(values: list[Any]) -> frozenset[int]:
    try:
        return frozenset(int(str(value)) for value in values if str(value).strip())
    except ValueError:
        raise InputError("posts go by their numbers, such as 12, 40; check the list") from None

"""Lemmy: posts and comments of a community, and of a person, by version 3 of its interface."""

from __future__ import annotations

import re
from typing import Any

from incrowd.collect.services.base import Page, Post, Service, distinct, joined, refuses, seconds
from incrowd.crowd.readers.lemmy import federated_name

NEWEST = "the newest posts of a community"
PERSON = "a person's posts"
_COMMUNITY = re.compile(r"!?([A-Za-z0-9_]+(?:@[A-Za-z0-9.-]+)?)$")


class Lemmy(Service):
    """Posts and comments of a Lemmy server."""

    name = "lemmy"
    communities = "a community, with its server if that is another one"
    example = "tea@lemmy.example"
    page_posts = 50
    pause = 1.0
    ordered = False  # a person's page holds posts and comments of different spans of time

    def check(self, community: str) -> str:
        """Return ``name`` or ``name@host``."""
        match = _COMMUNITY.match(super().check(community))
        if match is None:
            raise self.no_community(community)
        return match[1]

    def newest(self, community: str, cursor: str) -> Page:
        """Return a page of a community's newest posts, then of its newest comments."""
        kind, _, number = (cursor or "post:1").partition(":")
        params = {"community_name": community, "sort": "New", "limit": self.page_posts, "page": int(number)}
        found = self.client.json(f"{self.server}/api/v3/{kind}/list", NEWEST, {**params, "type_": "All"})
        with self.reading(NEWEST):
            views = found[f"{kind}s"]
            more = (f"{kind}:{int(number) + 1}",) if len(views) >= self.page_posts else ()
            return _page(views, (*more, *(() if cursor else ("comment:1",))))

    def posts_of(self, account: str, cursor: str) -> Page:
        """Return a page of a person's newest posts and comments."""
        number = int(cursor or "1")
        params = {"username": account, "sort": "New", "limit": self.page_posts, "page": number}
        found = self.client.json(f"{self.server}/api/v3/user", PERSON, params)
        with self.reading(PERSON):
            views = [*found["posts"], *found["comments"]]
            full = max(len(found["posts"]), len(found["comments"])) >= self.page_posts
            page = _page(views, (str(number + 1),) if full else ())
            reason = _reason(found["person_view"]["person"])
            return Page(left_out=reason) if reason else page


def _page(views: list[dict[str, Any]], cursors: tuple[str, ...]) -> Page:
    """Read posts and comments; newest first, as far as one listing goes."""
    willing = [view for view in views if not _reason(view["creator"])]
    posts = [_post(view) for view in willing]
    return Page(
        posts=tuple(post for post in posts if post is not None),
        people=distinct(
            (federated_name(view["creator"]), federated_name(view["creator"])) for view in willing
        ),
        cursors=cursors,
        refused=tuple(federated_name(view["creator"]) for view in views if _reason(view["creator"])),
    )


def _reason(person: dict[str, Any]) -> str | None:
    if person.get("bot_account"):
        return "is a program"
    return "asks not to be indexed" if refuses(person.get("bio")) else None


def _post(view: dict[str, Any]) -> Post | None:
    thing = view.get("comment") or view["post"]
    if thing.get("deleted") or thing.get("removed"):
        return None
    comment = "comment" in view
    text = thing["content"] if comment else joined(thing["name"], thing.get("body"))
    user, community = federated_name(view["creator"]), federated_name(view["community"])
    return Post(str(thing["ap_id"]), user, community, seconds(thing["published"]), str(text))

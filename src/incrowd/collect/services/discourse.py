"""Discourse forums: a forum's newest posts, a category's topics, and a person's posts.

These are the documents behind the forum's own pages, so its robots.txt applies. A post's id is its address and its
community its category, as in the archive that a forum hands its members.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from incrowd.collect.services.base import Page, Post, Service, distinct, refuses, seconds
from incrowd.crowd.readers.base import html_text

ALL = "all"
NEWEST = "the newest posts of a forum"
PERSON = "a person's posts"
ACTIONS_A_PAGE = 30
_CATEGORY = re.compile(r"(?:/?c/)?([A-Za-z0-9_%-]+(?:/[A-Za-z0-9_%-]+)*/\d+)$")
_QUOTE_TITLE = re.compile(r'<div class="title">[^<>]*(?:<[^<>]*>[^<>]*){0,20}?</div>')


class Discourse(Service):
    """Posts of one forum; its categories are communities of the crowd."""

    name = "discourse"
    communities = "'all', or a category as its address has it"
    example = "cooking/12"
    page_posts = 20
    pause = 1.0  # 60 requests a minute are allowed
    robots = True
    ordered = False  # categories list topics by their last change
    _categories: dict[int, str] | None = None

    def check(self, community: str) -> str:
        """Return `all`, or a category's path with its number."""
        name = super().check(community)
        match = _CATEGORY.match(name)
        if name != ALL and match is None:
            raise self.no_community(community)
        return name if match is None else match[1]

    def newest(self, community: str, cursor: str) -> Page:
        """Return a page of the forum's newest posts, of a category's topics, or of a topic's posts."""
        if community == ALL:
            return self._latest(cursor)
        kind, _, place = (cursor or "topics:0").partition(":")
        return self._topics(community, int(place)) if kind == "topics" else self._topic(place)

    def needs_profile(self, account: str) -> bool:
        """Say that a person's wish stands in their profile."""
        return True

    def posts_of(self, account: str, cursor: str) -> Page:
        """Return a person's wish first, then pages of what they posted; long posts have pages of their own."""
        if cursor == "":
            found = self._ask(f"u/{quote(account, safe='')}.json", "a person's profile", {})
            with self.reading("a person's profile"):
                user = found["user"]
                hidden = user.get("profile_hidden") or refuses(user.get("bio_raw"))
                return Page(left_out="hides their profile") if hidden else Page(cursors=("actions:0",))
        kind, _, place = cursor.partition(":")
        return self._actions(account, int(place)) if kind == "actions" else self._one(place)

    def _latest(self, cursor: str) -> Page:
        found = self._ask("posts.json", NEWEST, {"before": cursor} if cursor else {})
        with self.reading(NEWEST):
            posts = found["latest_posts"]
            # Numbers of posts grow: the next page begins below the smallest of this one.
            oldest = min((int(post["id"]) for post in posts), default=0)
            return self._page(posts, (str(oldest),) if oldest > 1 else ())

    def _topics(self, category: str, number: int) -> Page:
        found = self._ask(f"c/{category}/l/latest.json", "a category's topics", {"page": number})
        with self.reading("a category's topics"):
            topics = found["topic_list"]["topics"]
            more = (f"topics:{number + 1}",) if found["topic_list"].get("more_topics_url") and topics else ()
            return Page(cursors=(*(f"topic:{int(topic['id'])}/1" for topic in topics), *more))

    def _topic(self, place: str) -> Page:
        topic, _, first = place.partition("/")
        found = self._ask(f"t/{topic}/{first}.json", "a topic's posts", {})
        with self.reading("a topic's posts"):
            posts = [post for post in found["post_stream"]["posts"] if post["post_number"] >= int(first)]
            last = max((int(post["post_number"]) for post in posts), default=int(first))
            more = last < int(found["highest_post_number"]) and bool(posts)
            facts = {"category_id": found.get("category_id")}
            return self._page(
                [{**facts, **post} for post in posts], (f"topic:{topic}/{last + 1}",) if more else ()
            )

    def _actions(self, account: str, offset: int) -> Page:
        found = self._ask(
            "user_actions.json", PERSON, {"username": account, "filter": "4,5", "offset": offset}
        )
        with self.reading(PERSON):
            actions = found["user_actions"]
            cut = tuple(
                f"post:{int(action['post_id'])}/{int(action.get('category_id') or 0)}"
                for action in actions
                if action.get("truncated")
            )
            whole = [action for action in actions if not action.get("truncated")]
            more = (f"actions:{offset + len(actions)}",) if len(actions) >= ACTIONS_A_PAGE else ()
            posts = [self._post(action, action.get("excerpt") or "") for action in whole]
            return Page(
                posts=tuple(post for post in posts if post.text),
                people=((account, account),),
                cursors=(*cut, *more),
            )

    def _one(self, place: str) -> Page:
        number, _, category = place.partition("/")
        found = self._ask(f"posts/{number}.json", PERSON, {})
        with self.reading(PERSON):
            return self._page([{**found, "category_id": int(category)}], ())

    def _category(self, number: object) -> str:
        """Return a category as archives write it, after the one it belongs to: ``Parent|Child``."""
        if self._categories is None:
            self._categories = {}
            found = self._ask("categories.json", "a forum's categories", {"include_subcategories": "true"})
            for category in found["category_list"]["categories"]:
                name = str(category["name"])
                self._categories[int(category["id"])] = name
                for child in category.get("subcategory_list") or []:
                    self._categories[int(child["id"])] = f"{name}|{child['name']}"
        return self._categories.get(int(str(number or 0)), self.host)

    def _ask(self, path: str, what: str, params: dict[str, object]) -> Any:
        return self.client.json(f"{self.server}/{path}", what, params)

    def _page(self, found: list[dict[str, Any]], cursors: tuple[str, ...]) -> Page:
        # Negative numbers are the forum's own programs; other types are notes such as "closed this topic".
        own = [
            post
            for post in found
            if int(post.get("user_id", 1)) > 0 and post.get("post_type", 1) == 1 and not post.get("hidden")
        ]
        posts = tuple(self._post(post, post["cooked"]) for post in own)
        return Page(
            posts=tuple(post for post in posts if post.text),
            people=distinct((post.user, post.user) for post in posts),
            cursors=cursors,
        )

    def _post(self, found: dict[str, Any], markup: str) -> Post:
        text = html_text(_QUOTE_TITLE.sub("", markup))
        slug = found.get("topic_slug") or found["slug"]
        address = f"{self.server}/t/{slug}/{int(found['topic_id'])}/{int(found['post_number'])}"
        community = self._category(found.get("category_id"))
        return Post(address, str(found["username"]), community, seconds(found["created_at"]), text)

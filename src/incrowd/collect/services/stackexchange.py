"""Stack Exchange's interface: questions, answers and comments of a site, of one of its tags, or of a person.

Ids and names are those of the public dumps: a person is their number on the site, a site is a community.
"""

from __future__ import annotations

import html
import re
from typing import Any, ClassVar

from incrowd.collect.services.base import Page, Post, Service, distinct, joined
from incrowd.crowd.readers.base import html_text
from incrowd.errors import ServerError

NEWEST = "the newest posts of a site"
PERSON = "a person's posts"
KINDS = ("questions", "answers", "comments")
_SITE = re.compile(r"(?:https://)?([a-z0-9.-]+\.(?:com|net|org))(?:/(?:questions/tagged/)?([^\s/]+))?/?$")


class StackExchange(Service):
    """Posts of Stack Overflow and its sister sites."""

    name = "stackexchange"
    home = "https://api.stackexchange.com"
    communities = "a site, or a site and a tag"
    example = "cooking.stackexchange.com/bread"
    page_posts = 100
    pause = 0.5  # 30 requests a second are the limit, 300 a day without a key
    wants: ClassVar = {"stackexchange-key": "an application's key: 10,000 requests a day instead of 300"}

    def check(self, community: str) -> str:
        """Return ``site`` or ``site/tag``."""
        match = _SITE.match(super().check(community).lower())
        if match is None:
            raise self.no_community(community)
        return match[1] if match[2] is None else f"{match[1]}/{match[2]}"

    def newest(self, community: str, cursor: str) -> Page:
        """Return a page of the newest questions of a tag, or of all posts of a site."""
        site, _, tag = community.partition("/")
        if cursor == "":
            cursor = "questions:1"
        kind, _, number = cursor.partition(":")
        tagged: dict[str, object] = {"tagged": tag} if tag else {}
        others = () if tag or cursor != "questions:1" else ("answers:1", "comments:1")
        return self._page(kind, kind, site, NEWEST, int(number), tagged, others)

    def posts_of(self, account: str, cursor: str) -> Page:
        """Return a page of a person's questions, answers or comments."""
        site, _, number = account.partition("/")
        others = () if cursor else ("answers:1", "comments:1")
        kind, _, page = (cursor or "questions:1").partition(":")
        return self._page(f"users/{number}/{kind}", kind, site, PERSON, int(page), {}, others)

    def _page(
        self,
        path: str,
        kind: str,
        site: str,
        what: str,
        number: int,
        params: dict[str, object],
        others: tuple[str, ...],
    ) -> Page:
        query = {
            "site": site,
            "sort": "creation",
            "order": "desc",
            "pagesize": self.page_posts,
            "page": number,
        }
        key = self.secret("stackexchange-key")
        secret = {"key": key} if key else {}
        url = f"{self.server}/2.3/{path}"
        found = self.client.json(url, what, {**params, **query, "filter": "withbody", **secret})
        with self.reading(what):
            posts = [_post(kind, site, item) for item in found["items"]]
            if found.get("backoff"):
                self.client.rest(url, float(found["backoff"]))
            more = bool(found.get("has_more")) and bool(found["items"])
            page = Page(
                part=kind,
                posts=tuple(post for post in posts if post is not None),
                people=distinct((f"{site}/{post.user}", post.user) for post in posts if post is not None),
                cursors=((f"{kind}:{number + 1}",) if more else ()) + others,
            )
            spent = found.get("quota_remaining") == 0 and bool(page.cursors)
        if spent:
            raise ServerError(
                f"{self.host}: the day's share of requests is spent. Run the same command again tomorrow: it goes on "
                "where it stopped. A key of your own allows more; see: incrowd collect --help"
            )
        return page


def _post(kind: str, site: str, item: dict[str, Any]) -> Post | None:
    user = item.get("owner", {}).get("user_id")
    if user is None:
        return None  # an account that was deleted
    body = html_text(item["body"])
    if kind == "comments":
        return Post(f"c{item['comment_id']}", str(user), site, int(item["creation_date"]), body)
    number = item["question_id"] if kind == "questions" else item["answer_id"]
    title = html.unescape(item["title"]) if kind == "questions" else None
    return Post(f"p{number}", str(user), site, int(item["creation_date"]), joined(title, body))

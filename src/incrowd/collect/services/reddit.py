"""Reddit's official interface, with the user's own application: subreddits, and a person's newest 1,000 posts.

Records are those of Reddit dumps, and are read as the reader of dumps reads them. Credentials are an application's
(https://www.reddit.com/prefs/apps); it reads what everybody may read, without an account.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import quote

from incrowd.collect.client import LoggedOut, need_credential
from incrowd.collect.services.base import Page, Post, Service, distinct, joined

NEWEST = "the newest posts of a subreddit"
PERSON = "a person's posts"
GONE = ("[deleted]", "[removed]", "")
_SUBREDDIT = re.compile(r"(?:/?r/)?([A-Za-z0-9_]{2,40})/?$")


class Reddit(Service):
    """Comments and submissions of subreddits and people."""

    name = "reddit"
    home = "https://oauth.reddit.com"
    communities = "a subreddit"
    example = "AskHistorians"
    page_posts = 100
    pause = 1.0  # 100 requests a minute are allowed to an application
    most_listed = 1000
    wants: ClassVar = {
        "reddit-client-id": "the id of your application",
        "reddit-client-secret": "its secret",
    }
    login = "https://www.reddit.com"
    _token: str | None = None

    def check(self, community: str) -> str:
        """Return a subreddit's bare name."""
        match = _SUBREDDIT.match(super().check(community))
        if match is None:
            raise self.no_community(community)
        return match[1]

    def newest(self, community: str, cursor: str) -> Page:
        """Return a page of a subreddit's newest comments, then of its newest submissions."""
        if cursor == "":
            cursor = "comments:"
        part, _, after = cursor.partition(":")
        page = self._listing(f"r/{community}/{part}", part, NEWEST, after)
        if part == "comments" and not after:
            return replace(page, cursors=(*page.cursors, "new:"))
        return page

    def needs_profile(self, account: str) -> bool:
        """Say that a person's wish stands in their profile."""
        return True

    def posts_of(self, account: str, cursor: str) -> Page:
        """Return a person's wish first, then a page of their newest comments and submissions."""
        name = quote(account, safe="")
        if cursor == "":
            about = self._ask(f"user/{name}/about", "a person's profile", {})
            with self.reading("a person's profile"):
                hidden = about["data"].get("hide_from_robots") or about["data"].get("is_suspended")
                return Page(left_out="asks not to be indexed") if hidden else Page(cursors=("overview:",))
        return self._listing(f"user/{name}/overview", "overview", PERSON, cursor.partition(":")[2])

    def _listing(self, path: str, part: str, what: str, after: str) -> Page:
        params: dict[str, object] = {"limit": self.page_posts, **({"after": after} if after else {})}
        found = self._ask(path, what, params)
        with self.reading(what):
            things = [child["data"] for child in found["data"]["children"]]
            posts = [_post(thing) for thing in things]
            after = found["data"].get("after")
            return Page(
                part=part,
                posts=tuple(post for post in posts if post is not None),
                people=distinct((post.user, post.user) for post in posts if post is not None),
                cursors=(f"{part}:{after}",) if after and things else (),
            )

    def _ask(self, path: str, what: str, params: dict[str, object]) -> Any:
        url = f"{self.server}/{path}"
        try:
            return self.client.json(url, what, params, {"authorization": f"Bearer {self._access()}"})
        except LoggedOut:
            self._token = None  # a token lasts a day at most, a collection may last longer
            return self.client.json(url, what, params, {"authorization": f"Bearer {self._access()}"})

    def _access(self) -> str:
        if self._token is None:
            why = "Reddit's interface wants an application of your own (https://www.reddit.com/prefs/apps)"
            identity = need_credential("reddit-client-id", why)
            secret = need_credential("reddit-client-secret", why)
            where = self.login if self.server == self.home else self.server
            answer = self.client.post(
                f"{where}/api/v1/access_token",
                "a token for your application",
                form={"grant_type": "client_credentials"},
                auth=(identity.value, secret.value),
            )
            with self.reading("a token for your application"):
                self._token = str(answer["access_token"])
        return self._token


def _post(thing: dict[str, Any]) -> Post | None:
    """Read a comment (it has a body) or a submission (title and perhaps a text), as dumps hold them."""
    author = thing.get("author")
    if not author or author in GONE:
        return None
    comment = thing.get("body") is not None
    kept = thing.get("selftext") if thing.get("selftext") not in GONE else None
    text = thing["body"] if comment else joined(thing.get("title"), kept)
    if text in GONE:
        return None
    identity = ("t1_" if comment else "t3_") + str(thing["id"]).removeprefix("t1_").removeprefix("t3_")
    return Post(identity, str(author), str(thing["subreddit"]), int(thing["created_utc"]), str(text))

"""Mastodon and servers that speak its interface: Pleroma, Akkoma, GoToSocial, Pixelfed, Friendica.

Names, ids and texts are those of the reader of Mastodon's own archive: a person is ``name@host``, and a post's
community is the server its author lives on.
"""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import quote

from incrowd.collect.services.base import Page, Post, Service, distinct, joined, refuses, seconds
from incrowd.crowd.readers.base import html_text
from incrowd.crowd.readers.mastodon import account_name

LOCAL = "local"
NEWEST = "the newest posts of a community"
PERSON = "a person's posts"
PUBLIC = ("public", "unlisted")


class Mastodon(Service):
    """Public posts of one server's people, or with one hashtag."""

    name = "mastodon"
    communities = "a hashtag, or 'local' for the server's own timeline"
    example = "#tea"
    page_posts = 40
    pause = 1.0  # 300 requests in 5 minutes are allowed
    wants: ClassVar = {"mastodon-token": "an access token of yours, if the server wants one to read"}

    def check(self, community: str) -> str:
        """Return a hashtag with its #, or `local`."""
        name = super().check(community)
        if name == LOCAL or (name.startswith("#") and len(name) > 1 and "/" not in name):
            return name
        raise self.no_community(community)

    def newest(self, community: str, cursor: str) -> Page:
        """Return a page of a hashtag's or the server's own timeline."""
        path = "timelines/public" if community == LOCAL else f"timelines/tag/{quote(community[1:], safe='')}"
        local: dict[str, object] = {"local": "true"} if community == LOCAL else {}
        return self._page(path, NEWEST, local, cursor, whole_listing=False)

    def posts_of(self, account: str, cursor: str) -> Page:
        """Return a page of a person's own posts, without boosts."""
        own: dict[str, object] = {"exclude_reblogs": "true"}
        return self._page(
            f"accounts/{quote(account, safe='')}/statuses", PERSON, own, cursor, whole_listing=True
        )

    def _page(
        self, path: str, what: str, params: dict[str, object], cursor: str, *, whole_listing: bool
    ) -> Page:
        token = self.secret("mastodon-token")
        found = self.client.json(
            f"{self.server}/api/v1/{path}",
            what,
            {**params, "limit": self.page_posts, **({"max_id": cursor} if cursor else {})},
            {"authorization": f"Bearer {token}"} if token else None,
        )
        with self.reading(what):
            willing = [status for status in found if not _reason(status["account"])]
            unwilling = [status["account"] for status in found if _reason(status["account"])]
            shown = [status for status in willing if _is_own(status)]
            return Page(
                posts=tuple(_post(status) for status in shown),
                people=distinct((str(s["account"]["id"]), _name(s["account"])) for s in shown),
                # The last post is where the next page begins; we never follow an address a server gives.
                cursors=(str(found[-1]["id"]),) if found else (),
                left_out=_reason(unwilling[0]) if whole_listing and unwilling else None,
                refused=tuple(_name(account) for account in unwilling),
            )


def _reason(account: dict[str, Any]) -> str | None:
    """Say why an account is left out: it asks not to be indexed, or is a program's."""
    if account.get("noindex") or account.get("indexable") is False or refuses(account.get("note")):
        return "asks not to be indexed"
    return "is a program" if account.get("bot") else None


def _is_own(status: dict[str, Any]) -> bool:
    return status.get("reblog") is None and status.get("visibility", "public") in PUBLIC


def _name(account: dict[str, Any]) -> str:
    """Return ``name@host``, from the same address the reader of archives takes it from."""
    return account_name(account.get("uri") or account["url"])[0]


def _post(status: dict[str, Any]) -> Post:
    user, host = account_name(status["account"].get("uri") or status["account"]["url"])
    text = joined(status.get("spoiler_text"), html_text(status["content"]))
    return Post(str(status["uri"]), user, host or "mastodon", seconds(status["created_at"]), text)

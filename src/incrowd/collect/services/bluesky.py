"""Bluesky over the AT protocol: hashtags, feeds and lists of the network, or everybody on one data server.

The network's view (an "AppView") lists posts by hashtag, feed or list. A personal data server (PDS) only knows
its own accounts: its community is `local`, read through the repository and sync endpoints that every PDS has.
Posts are `app.bsky.feed.post` records; a person is a DID, which stays when a handle changes.
"""

from __future__ import annotations

from base64 import b32decode
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import urlsplit

from incrowd.collect.client import LoggedOut, NotThere, NotUnderstood
from incrowd.collect.services.base import Page, Post, Service, distinct, refuses, seconds

POST = "app.bsky.feed.post"
PROFILE = "app.bsky.actor.profile"
COMMUNITY = "bsky.app"
NO_OUTSIDERS = "!no-unauthenticated"
"""The label of people who do not want to be shown to those who are not logged in."""
LOCAL = "local"
OUTSIDERS = "asks not to be shown to outsiders"
VIEWED = "@"
"""Marks people met in the network's view: it, not their own server, is asked for their posts."""
NEWEST = "the newest posts of a community"
PERSON = "a person's posts"


class Bluesky(Service):
    """Posts of the Bluesky network, or of one of its servers."""

    name = "bluesky"
    home = "https://public.api.bsky.app"
    communities = "a hashtag, a feed's or list's at:// address, or 'local' for everybody on a PDS (--server)"
    example = "#tea"
    page_posts = 100
    pause = 0.2  # 3,000 requests in 5 minutes are allowed; we take half
    wants: ClassVar = {
        "bluesky-handle": "your handle, if the server wants a login to search",
        "bluesky-password": "an app password of yours, never the main one",
    }
    _session: str | None = None

    def check(self, community: str) -> str:
        """Return a hashtag with its #, an at:// address or `local`."""
        name = super().check(community)
        if name == LOCAL or name.startswith("#") or (name.startswith("at://") and _kind(name)):
            return name
        raise self.no_community(community)

    def needs_profile(self, account: str) -> bool:
        """Say whether a person's wish has to be asked for: the network's view shows it beside every post."""
        return not account.startswith(VIEWED)

    def newest(self, community: str, cursor: str) -> Page:
        """Return a page of a hashtag, feed or list, or of the accounts of a PDS."""
        if community == LOCAL:
            return self._accounts(cursor)
        method, params = _listing(community)
        found = self._ask(method, NEWEST, {**params, "limit": self.page_posts, **_after(cursor)})
        with self.reading(NEWEST):
            views = [entry.get("post", entry) for entry in found.get("posts", found.get("feed"))]
            return _page(views, found.get("cursor"))

    def posts_of(self, account: str, cursor: str) -> Page:
        """Return a page of a person's posts, as the network shows them or from the records they wrote."""
        if account.startswith(VIEWED):
            return self._viewed(account.removeprefix(VIEWED), cursor)
        return (
            self._profile(account) if cursor == "" else self._records(account, cursor.removeprefix("posts"))
        )

    def _viewed(self, did: str, cursor: str) -> Page:
        where = {"actor": did, "filter": "posts_with_replies", "limit": self.page_posts}
        found = self._gone_if_unknown("app.bsky.feed.getAuthorFeed", {**where, **_after(cursor)})
        with self.reading(PERSON):
            own = [entry["post"] for entry in found["feed"] if entry["post"]["author"]["did"] == did]
            after = found.get("cursor") if found["feed"] else None
            page = _page(own, after)
            return Page(left_out=OUTSIDERS) if page.refused else replace(page, cursors=_next(after))

    def _records(self, did: str, cursor: str) -> Page:
        where = {"repo": did, "collection": POST, "limit": self.page_posts}
        found = self._gone_if_unknown("com.atproto.repo.listRecords", {**where, **_after(cursor)})
        with self.reading(PERSON):
            posts = [_post(record, did, record["value"]) for record in found["records"]]
            after = found.get("cursor") if found["records"] else None
            return Page(
                posts=tuple(post for post in posts if post is not None),
                cursors=(f"posts{after}",) if after else (),
            )

    def _gone_if_unknown(self, method: str, params: dict[str, object]) -> Any:
        try:
            return self._ask(method, PERSON, params)
        except NotUnderstood:  # how a server answers about an account that was closed
            raise NotThere(f"{self.host}: this account is closed.") from None

    def _accounts(self, cursor: str) -> Page:
        found = self._ask(
            "com.atproto.sync.listRepos", "the accounts of a server", {"limit": 500, **_after(cursor)}
        )
        with self.reading("the accounts of a server"):
            people = tuple((repo["did"], repo["did"]) for repo in found["repos"] if repo.get("active", True))
            after = found.get("cursor")
            return Page(people=people, cursors=(after,) if after and found["repos"] else ())

    def _profile(self, account: str) -> Page:
        """Leave out who labelled their account as not for outsiders, or says so in their own words."""
        try:
            found = self._ask(
                "com.atproto.repo.getRecord",
                "a person's profile",
                {"repo": account, "collection": PROFILE, "rkey": "self"},
            )
        except (NotUnderstood, NotThere):
            return Page(cursors=("posts",))  # most people without a profile are simply without a profile
        with self.reading("a person's profile"):
            profile = found["value"]
            labels = {label["val"] for label in (profile.get("labels") or {}).get("values", [])}
            if NO_OUTSIDERS in labels or refuses(profile.get("description")):
                return Page(left_out=OUTSIDERS)
            return Page(cursors=("posts",))

    def _ask(self, method: str, what: str, params: dict[str, object]) -> Any:
        url = f"{self.server}/xrpc/{method}"
        try:
            return self.client.json(url, what, params, self._proof())
        except LoggedOut:
            if not self._session:
                raise
            self._session = None  # a session lasts some hours, a collection may last longer
            return self.client.json(url, what, params, self._proof())

    def _proof(self) -> dict[str, object]:
        return {"authorization": f"Bearer {self._login()}"} if self._login() else {}

    def _login(self) -> str:
        """Return a session's token if the user gave credentials, else nothing."""
        if self._session is None:
            handle, password = self.secret("bluesky-handle"), self.secret("bluesky-password")
            self._session = ""
            if handle is not None and password is not None:
                answer = self.client.post(
                    f"{self.server}/xrpc/com.atproto.server.createSession",
                    "a session for you",
                    json={"identifier": handle, "password": password},
                )
                with self.reading("a session for you"):
                    self._session = str(answer["accessJwt"])
        return self._session


def _after(cursor: str) -> dict[str, object]:
    return {"cursor": cursor} if cursor else {}


def _kind(address: str) -> str | None:
    """Return what an at:// address names: a feed or a list."""
    kinds = {"app.bsky.feed.generator": "feed", "app.bsky.graph.list": "list"}
    return next((kind for name, kind in kinds.items() if f"/{name}/" in urlsplit(address).path), None)


def _listing(community: str) -> tuple[str, dict[str, object]]:
    """Return the method that lists a community, and what it is called there."""
    kind = _kind(community)
    if kind is not None:
        method = "getFeed" if kind == "feed" else "getListFeed"
        return f"app.bsky.feed.{method}", {kind: community}
    tag = community.removeprefix("#")
    return "app.bsky.feed.searchPosts", {"q": f"#{tag}", "tag": tag, "sort": "latest"}


def _next(after: str | None) -> tuple[str, ...]:
    return (after,) if after else ()


def _page(views: list[Any], after: str | None) -> Page:
    """Read posts as the network shows them; people who do not want outsiders are left out."""
    open_views: list[Any] = []
    refused: list[Any] = []
    for view in views:
        labels = {label["val"] for label in view["author"].get("labels") or []}
        (refused if NO_OUTSIDERS in labels else open_views).append(view)
    posts = [_post(view, view["author"]["did"], view["record"]) for view in open_views]
    return Page(
        posts=tuple(post for post in posts if post is not None),
        people=distinct((VIEWED + view["author"]["did"], view["author"]["did"]) for view in open_views),
        cursors=_next(after if views else None),
        refused=tuple(view["author"]["did"] for view in refused),
    )


def _post(view: dict[str, Any], author: str, record: dict[str, Any]) -> Post | None:
    text = record.get("text")
    if not isinstance(text, str) or not text.strip():
        return None  # a picture, or a record of another kind
    return Post(_identity(view["cid"]), author, COMMUNITY, seconds(record.get("createdAt")), text)


def _identity(cid: str) -> str:
    """Return a record's hash as a repository's file has it: a CID is ``b`` and base 32 without padding."""
    digits = cid.removeprefix("b").upper()
    return b32decode(digits + "=" * (-len(digits) % 8)).hex()

"""Servers on this machine that speak the services' documented protocols, for a small made-up world."""

from __future__ import annotations

import gzip
import json
import threading
from base64 import b32encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

START = 1_700_000_000


@dataclass
class Written:
    """One post of the world."""

    number: int
    user: str
    community: str
    text: str

    @property
    def time(self) -> int:
        return START + self.number

    @property
    def iso(self) -> str:
        return datetime.fromtimestamp(self.time, UTC).isoformat().replace("+00:00", "Z")


@dataclass
class World:
    """People who post in communities, newest last; some do not want to be collected."""

    posts: list[Written]
    refusing: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)

    def newest(self, community: str | None = None, user: str | None = None) -> list[Written]:
        return [
            post
            for post in reversed(self.posts)
            if community in (None, post.community) and user in (None, post.user)
        ]

    def delete(self, number: int) -> None:
        self.posts = [post for post in self.posts if post.number != number]

    def seen(self) -> set[tuple[str, int]]:
        """Return author and time of every post that may be collected."""
        return {(post.user, post.time) for post in self.posts if post.user not in self.refusing | self.closed}


def make_world(people: int = 6, posts: int = 130, communities: tuple[str, ...] = ("tea", "bread")) -> World:
    """Everybody posts in turn; in the communities in turn, so that each has everybody after a while."""
    return World(
        [
            Written(
                n, f"person{n % people}", communities[(n // people) % len(communities)], f"words {n} of mine"
            )
            for n in range(1, posts + 1)
        ]
    )


@dataclass
class Asked:
    """A request as the server saw it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes = b""

    def __getitem__(self, name: str) -> str:
        return self.query[name]


Reply = tuple[int, dict[str, str], bytes]
Answering = Callable[[Asked], Any]


class Site:
    """A server; a route answers with a JSON value, or with status, headers and body."""

    def __init__(self) -> None:
        self.routes: dict[str, Answering] = {}
        self.asked: list[Asked] = []
        self.fault: Callable[[Asked], Reply | None] = lambda asked: None
        self.raw: Callable[[Asked, Any], bool] = lambda asked, wire: False
        """May write to the wire itself, and say so."""
        self.compress = True

    def answer(self, asked: Asked) -> Reply:
        fault = self.fault(asked)
        if fault is not None:
            return fault
        for prefix, route in sorted(self.routes.items(), key=lambda pair: -len(pair[0])):
            if asked.path == prefix or (prefix.endswith("/") and asked.path.startswith(prefix)):
                found = route(asked)
                if isinstance(found, tuple):
                    return found
                body = json.dumps(found).encode()
                if self.compress:
                    return (
                        200,
                        {"content-type": "application/json", "content-encoding": "gzip"},
                        gzip.compress(body),
                    )
                return 200, {"content-type": "application/json; charset=utf-8"}, body
        return not_found()

    @contextmanager
    def open(self) -> Iterator[str]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                size = int(self.headers.get("content-length", 0))
                asked = Asked(
                    self.command,
                    unquote(parts.path),
                    dict(parse_qsl(parts.query)),
                    {name.lower(): value for name, value in self.headers.items()},
                    self.rfile.read(size),
                )
                site.asked.append(asked)
                if site.raw(asked, self.wfile):
                    self.close_connection = True
                    return
                status, headers, body = site.answer(asked)
                self.send_response_only(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "content-length" not in headers:
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_: object) -> None: ...

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None: ...

        server = Server(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def not_found() -> Reply:
    return 404, {"content-type": "application/json"}, b"{}"


def after(posts: list[Written], cursor: str | None, size: int) -> list[Written]:
    """Return a page of posts older than a number."""
    return [post for post in posts if cursor is None or post.number < int(cursor)][:size]


def mastodon(world: World) -> Site:
    site = Site()

    def account(user: str) -> dict[str, Any]:
        return {
            "id": user.removeprefix("person"),
            "acct": user,
            "uri": f"https://tea.example/users/{user}",
            "url": f"https://tea.example/@{user}",
            "noindex": user in world.refusing,
            "bot": False,
            "note": "<p>I like tea</p>",
        }

    def status(post: Written) -> dict[str, Any]:
        return {
            "id": str(post.number),
            "uri": f"https://tea.example/users/{post.user}/statuses/{post.number}",
            "created_at": post.iso,
            "account": account(post.user),
            "content": f"<p>{post.text} &amp; #{post.community}</p>",
            "spoiler_text": "",
            "visibility": "public",
            "reblog": None,
        }

    def page(asked: Asked, posts: list[Written]) -> Any:
        return [status(post) for post in after(posts, asked.query.get("max_id"), int(asked["limit"]))]

    def statuses(asked: Asked) -> Any:
        user = f"person{asked.path.split('/')[4]}"
        return not_found() if user in world.closed else page(asked, world.newest(user=user))

    site.routes["/api/v1/timelines/tag/"] = lambda asked: page(
        asked, world.newest(asked.path.rsplit("/", 1)[1])
    )
    site.routes["/api/v1/timelines/public"] = lambda asked: page(asked, world.newest())
    site.routes["/api/v1/accounts/"] = statuses
    return site


def reddit(world: World) -> Site:
    site = Site()

    def thing(post: Written) -> dict[str, Any]:
        comment = post.number % 2 == 0
        words: dict[str, Any] = (
            {"body": post.text} if comment else {"title": "A title", "selftext": post.text}
        )
        kind = "t1" if comment else "t3"
        facts = {
            "id": f"x{post.number}",
            "author": post.user,
            "subreddit": post.community,
            "created_utc": post.time,
        }
        return {"kind": kind, "data": {**facts, **words, "name": f"{kind}_x{post.number}"}}

    def listing(asked: Asked, posts: list[Written]) -> Any:
        cursor = asked.query.get("after")
        page = after(posts, cursor.partition("x")[2] if cursor else None, int(asked["limit"]))
        more = page and page[-1].number > posts[-1].number
        return {
            "data": {
                "children": [thing(p) for p in page],
                "after": f"t1_x{page[-1].number}" if more else None,
            }
        }

    def subreddit(asked: Asked) -> Any:
        assert asked.headers["authorization"] == "Bearer app-token"
        _, _, name, kind = asked.path.split("/")
        return listing(asked, [p for p in world.newest(name) if (p.number % 2 == 0) == (kind == "comments")])

    def user(asked: Asked) -> Any:
        _, _, name, what = asked.path.split("/")
        if name in world.closed:
            return not_found()
        if what == "about":
            return {"data": {"name": name, "hide_from_robots": name in world.refusing}}
        return listing(asked, world.newest(user=name))

    def token(asked: Asked) -> Any:
        assert asked.headers["authorization"].startswith("Basic ")
        assert asked.body == b"grant_type=client_credentials"
        return {"access_token": "app-token", "token_type": "bearer"}

    site.routes |= {"/api/v1/access_token": token, "/r/": subreddit, "/user/": user}
    return site


def hackernews(world: World) -> Site:
    site = Site()

    def hit(post: Written) -> dict[str, Any]:
        return {
            "objectID": str(post.number),
            "author": post.user,
            "created_at_i": post.time,
            "comment_text": f"<p>{post.text}",
            "_tags": ["comment", f"author_{post.user}"],
        }

    def search(asked: Asked) -> Any:
        author = next((tag[7:] for tag in asked["tags"].split(",") if tag.startswith("author_")), None)
        bound = asked.query.get("numericFilters", "created_at_i<9999999999").partition("<")[2]
        posts = [post for post in world.newest(user=author) if post.time < int(bound)]
        return {"hits": [hit(post) for post in posts[: int(asked["hitsPerPage"])]]}

    site.routes["/api/v1/search_by_date"] = search
    return site


def stackexchange(world: World) -> Site:
    site = Site()
    kinds = ("questions", "answers", "comments")

    def item(post: Written) -> dict[str, Any]:
        kind = kinds[post.number % 3]
        owner = {"user_id": int(post.user.removeprefix("person")) + 100, "user_type": "registered"}
        number = {"questions": "question_id", "answers": "answer_id", "comments": "comment_id"}[kind]
        title = {"title": "How &amp; why?"} if kind == "questions" else {}
        body = f"<p>{post.text}</p>"
        return {"owner": owner, number: post.number, "creation_date": post.time, "body": body, **title}

    def listing(asked: Asked) -> Any:
        parts = asked.path.split("/")
        user = f"person{int(parts[3]) - 100}" if parts[2] == "users" else None
        posts = [p for p in world.newest(asked.query.get("tagged"), user) if kinds[p.number % 3] == parts[-1]]
        start, size = (int(asked["page"]) - 1) * int(asked["pagesize"]), int(asked["pagesize"])
        items = [item(post) for post in posts[start : start + size]]
        return {"items": items, "has_more": len(posts) > start + size, "quota_remaining": 200, "backoff": 0}

    site.routes["/2.3/"] = listing
    return site


def lemmy(world: World) -> Site:
    site = Site()

    def view(post: Written) -> dict[str, Any]:
        person = {"name": post.user, "actor_id": f"https://lemmy.example/u/{post.user}"}
        person["bio"] = "please #nobot" if post.user in world.refusing else ""
        community = {"name": post.community, "actor_id": f"https://lemmy.example/c/{post.community}"}
        shared = {"ap_id": f"https://lemmy.example/x/{post.number}", "published": post.iso, "deleted": False}
        thing = {"comment": {**shared, "content": post.text}}
        if post.number % 2:
            thing = {"post": {**shared, "name": "A title", "body": post.text}}
        return {"creator": person, "community": community, "post": {}, **thing}

    def part(posts: list[Written], comments: bool, asked: Asked) -> list[Any]:
        chosen = [post for post in posts if (post.number % 2 == 0) == comments]
        start = (int(asked["page"]) - 1) * int(asked["limit"])
        return [view(post) for post in chosen[start : start + int(asked["limit"])]]

    def listing(asked: Asked) -> Any:
        comments = "comment" in asked.path
        return {asked.path.split("/")[3] + "s": part(world.newest(asked["community_name"]), comments, asked)}

    def user(asked: Asked) -> Any:
        name = asked["username"].partition("@")[0]
        posts = world.newest(user=name)
        if name in world.closed:
            return not_found()
        pages = {"posts": part(posts, False, asked), "comments": part(posts, True, asked)}
        return {"person_view": {"person": view(posts[0])["creator"]}, **pages}

    site.routes |= {"/api/v3/post/list": listing, "/api/v3/comment/list": listing, "/api/v3/user": user}
    return site


def discourse(world: World) -> Site:
    site = Site()

    def post_of(post: Written) -> dict[str, Any]:
        quote = (
            '<aside class="quote"><div class="title">other:</div><blockquote>not mine</blockquote></aside>'
        )
        facts = {
            "id": post.number,
            "username": post.user,
            "created_at": post.iso,
            "post_type": 1,
            "user_id": 5,
        }
        place = {"topic_id": 7, "topic_slug": "on-tea", "post_number": post.number, "category_id": 12}
        return {**facts, **place, "cooked": f"{quote}<p>{post.text}</p>"}

    def latest(asked: Asked) -> Any:
        return {"latest_posts": [post_of(p) for p in after(world.newest(), asked.query.get("before"), 20)]}

    def topics(asked: Asked) -> Any:
        return {"topic_list": {"topics": [{"id": 7}] if asked["page"] == "0" else []}}

    def topic(asked: Asked) -> Any:
        first = int(asked.path.split("/")[3].removesuffix(".json"))
        posts = [post for post in world.posts if post.number >= first][:20]
        stream = {"posts": [post_of(post) for post in posts]}
        return {"post_stream": stream, "highest_post_number": world.posts[-1].number}

    def profile(asked: Asked) -> Any:
        name = asked.path.split("/")[2].removesuffix(".json")
        return not_found() if name in world.closed else {"user": {"profile_hidden": name in world.refusing}}

    def actions(asked: Asked) -> Any:
        posts = world.newest(user=asked["username"])[int(asked["offset"]) :][:30]
        return {
            "user_actions": [
                {
                    "post_id": post.number,
                    "post_number": post.number,
                    "topic_id": 7,
                    "slug": "on-tea",
                    "category_id": 12,
                    "username": post.user,
                    "created_at": post.iso,
                    "excerpt": post.text[:5] if post.number % 10 == 0 else post.text,
                    "truncated": post.number % 10 == 0,
                }
                for post in posts
            ]
        }

    def single(asked: Asked) -> Any:
        number = int(asked.path.split("/")[2].removesuffix(".json"))
        return next((post_of(post) for post in world.posts if post.number == number), not_found())

    site.routes |= {
        "/posts.json": latest,
        "/categories.json": lambda asked: {
            "category_list": {
                "categories": [{"id": 3, "name": "Food", "subcategory_list": [{"id": 12, "name": "Tea"}]}]
            }
        },
        "/c/": topics,
        "/t/": topic,
        "/u/": profile,
        "/user_actions.json": actions,
        "/posts/": single,
        "/robots.txt": lambda asked: (
            200,
            {"content-type": "text/plain"},
            b"User-agent: *\nDisallow: /admin/\n",
        ),
    }
    return site


def mail(post: Written) -> bytes:
    date = format_datetime(datetime.fromtimestamp(post.time, UTC))
    head = f"From: {post.user} <{post.user}@example.test>\nDate: {date}\nMessage-ID: <{post.number}@example.test>\n"
    return f"{head}List-Id: Tea <{post.community}.example.test>\nSubject: Re: tea\n\n{post.text}\n".encode()


def mailbox(posts: list[Written]) -> bytes:
    return b"\n".join(b"From x@example.test Thu Jan  1 00:00:00 1970\n" + mail(post) for post in posts)


def mailman(world: World) -> Site:
    site = Site()

    def exported(asked: Asked) -> Any:
        name = asked.path.split("/")[3].partition("@")[0]
        start, end = (
            datetime.fromisoformat(asked[part]).replace(tzinfo=UTC).timestamp() for part in ("start", "end")
        )
        posts = [post for post in world.posts if post.community == name and start <= post.time < end]
        return 200, {"content-type": "application/gzip"}, gzip.compress(mailbox(posts))

    def about(asked: Asked) -> Any:
        now = datetime.fromtimestamp(world.posts[-1].time, UTC)
        body = b'{"archive_policy": "public"}'
        return 200, {"content-type": "application/json", "date": format_datetime(now, usegmt=True)}, body

    site.routes |= {
        "/archives/list/": exported,
        "/archives/api/list/": about,
        "/robots.txt": lambda asked: not_found(),
    }
    return site


def cid(text: str) -> str:
    """Return a record's hash in the form the network writes it."""
    digest = b"\x01\x71\x12\x20" + sha256(text.encode()).digest()
    return "b" + b32encode(digest).decode().lower().rstrip("=")


def bluesky(world: World) -> Site:
    """The network's view; the repository and sync endpoints are tested with the real server."""
    site = Site()

    def view(post: Written) -> dict[str, Any]:
        labels = [{"val": "!no-unauthenticated"}] if post.user in world.refusing else []
        author = {"did": f"did:plc:{post.user}", "handle": f"{post.user}.example", "labels": labels}
        record = {"text": post.text, "createdAt": post.iso}
        uri = f"at://did:plc:{post.user}/app.bsky.feed.post/{post.number}"
        return {"uri": uri, "cid": cid(f"{post.number}"), "author": author, "record": record}

    def page(asked: Asked, posts: list[Written], name: str, wrap: bool) -> Any:
        found = after(posts, asked.query.get("cursor"), int(asked["limit"]))
        views = [{"post": view(post)} if wrap else view(post) for post in found]
        return {name: views, **({"cursor": str(found[-1].number)} if found else {})}

    def author(asked: Asked) -> Any:
        name = asked["actor"].removeprefix("did:plc:")
        if name in world.closed:
            return 400, {"content-type": "application/json"}, b'{"error": "AccountDeactivated"}'
        return page(asked, world.newest(user=name), "feed", True)

    site.routes |= {
        "/xrpc/app.bsky.feed.searchPosts": lambda asked: page(
            asked, world.newest(asked["tag"]), "posts", False
        ),
        "/xrpc/app.bsky.feed.getAuthorFeed": author,
    }
    return site


SITES: dict[str, tuple[Callable[[World], Site], str]] = {
    "mastodon": (mastodon, "#tea"),
    "bluesky": (bluesky, "#tea"),
    "reddit": (reddit, "r/tea"),
    "hackernews": (hackernews, "all"),
    "stackexchange": (stackexchange, "cooking.stackexchange.com"),
    "lemmy": (lemmy, "tea"),
    "discourse": (discourse, "all"),
    "mailman": (mailman, "tea@example.test"),
}

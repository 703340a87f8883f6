"""Hacker News through its public search interface (hn.algolia.com): a page holds up to 1,000 posts.

The official interface gives one post for each request: a thousand times the requests for the same posts.
"""

from __future__ import annotations

from incrowd.collect.services.base import Page, Post, Service, distinct, joined
from incrowd.crowd.readers.base import html_text

COMMUNITY = "news.ycombinator.com"
KINDS = ("all", "story", "comment", "ask_hn", "show_hn", "poll")
NEWEST = "the newest posts"
PERSON = "a person's posts"


class HackerNews(Service):
    """Stories and comments; all of them are one community of the crowd."""

    name = "hackernews"
    home = "https://hn.algolia.com"
    communities = f"one of {', '.join(KINDS)}"
    example = "all"
    page_posts = 1000
    pause = 1.0  # 10,000 requests an hour are allowed

    def check(self, community: str) -> str:
        """Return a kind of posts."""
        name = super().check(community)
        if name not in KINDS:
            raise self.no_community(community)
        return name

    def newest(self, community: str, cursor: str) -> Page:
        """Return a page of the newest posts of a kind."""
        return self._page("(story,comment,poll)" if community == "all" else community, NEWEST, cursor)

    def posts_of(self, account: str, cursor: str) -> Page:
        """Return a page of a person's newest posts."""
        return self._page(f"author_{account},(story,comment,poll)", PERSON, cursor)

    def _page(self, tags: str, what: str, cursor: str) -> Page:
        before: dict[str, object] = {"numericFilters": f"created_at_i<{cursor}"} if cursor else {}
        found = self.client.json(
            f"{self.server}/api/v1/search_by_date",
            what,
            {"tags": tags, "hitsPerPage": self.page_posts, **before},
        )
        with self.reading(what):
            posts = [_post(hit) for hit in found["hits"] if hit.get("author")]
            times = [int(hit["created_at_i"]) for hit in found["hits"]]
            return Page(
                posts=tuple(post for post in posts if post.text),
                people=distinct((post.user, post.user) for post in posts),
                cursors=(_following(min(times), cursor),) if len(times) >= self.page_posts else (),
            )


def _following(oldest: int, cursor: str) -> str:
    """Begin the next page in the second this one ended in, unless that brought nothing new."""
    return str(oldest + 1) if str(oldest + 1) != cursor else str(oldest)


def _post(hit: dict[str, object]) -> Post:
    words = hit.get("comment_text") or hit.get("story_text") or ""
    title = None if hit.get("comment_text") else hit.get("title")
    text = joined(str(title) if title else None, html_text(str(words)))
    return Post(str(hit["objectID"]), str(hit["author"]), COMMUNITY, int(str(hit["created_at_i"])), text)

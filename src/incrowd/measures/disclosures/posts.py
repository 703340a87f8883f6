"""Where a person's own posts come from: their export, without any crowd, or a crowd whose key they hold.

One account at a time: an export of several people is refused until one of them is named, and in a crowd a person is
found by name, which takes the crowd's key, and not by the id under which everybody could be looked up.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from incrowd.crowd import Crowd
from incrowd.crowd.own_export import read_export
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.disclosures.assess import Post


def posts_of_export(
    paths: Iterable[str | PathLike[str]], user: str | None = None, *, format: str = "auto"
) -> list[Post]:
    """Read one account's posts from the files of an export, numbered from 0, the oldest first, as `assess` does."""
    rows = read_export(paths, user, format=format).posts
    if rows.is_empty():
        raise InputError(
            "disclosures: these files hold no posts. Give the export with your posts or comments."
        )
    ordered = rows.select("time", "text").sort("time", "text", nulls_last=True, maintain_order=True)
    return [(number, time, text) for number, (time, text) in enumerate(ordered.iter_rows())]


def posts_in_crowd(crowd: Crowd, user: str) -> list[Post]:
    """Read a person's posts, by name, from a crowd; numbers are those of :func:`incrowd.own_posts`."""
    found = crowd.user(user)
    if crowd.names != "plain" and found == user.strip():
        raise NotInCrowd(
            "disclosures: in a crowd this answers to whoever holds its key, by a person's name; an id is not enough."
        )
    posts = crowd.posts(user=found).select("community", "time", "text").collect()
    ordered = posts.sort("community", "time", "text", nulls_last=True, maintain_order=True)
    return [
        (number, time, text) for number, (time, text) in enumerate(ordered.select("time", "text").iter_rows())
    ]

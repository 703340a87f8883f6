"""The services a crowd can be collected from, one file each, all of one shape."""

from __future__ import annotations

from incrowd.collect.services.base import Page, Post, Service
from incrowd.collect.services.bluesky import Bluesky
from incrowd.collect.services.discourse import Discourse
from incrowd.collect.services.hackernews import HackerNews
from incrowd.collect.services.lemmy import Lemmy
from incrowd.collect.services.mailman import Mailman
from incrowd.collect.services.mastodon import Mastodon
from incrowd.collect.services.nntp import Nntp
from incrowd.collect.services.reddit import Reddit
from incrowd.collect.services.stackexchange import StackExchange
from incrowd.errors import InputError

__all__ = ["SERVICES", "Page", "Post", "Service", "service_named"]

SERVICES: dict[str, type[Service]] = {
    service.name: service
    for service in (
        Bluesky,
        Mastodon,
        Reddit,
        HackerNews,
        StackExchange,
        Lemmy,
        Discourse,
        Nntp,
        Mailman,
    )
}


def service_named(name: str) -> type[Service]:
    """Return a service by its name."""
    if name not in SERVICES:
        raise InputError(f"SERVICE: expected one of {', '.join(SERVICES)}, got '{name[:40]}'.")
    return SERVICES[name]

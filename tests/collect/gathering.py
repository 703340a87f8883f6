"""Collecting in tests: short plans, no real waiting, crowds as sets of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from incrowd.collect import Collected, Collector, CollectPlan
from incrowd.collect.client import PoliteClient
from incrowd.crowd import Crowd

CONTACT = "tests@example.org"
OPENED: list[PoliteClient] = []


def patient(**options: Any) -> tuple[PoliteClient, list[float]]:
    """Return a client that waits on paper only, and its list of waits."""
    waits: list[float] = []
    client = PoliteClient(contact=CONTACT, sleep=waits.append, **options)
    OPENED.append(client)
    return client, waits


def plan(service: str, server: str, *communities: str, **options: Any) -> CollectPlan:
    return CollectPlan(service=service, server=server, communities=communities, contact=CONTACT, **options)


def gather(folder: Path, wanted: CollectPlan) -> Collected:
    """Collect into a crowd, waiting on paper only."""
    client, _ = patient(robots=wanted.service in ("discourse", "mailman"))
    with Collector(wanted, Crowd.open_or_create(folder), client) as collector:
        return collector.run()


def rows(folder: Path) -> list[tuple[str, int, str]]:
    """Return (community, time, text) of every post."""
    frame = Crowd(folder).posts().collect()
    return sorted(frame.select("community", "time", "text").rows())


def who(folder: Path, names: list[str]) -> dict[str, int]:
    """Return how many posts each of some people has, by name."""
    crowd = Crowd(folder)
    naming = crowd.naming()
    counts = dict(crowd.posts().collect()["user"].value_counts().rows())
    return {name: counts.get(naming.of(name), 0) for name in names}

"""A made-up community, a card of most of its people, and the exports of some who are not in the card."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from incrowd import Card, CardOptions, Crowd, synthetic
from incrowd.cards.card import text_facts
from incrowd.cards.make import safe_statistics
from incrowd.cards.members import read_members
from incrowd.cards.noise import Blur

HELD_OUT = 12
ONE = "cycling"


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    made = synthetic.demo_person(users=400, seed=4)
    folder = tmp_path_factory.mktemp("people")
    posts, *_ = made.write(folder / "files")
    crowd = Crowd.open_or_create(folder / "crowd", plain_names=True)
    crowd.ingest([posts], kind="posts")
    return crowd


@pytest.fixture(scope="session")
def outsiders(people: Crowd) -> list[str]:
    """People with many posts, who are in no card."""
    there = people.posts(community=ONE)
    counted = there.group_by("user").len().sort("len", "user", descending=True).collect()
    return counted["user"].head(HELD_OUT).to_list()


@pytest.fixture(scope="session")
def card(people: Crowd, outsiders: list[str]) -> Card:
    """A card of one community, in which all outsiders write; the noise is the same in every run."""
    options = CardOptions()
    members = read_members(people, [ONE], options.text).without(outsiders)
    community = safe_statistics(members, options.k, Blur(np.random.default_rng(0)), ONE)
    head = {"text": text_facts(options.text), "communities": [{"name": ONE, **community.facts()}]}
    return Card.made(head, [community.tables()])


@pytest.fixture
def export_of(people: Crowd, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes somebody's posts as an export of their own."""

    def write(user: str, part: slice = slice(None), name: str = "export.jsonl") -> Path:
        rows = people.posts(user=user).collect().sort("time", "text")[part]
        lines = [
            {"author": user, "subreddit": row["community"], "created_utc": row["time"], "body": row["text"]}
            for row in rows.iter_rows(named=True)
        ]
        path = tmp_path / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return path

    return write

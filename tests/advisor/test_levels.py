"""A small twin of benchmarks/levels.py: levels of people of whom half take words of their own into both communities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.levels import measured, summary

from incrowd.crowd import Crowd

PEOPLE = 60


def _crowd(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    common = ["the", "of", "and", "to", *(f"word{k}" for k in range(60))]
    rows = []
    for person in range(PEOPLE):
        for place in ("hall", "yard"):
            for post in range(12):
                words = list(rng.choice(common, 12))
                if person % 2:
                    words[:4] = [f"own{person}x{k}" for k in rng.integers(0, 3, 4)]
                rows.append((f"p{person:02}", place, 1_600_000_000 + 90_000 * post, " ".join(words)))
    frame = pl.DataFrame(rows, schema=["user", "community", "time", "text"], orient="row")
    frame.write_csv(folder / "posts.csv")
    made = Crowd.open_or_create(folder / "crowd", plain_names=True)
    made.ingest([folder / "posts.csv"], kind="posts")
    return made.path


def test_levels_tell_people_apart(tmp_path: Path) -> None:
    told = summary(measured(_crowd(tmp_path), PEOPLE, 0))
    assert told["people"] == PEOPLE
    assert sum(told["levels"].values()) == pytest.approx(1)
    assert told["largest"] <= 0.7
    # Whoever has words of their own is recognised and linked; nobody lacks text.
    assert told["levels"]["at risk"] >= 0.4
    assert told["levels"]["cannot tell"] == 0
    assert set(told["questions"]["linkable"]) - {"cannot tell"}
    assert set(told["questions"]["singled out"]) - {"cannot tell"}

"""Everybody at once says what is said of each alone: the same people come out as easy and as hard to recognise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from incrowd.crowd import Crowd
from incrowd.measures.recognition.assess import community_recognition, member_recognition, recognised_today
from incrowd.measures.recognition.spec import RecognitionOptions


def test_everybody_at_once_agrees_with_one_at_a_time(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    common = ["the", "of", "and", "to", *(f"word{k}" for k in range(60))]
    rows = []
    for person in range(60):
        for post in range(12):
            words = list(rng.choice(common, 15))
            words[: person % 6] = [f"own{person}x{k}" for k in rng.integers(0, 3, person % 6)]
            rows.append((f"p{person:02}", "hall", 90_000 * post, " ".join(words)))
    frame = pl.DataFrame(rows, schema=["user", "community", "time", "text"], orient="row")
    crowd = Crowd.from_frame(frame, path=tmp_path / "crowd")
    options = RecognitionOptions(community="hall", draws=4, judged=60)
    result = community_recognition(crowd, options)
    models = {n: one.model for n, one in result.lessons.items()}
    some = np.arange(0, 60, 5)
    at_once = recognised_today(result.histories, some, models, options)
    alone = [member_recognition(result, result.users[place]).probability for place in some]
    for n in (1, 3):
        one_by_one = np.array([found[n] for found in alone])
        apart = np.abs(at_once[n] - one_by_one)
        assert apart.mean() < 0.05
        assert apart.max() < 0.25

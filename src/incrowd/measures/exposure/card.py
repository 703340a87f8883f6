"""What a card tells about sensitive topics: how many people show each one how strongly, and nothing finer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from incrowd.cards.noise import Noise
from incrowd.measures.exposure.prepared import CommunityScores
from incrowd.measures.exposure.space import Space

Floats = NDArray[np.float64]

EDGES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Strengths at which people are counted; up to the first, nothing points to the topic."""
MOST_TOPICS = 10
"""A person counts for so many topics at most, those they show most: it bounds what one person can move."""
SURE = 1.645
"""Times the noise: nine of ten numbers are within."""


def topic_table(risks: NDArray[np.floating[Any]], space: Space, noise: Noise) -> pl.DataFrame:
    """Count, with noise, how many people show each sensitive topic more strongly than each edge.

    `risks` has a row for each person, topics across. Columns: topic, above, people, give_or_take.
    """
    names = space.topics.sensitive
    shown = np.nan_to_num(risks[:, [space.topics.place(name) for name in names]], nan=0.0)
    floor = np.sort(shown, axis=1)[:, -min(MOST_TOPICS, shown.shape[1])][:, None]
    kept = (shown >= np.maximum(floor, EDGES[0])) & (
        np.argsort(np.argsort(-shown, axis=1), axis=1) < MOST_TOPICS
    )
    step = np.searchsorted(EDGES, shown, side="left") - 1
    counted = np.zeros((len(names), len(EDGES)), np.int64)
    person, topic = np.nonzero(kept & (step >= 0))
    np.add.at(counted, (topic, step[person, topic]), 1)
    noisy = noise.counts("sections", counted, reach=math.sqrt(MOST_TOPICS))
    above = np.maximum.accumulate(np.maximum(np.cumsum(noisy[:, ::-1], axis=1), 0.0), axis=1)[:, ::-1]
    spread = noise.spread("sections", math.sqrt(MOST_TOPICS)) * np.sqrt(np.arange(len(EDGES), 0, -1))
    return pl.DataFrame(
        {
            "topic": np.repeat(names, len(EDGES)),
            "above": np.tile(np.array(EDGES, np.float32), len(names)),
            "people": np.round(above).ravel().astype(np.int32),
            "give_or_take": np.tile(np.ceil(SURE * spread), len(names)).astype(np.int32),
        }
    )


def made_up_scores(table: pl.DataFrame, space: Space, people: int) -> CommunityScores:
    """Make up as many people as the community has, who show topics as the card says; no two of their topics belong
    together, so that only one topic at a time can be looked at.
    """
    risks = np.zeros((people, len(space.topics)))
    for (name,), part in table.sort("above").group_by("topic", maintain_order=True):
        if name in space.topics.sensitive:
            counts = np.minimum(part["people"].to_numpy(), people)
            risks[:, space.topics.place(str(name))] = _spread_out(part["above"].to_numpy(), counts, people)
    nobody = np.zeros(0, np.int64)
    return CommunityScores(
        names=np.zeros(0, "S32"),
        rows=nobody,
        risks=risks,
        starts=np.zeros(people + 1, np.int64),
        period=nobody,
        values=np.zeros((0, len(space.topics))),
        held=np.zeros(people, np.int64),
        members=people,
    )


def _spread_out(edges: NDArray[Any], above: NDArray[Any], people: int) -> Floats:
    """Return risks, largest first, of which so many lie above each edge, evenly within each step."""
    found = np.zeros(people)
    ends = [*edges[1:], 1.0]
    inside = above - np.append(above[1:], 0)
    for low, high, before, count in zip(edges, ends, np.append(above[1:], 0), inside, strict=True):
        found[before : before + count] = high - (high - low) * (np.arange(count) + 0.5) / max(count, 1)
    return found


def rank_between(table: pl.DataFrame, topic: str, risk: float) -> tuple[float, float]:
    """Return between which ranks somebody lies who shows a topic so strongly; infinity: as many as there are.

    The card counts people in steps of strength: whoever is in a higher step ranks before, and of the same step nobody
    knows who does. Each count is off by the noise of its own.
    """
    part = table.filter(pl.col("topic") == topic).sort("above")
    before, same = part.filter(pl.col("above") > risk), part.filter(pl.col("above") <= risk)
    best = before["people"][0] - before["give_or_take"][0] if before.height else 0.0
    worst = same["people"][-1] + same["give_or_take"][-1] if same.height else math.inf
    return max(1.0 + best, 1.0), 1.0 + worst

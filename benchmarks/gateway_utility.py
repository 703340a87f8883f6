"""How many values a question releases: the private mechanism beside the q-only rule, and Diffix's suppression.

60 public values with popularity in proportion to 1/rank, 1.5, 3 or 6 listed on average, each person asked about once or
ten times a month. ``--genres FILE`` adds a JSON file {"person": ["genre", ...]} whose values are the candidates.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
from pathlib import Path

import numpy as np

from incrowd.gateway.people import Selection
from incrowd.gateway.policy import PrivacyPolicy
from incrowd.gateway.private import PrivateMechanism, spending_of
from incrowd.gateway.snapshot import AttributeIndex, _indexed
from incrowd.measures.release.kernels import greedy_release, lists_from_pairs

VALUES, BASE, KEY = 60, 12, b"k" * 32
Q_THRESHOLD = 18
"""What the q-only rule asks of sole holders at its defaults: 12, room of 4, and an amount from 0 to 4, 2 on average."""
SETTINGS = ((1.0, 1), (3.0, 1), (1.0, 10))


def popularity(mean: float) -> np.ndarray:
    """Chances in proportion to 1/rank, none above 0.95, that add up to the mean."""
    weights, scale = 1 / np.arange(1, VALUES + 1), 1.0
    for _ in range(200):
        chances = np.minimum(scale * weights, 0.95)
        scale *= mean / chances.sum()
    return chances


def by_the_q_only_rule(rows: np.ndarray, values: np.ndarray, people: int, count: int) -> int:
    lists = lists_from_pairs(rows, values, np.ones(people, np.int64), count)
    kept = greedy_release(lists, Q_THRESHOLD, np.arange(count), 1, 300_000, np.zeros(1, np.int64))
    return int(kept.sum())


def by_diffix(values: np.ndarray, count: int, seed: int = 22) -> float:
    """What Diffix Elm's suppression lets through at pg_diffix's published defaults, mean of ten draws.

    A value passes a noisy threshold: two layers of noise with a standard deviation of 1 each, a mean two (total)
    standard deviations above 3, and never below 3 (its administrator's guide: low_count_layer_sd, low_count_mean_gap,
    low_count_min_threshold; its `noise.c` for what "total" means).
    """
    held = np.bincount(values, minlength=count)
    noise = np.random.default_rng(seed).normal(size=(10, 2, count)).sum(axis=1)
    return float((held >= np.maximum(3, 3 + 2 * math.sqrt(2) + noise)).sum(axis=1).mean())


def index_of(rows: np.ndarray, values: np.ndarray, people: int, names: list[str]) -> AttributeIndex:
    holders = {name: rows[values == code].astype(np.int32) for code, name in enumerate(names)}
    return _indexed({name: who for name, who in holders.items() if len(who)}, people, 0)


def released(
    index: AttributeIndex, people: int, names: list[str], epsilon: float, questions: int, draws: int
) -> float:
    spent = spending_of(PrivacyPolicy(epsilon=epsilon, questions=questions), public=True)
    made = PrivateMechanism(spending=spent, base=BASE, most=200, key=KEY, candidates=tuple(names))
    everybody = Selection(np.arange(people, dtype=np.int32))
    return float(np.mean([len(made.release(index, everybody).values) for _ in range(draws)]))


def table(rows: np.ndarray, values: np.ndarray, people: int, names: list[str], draws: int) -> list[str]:
    by_q = by_the_q_only_rule(rows, values, people, len(names))
    index = index_of(rows, values, people, names)
    cells = [f"{by_diffix(values, len(names)):.1f}", f"{by_q}"]
    for epsilon, questions in SETTINGS:
        number = released(index, people, names, epsilon, questions, draws)
        cells.append(f"{number:.1f} ({number / max(by_q, 1):.0%})")
    return cells


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, nargs="*", default=[2_000, 20_000, 100_000, 1_000_000])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--genres", type=Path)
    chosen = parser.parse_args(arguments)
    print(
        "| listed | people | Diffix | q-only | epsilon 1 | epsilon 3 | epsilon 1, ten questions |\n"
        "|---|---|---|---|---|---|---|"
    )
    draw = np.random.default_rng(21)
    names = [f"value {rank:02d}" for rank in range(VALUES)]
    for mean in (1.5, 3.0, 6.0):
        for people in chosen.people:
            rows, values = np.nonzero(draw.random((people, VALUES)) < popularity(mean))
            print(
                f"| {mean:g} | {people:,} | {' | '.join(table(rows, values, people, names, chosen.draws))} |",
                flush=True,
            )
    if chosen.genres:
        packed = chosen.genres.read_bytes()
        lists = json.loads(lzma.decompress(packed) if chosen.genres.suffix == ".xz" else packed)
        genres = sorted({genre for one in lists.values() for genre in one})
        code = {genre: place for place, genre in enumerate(genres)}
        everybody = list(lists.values())
        for people in (2_000, 20_000, len(everybody)):
            some = [
                everybody[k] for k in draw.choice(len(everybody), min(people, len(everybody)), replace=False)
            ]
            pairs = sorted({(row, code[genre]) for row, one in enumerate(some) for genre in one})
            rows, values = np.array(pairs, dtype=np.int64).T
            print(
                f"| genres | {len(some):,} | {' | '.join(table(rows, values, len(some), genres, chosen.draws))} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""Exact all-pairs distances that never hold all pairs.

::

    questions.py   what to ask: ball_sizes, nearest, ranks, within_both, histogram, mean_distance, pairwise
        │ picks a kernel (dispatch.py), cuts the pairs into tiles (tiles.py)
        ▼
    solve.py       a Job, opened once a process, run tile by tile by an engine (threads here)
        │ kernel fills a tile            question reduces it
        ▼                                ▼
    kernel.py / cpu.py / gpu.py      balls.py · neighbours.py · summary.py
        │ agree with
        ▼
    reference.py   the formulas, readable

Needs NumPy and SciPy alone; Numba and CuPy are used where they are. The names below load on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from incrowd.distances.dispatch import KERNELS
    from incrowd.distances.neighbours import LocalMatching, Neighbours, TrueRanks
    from incrowd.distances.questions import (
        Compute,
        ball_sizes,
        histogram,
        mean_distance,
        nearest,
        pair_distances,
        pairwise,
        ranks,
        within_both,
    )
    from incrowd.distances.reference import METRICS, Metric, RowKind, register
    from incrowd.distances.summary import DistanceSummary
    from incrowd.distances.update import replace_row, update_ball_sizes

__all__ = [
    "KERNELS",
    "METRICS",
    "Compute",
    "DistanceSummary",
    "LocalMatching",
    "Metric",
    "Neighbours",
    "RowKind",
    "TrueRanks",
    "ball_sizes",
    "histogram",
    "mean_distance",
    "nearest",
    "pair_distances",
    "pairwise",
    "ranks",
    "register",
    "replace_row",
    "update_ball_sizes",
    "within_both",
]

_WHERE = {
    "dispatch": ("KERNELS",),
    "neighbours": ("LocalMatching", "Neighbours", "TrueRanks"),
    "reference": ("METRICS", "Metric", "RowKind", "register"),
    "summary": ("DistanceSummary",),
    "update": ("replace_row", "update_ball_sizes"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'incrowd.distances' has no attribute {name!r}")
    module = next((module for module, names in _WHERE.items() if name in names), "questions")
    return getattr(import_module(f"incrowd.distances.{module}"), name)

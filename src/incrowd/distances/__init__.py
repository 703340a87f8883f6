"""Exact all-pairs distances that never hold all pairs.

::

    all_pairs.py   what to ask: ball_sizes, nearest, ranks, within_both, histogram, mean_distance, pairwise;
        │          picks a kernel (kernels.py), cuts the pairs into tiles (tiles.py), runs them tile by tile
        │ a kernel fills a tile                    a reduction (reductions.py) sums it up
        ▼
    kernels.py · cpu.py (loops in cpu_loops.py) · gpu.py (programs and layout in gpu_panels.py)
        │ agree with
        ▼
    reference.py   the formulas, readable

Needs NumPy and SciPy alone; Numba and CuPy are used where they are. The names below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.distances.all_pairs import (
        Compute,
        ball_sizes,
        histogram,
        mean_distance,
        nearest,
        pair_distances,
        pairwise,
        ranks,
        replace_row,
        update_ball_sizes,
        within_both,
    )
    from incrowd.distances.choice import choice_probabilities, raw_score
    from incrowd.distances.kernels import KERNELS
    from incrowd.distances.reductions import DistanceSummary, LocalMatching, NearestNeighbours, TrueRanks
    from incrowd.distances.reference import METRICS, Metric, RowKind, register

__all__ = [
    "KERNELS",
    "METRICS",
    "Compute",
    "DistanceSummary",
    "LocalMatching",
    "Metric",
    "NearestNeighbours",
    "RowKind",
    "TrueRanks",
    "ball_sizes",
    "choice_probabilities",
    "histogram",
    "mean_distance",
    "nearest",
    "pair_distances",
    "pairwise",
    "ranks",
    "raw_score",
    "register",
    "replace_row",
    "update_ball_sizes",
    "within_both",
]

lazy_names(
    __name__,
    {
        ".all_pairs": (
            "Compute ball_sizes histogram mean_distance nearest pair_distances pairwise ranks replace_row "
            "update_ball_sizes within_both"
        ),
        ".choice": "choice_probabilities raw_score",
        ".kernels": "KERNELS",
        ".reductions": "DistanceSummary LocalMatching NearestNeighbours TrueRanks",
        ".reference": "METRICS Metric RowKind register",
    },
)

"""What a kernel is: something that fills tiles with distances, faster than the reference, within a tolerance.

The reference kernel below takes every metric and is the yardstick. `cpu` and `gpu` take what they can do
well and otherwise step aside with a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from incrowd.arrays import Floats, Ints
from incrowd.distances.reductions import Array, Piece, Reduction
from incrowd.distances.reference import Metric
from incrowd.distances.tiles import Tile
from incrowd.errors import InputError

_CHUNK = 2**21
"""Entries of a dense block the reference kernel holds at once."""


class Kernel(Protocol):
    """Fills tiles for some metrics."""

    name: str
    tolerance: float
    """Largest error of a distance against the reference; 0 if it is the reference."""
    threads: int | None
    """How many tiles may run at once; None: as many as the engine likes."""

    def refuses(self, metric: Metric) -> str:
        """Why this kernel cannot take the job on this machine; empty if it can."""
        ...

    def bytes_for(self, x: sparse.csr_matrix, y: sparse.csr_matrix) -> tuple[int, int]:
        """Return (bytes a pair, bytes a row or column) a tile needs, for the memory plan."""
        ...

    def prepare(self, x: sparse.csr_matrix, y: sparse.csr_matrix | None, metric: Metric) -> Any:
        """Do once what all tiles share. `y` None: x against itself. Rows have been checked."""
        ...

    def tile(self, state: Any, tile: Tile) -> Array:
        """Return the distances of one tile; NaN for empty rows; exactly 0 where a person meets themselves."""
        ...

    def exact(self, state: Any, rows: Ints, columns: Ints) -> Floats:
        """Return the distances of some pairs in double precision, the same bits whatever the tile."""
        ...

    def fused(self, states: tuple[Any, ...], reduction: Reduction, tile: Tile) -> Piece | None:
        """Answer a question on a tile without writing its distances; None: not this one."""
        ...


@dataclass(frozen=True)
class Rows:
    """The two sides of a comparison, as the reference kernel holds them."""

    x: sparse.csr_matrix
    y: sparse.csr_matrix
    metric: Metric
    symmetric: bool


class ReferenceKernel:
    """The plain NumPy formulas, block by block."""

    name = "reference"
    tolerance = 0.0
    threads: int | None = None

    def refuses(self, metric: Metric) -> str:
        """It takes everything."""
        return ""

    def bytes_for(self, x: sparse.csr_matrix, y: sparse.csr_matrix) -> tuple[int, int]:
        """A dense copy of the rows in use, a few distances a pair."""
        return 32, 8 * x.shape[1]

    def prepare(self, x: sparse.csr_matrix, y: sparse.csr_matrix | None, metric: Metric) -> Rows:
        """Nothing to prepare."""
        return Rows(x, x if y is None else y, metric, y is None)

    def tile(self, state: Rows, tile: Tile) -> Array:
        """Compare every row of the tile with blocks of its columns."""
        p = state.x[tile.rows.start : tile.rows.stop].toarray()
        q = state.y[tile.columns.start : tile.columns.stop].toarray()
        distances = np.empty(tile.shape)
        step = max(1, _CHUNK // max(q.size, 1))
        for start in range(0, len(p), step):
            with np.errstate(invalid="ignore", divide="ignore"):
                distances[start : start + step] = state.metric.distance(
                    p[start : start + step, None], q[None]
                )
        distances[~p.any(axis=1)] = np.nan
        distances[:, ~q.any(axis=1)] = np.nan
        return distances

    def exact(self, state: Rows, rows: Ints, columns: Ints) -> Floats:
        """The same formulas on listed pairs."""
        distances = np.empty(len(rows))
        step = max(1, _CHUNK // max(state.x.shape[1], 1))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            p, q = state.x[rows[part]].toarray(), state.y[columns[part]].toarray()
            distances[part] = state.metric.distance(p, q)
        return distances

    def fused(self, states: tuple[Any, ...], reduction: Reduction, tile: Tile) -> Piece | None:
        """Never: it shows every step."""
        return None


# Picks the kernel for the input and the machine, says why, and can be overruled.

# Fastest first. A module is imported only when its turn comes.
_KERNELS = {
    "gpu": ("incrowd.distances.gpu", "GpuKernel"),
    "cpu": ("incrowd.distances.cpu", "CpuKernel"),
    "reference": ("incrowd.distances.kernels", "ReferenceKernel"),
}
KERNELS = tuple(_KERNELS)
SMALL_JOB = 20_000_000
"""Pairs below which starting the GPU costs more than it saves."""


@dataclass(frozen=True)
class KernelChoice:
    """The kernel taken and the reasons, one line for every kernel looked at."""

    kernel: Kernel
    reasons: tuple[str, ...]


def kernel_named(name: str) -> Kernel:
    """Load a kernel by name."""
    if name not in _KERNELS:
        raise InputError(f"kernel: expected auto, {', '.join(KERNELS)}; got {name!r}.")
    module, attribute = _KERNELS[name]
    loaded: Callable[[], Kernel] = getattr(import_module(module), attribute)
    return loaded()


def choose(metric: Metric, pairs: int, kernel: str = "auto") -> KernelChoice:
    """Take the fastest kernel that accepts the job, or the one asked for.

    >>> from incrowd.distances.reference import METRICS
    >>> choose(METRICS["hellinger"], 10, "reference").reasons
    ('reference: asked for',)
    """
    if kernel != "auto":
        return _forced(metric, kernel)
    reasons = []
    for name in KERNELS:
        reason = _objection(name, metric, pairs)
        reasons.append(f"{name}: {reason or 'taken'}")
        if not reason:
            return KernelChoice(kernel_named(name), tuple(reasons))
    return KernelChoice(ReferenceKernel(), tuple(reasons))


def _forced(metric: Metric, name: str) -> KernelChoice:
    try:
        kernel = kernel_named(name)
        reason = kernel.refuses(metric)
    except ImportError as error:
        raise InputError(
            f"kernel: {name!r} was asked for but {error.name or error} is not installed."
        ) from error
    if reason:
        raise InputError(f"kernel: {name!r} was asked for but {reason}. Use kernel='auto'.")
    return KernelChoice(kernel, (f"{name}: asked for",))


def _objection(name: str, metric: Metric, pairs: int) -> str:
    if name == "gpu" and pairs < SMALL_JOB:
        return f"{pairs:,} pairs are too few to be worth starting it"
    try:
        return kernel_named(name).refuses(metric)
    except ImportError as error:
        return f"cannot be loaded ({error.name or error})"

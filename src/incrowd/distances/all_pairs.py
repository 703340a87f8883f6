"""The questions people ask of all pairs, answered in tiles: nothing here ever holds all distances, unless
`pairwise` is asked for by name.

X and Y hold one profile in each row (sparse, dense, or `Profiles`). Without Y, X is compared with itself, each
half once, and `include_self` says whether a person counts as their own neighbour. Thresholds are inclusive
and decided in double precision, to twelve decimals, so that every kernel, tile size and engine returns the
same counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from incrowd.arrays import Floats, Ints
from incrowd.distances.kernels import Kernel, choose, kernel_named
from incrowd.distances.reductions import (
    Array,
    BallSizes,
    DistanceHistogram,
    DistanceSummary,
    LocalMatching,
    Matrix,
    Nearest,
    NearestNeighbours,
    Piece,
    Ranks,
    Reduction,
    Summary,
    TrueRanks,
    WithinBoth,
    rounded,
)
from incrowd.distances.reference import as_rows, check_pair, check_rows, metric_named
from incrowd.distances.tiles import LARGEST_SIDE, Tile, TilePlan, plan_tiles
from incrowd.errors import BudgetExceeded, InputError

# Running a reduction over a plan of tiles: here in threads, or wherever an engine sends the tiles.
#
# A :class:`Job` is everything a worker needs, as one picklable value: send it once, `open` it once a process,
# then call what comes back with one tile after another.

Progress = Callable[[float, float | None, str], None]
Absorb = Callable[[Piece], None]
Side = tuple[sparse.csr_matrix, sparse.csr_matrix | None]


@dataclass(frozen=True)
class TileJob:
    """One reduction of one or two comparisons, for one kernel."""

    reduction: Reduction
    metric: str
    kernel: str
    sides: tuple[Side, ...]

    def open(self) -> TileWorker:
        """Prepare the kernel; the costly part, done once a process and shared by its threads."""
        kernel, metric = kernel_named(self.kernel), metric_named(self.metric)
        return TileWorker(self.reduction, kernel, tuple(kernel.prepare(x, y, metric) for x, y in self.sides))


@dataclass(frozen=True)
class TileWorker:
    """Computes a tile and reduces it. Safe to call from several threads."""

    reduction: Reduction
    kernel: Kernel
    states: tuple[Any, ...]

    def __call__(self, tile: Tile) -> Piece:
        """Compute the tile's distances, settle the doubtful ones in double precision, reduce."""
        piece = self.kernel.fused(self.states, self.reduction, tile)
        if piece is not None:
            return piece
        return self.reduction.look(tile, *(self._settled(side, tile) for side in range(len(self.states))))

    @property
    def threads(self) -> int | None:
        """How many tiles this process may work on at once; None: any number."""
        return self.kernel.threads

    def _settled(self, side: int, tile: Tile) -> Array:
        distances = self.kernel.tile(self.states[side], tile)
        if self.kernel.tolerance == 0:
            return rounded(distances)
        i, j = self.reduction.doubtful(tile, side, distances, self.kernel.tolerance)
        if len(i):
            distances = distances.astype(np.float64)
            rows, columns = i + tile.rows.start, j + tile.columns.start
            distances[i, j] = rounded(self.kernel.exact(self.states[side], rows, columns))
            if tile.diagonal:
                np.fill_diagonal(distances, 0.0)
        return distances


class TileEngine(Protocol):
    """Where tiles run."""

    @property
    def workers(self) -> int:
        """How many tiles are in memory at once."""
        ...

    def run(self, job: TileJob, plan: TilePlan, absorb: Absorb, progress: Progress | None) -> None:
        """Run every tile of the plan and hand each piece to `absorb`, in any order, one at a time."""
        ...


class Threads:
    """The default engine: the cores of this machine."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or usable_cores()

    def run(self, job: TileJob, plan: TilePlan, absorb: Absorb, progress: Progress | None) -> None:
        """Keep `workers` tiles under way; kernels release Python's lock."""
        worker = job.open()
        at_once = min(self.workers, worker.threads or self.workers)
        done, total = 0, float(plan.pairs)
        with ThreadPoolExecutor(at_once) as pool:
            for tile, piece in _as_finished(pool, worker, plan, at_once + 1):
                absorb(piece)
                done += tile.pairs
                if progress:
                    progress(done, total, "distances")


def _as_finished(
    pool: ThreadPoolExecutor, work: Callable[[Tile], Piece], tiles: Iterable[Tile], ahead: int
) -> Iterable[tuple[Tile, Piece]]:
    running: dict[Future[Piece], Tile] = {}
    waiting = iter(tiles)
    try:
        while True:
            while len(running) < ahead and (tile := next(waiting, None)) is not None:
                running[pool.submit(work, tile)] = tile
            if not running:
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), future.result()
    finally:
        for future in running:
            future.cancel()


def usable_cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


@dataclass(frozen=True, kw_only=True)
class Compute:
    """How to compute, never what: no field changes a result beyond the kernel's stated tolerance."""

    kernel: str = "auto"
    """auto, reference, cpu or gpu."""
    engine: TileEngine | None = None
    """Where tiles run; None: the cores of this machine."""
    memory: int = 2**30
    """Bytes the tiles under way may use together, and the largest matrix `pairwise` makes."""
    tile: int | None = None
    """Largest side of a tile; None: what fits the memory."""
    progress: Progress | None = None
    explain: Callable[[str], None] | None = None
    """Called with one line for every choice made, e.g. `print`."""


DEFAULT = Compute()


def pairwise(X: Any, Y: Any = None, *, metric: str = "jensen-shannon", compute: Compute = DEFAULT) -> Floats:
    """Return every distance between rows of X and rows of Y (or X); NaN where a row is empty.

    >>> pairwise([[1.0, 0.0], [0.0, 1.0]], compute=Compute(kernel="reference"))
    array([[0., 1.],
           [1., 0.]])
    """
    side = _side(X, Y, metric, allow_empty=True)
    rows, columns = _extent(side)
    if 8 * rows * columns > compute.memory:
        raise BudgetExceeded(
            f"pairwise: {rows:,} x {columns:,} distances need {8 * rows * columns / 2**30:.1f} GiB; "
            f"the memory budget is {compute.memory / 2**30:.1f} GiB. Ask ball_sizes, nearest, ranks or "
            "histogram instead, which hold no matrix, or raise memory."
        )
    matrix: Floats = _solve(Matrix(rows, columns), (side,), metric, compute)
    return matrix


def ball_sizes(
    X: Any,
    Y: Any = None,
    *,
    radii: npt.ArrayLike,
    include_self: bool = True,
    metric: str = "jensen-shannon",
    compute: Compute = DEFAULT,
) -> Ints:
    """Count, for every row of X and every radius r, the rows of Y (or X) at distance <= r.

    This is the size of the crowd a person hides in: |A(r)|. Returns (rows, radii), any number of radii.

    >>> ball_sizes([[1.0, 0.0], [0.0, 1.0]], radii=[0.5, 1], compute=Compute(kernel="reference"))
    array([[1, 2],
           [1, 2]])
    """
    side = _side(X, Y, metric)
    wanted = _finite(radii, "radii")
    values, back = np.unique(wanted, return_inverse=True)
    reduction = BallSizes(_extent(side)[0], values, include_self)
    sizes: Ints = _solve(reduction, (side,), metric, compute)[:, back]
    return sizes


def nearest(
    X: Any,
    Y: Any = None,
    *,
    k: int = 1,
    include_self: bool = False,
    metric: str = "jensen-shannon",
    compute: Compute = DEFAULT,
) -> NearestNeighbours:
    """Find the k nearest rows of Y (or X) for every row of X; ties go to the lower row number."""
    side = _side(X, Y, metric)
    rows, columns = _extent(side)
    most = columns - (side[1] is None and not include_self)
    if not 1 <= k <= most:
        raise InputError(f"k: expected a number from 1 to {most} (the rows there are); got {k}.")
    neighbours: NearestNeighbours = _solve(Nearest(rows, k, include_self), (side,), metric, compute)
    return neighbours


def ranks(
    X: Any, Y: Any, pairs: npt.ArrayLike, *, metric: str = "jensen-shannon", compute: Compute = DEFAULT
) -> TrueRanks:
    """Count, for every pair (row of X, its true row of Y), the rows of Y nearer than the true one.

    With Y None, X is searched for its own rows and nobody is a candidate for themselves. Ties (equal
    distances in double precision) are counted apart; `TrueRanks` offers best, worst and expected rank.
    """
    side = _side(X, Y, metric)
    x, y = side
    source, target = _pairs(pairs, side)
    d = pair_distances(X, Y, pairs, metric=metric, compute=compute)
    reduction = Ranks(d, target, source if y is None else np.full(len(source), -1, np.int64))
    result: TrueRanks = _solve(reduction, ((x[source], x if y is None else y),), metric, compute)
    return result


def within_both(
    X: Any, Y: Any, pairs: npt.ArrayLike, *, metric: str = "jensen-shannon", compute: Compute = DEFAULT
) -> LocalMatching:
    """Size, for every pair (I_S row of X, I_T row of Y) at distance d, the sets M(d), A(d) and M(d) ∩ A(d).

    M(d): rows of Y within d of I_S. A(d): rows of Y within d of I_T, itself included. The intersection is
    the local matching set; always 1 <= |M ∩ A| <= min(|M|, |A|).
    """
    x, y = _side(X, Y, metric)
    y = x if y is None else y
    source, target = _pairs(pairs, (x, y))
    d = pair_distances(X, Y, pairs, metric=metric, compute=compute)
    sides = ((x[source], y), (y[target], y))
    result: LocalMatching = _solve(WithinBoth(d), sides, metric, compute)
    return result


def histogram(
    X: Any,
    Y: Any = None,
    *,
    edges: npt.ArrayLike,
    include_self: bool = False,
    metric: str = "jensen-shannon",
    compute: Compute = DEFAULT,
) -> Ints:
    """Count pairs by distance: bin i holds edges[i] < d <= edges[i+1], the first bin also edges[0].

    X against itself counts every two people once.
    """
    wanted = _finite(edges, "edges")
    if len(wanted) < 2 or (np.diff(wanted) <= 0).any():
        raise InputError(f"edges: expected at least two rising numbers; got {len(wanted)}.")
    wanted[0] = np.nextafter(wanted[0], -np.inf)  # the first bin holds its lower edge, too
    counts: Ints = _solve(DistanceHistogram(wanted, include_self), (_side(X, Y, metric),), metric, compute)
    return counts


def mean_distance(
    X: Any,
    Y: Any = None,
    *,
    include_self: bool = False,
    metric: str = "jensen-shannon",
    compute: Compute = DEFAULT,
) -> DistanceSummary:
    """Return mean, minimum and maximum over all pairs, and the mean of every row."""
    side = _side(X, Y, metric)
    summary: DistanceSummary = _solve(Summary(_extent(side)[0], include_self), (side,), metric, compute)
    return summary


def pair_distances(
    X: Any, Y: Any, pairs: npt.ArrayLike, *, metric: str = "jensen-shannon", compute: Compute = DEFAULT
) -> Floats:
    """Return the distance of every listed pair (row of X, row of Y or X), in double precision."""
    side = _side(X, Y, metric)
    source, target = _pairs(pairs, side)
    kernel = choose(metric_named(metric), len(source), compute.kernel).kernel
    return rounded(kernel.exact(kernel.prepare(*side, metric_named(metric)), source, target))


def _solve(reduction: Reduction, sides: tuple[Side, ...], metric: str, compute: Compute) -> Any:
    """Pick a kernel, plan tiles, run them, finish."""
    engine: TileEngine = compute.engine or Threads()
    rows, columns = _extent(sides[0])
    choice = choose(metric_named(metric), len(sides) * rows * columns, compute.kernel)
    plan = _plan(reduction, sides, choice.kernel, engine.workers, compute)
    if compute.explain:
        for reason in choice.reasons:
            compute.explain(f"kernel {reason}")
        compute.explain(f"tiles: {len(plan):,} of up to {plan.height} x {plan.width}; {plan.pairs:,} pairs")
    total = reduction.empty()
    job = TileJob(reduction, metric, choice.kernel.name, sides)
    engine.run(job, plan, lambda piece: reduction.absorb(total, piece), compute.progress)
    return reduction.finish(total)


def _plan(
    reduction: Reduction, sides: tuple[Side, ...], kernel: Kernel, workers: int, compute: Compute
) -> TilePlan:
    rows, columns = _extent(sides[0])
    a_pair, a_side = kernel.bytes_for(sides[0][0], _other(sides[0]))
    return plan_tiles(
        rows,
        columns,
        symmetric=sides[0][1] is None,
        memory=compute.memory,
        bytes_per_pair=a_pair * len(sides),
        bytes_per_side=a_side * len(sides) + reduction.bytes_per_row,
        workers=min(workers, kernel.threads or workers),
        largest=compute.tile or LARGEST_SIDE,
    )


def _side(X: Any, Y: Any, metric: str, *, allow_empty: bool = False) -> Side:
    x = as_rows(X)
    check_rows(x, metric_named(metric), allow_empty=allow_empty)
    if Y is None:
        return x, None
    y = as_rows(Y, "Y")
    check_rows(y, metric_named(metric), "Y", allow_empty=allow_empty)
    check_pair(x, y)
    return x, y


def _other(side: Side) -> Any:
    return side[0] if side[1] is None else side[1]


def _extent(side: Side) -> tuple[int, int]:
    return side[0].shape[0], _other(side).shape[0]


def _pairs(pairs: npt.ArrayLike, side: Side) -> tuple[Ints, Ints]:
    listed = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    for place, size in enumerate(_extent(side)):
        column = listed[:, place]
        if len(column) and not (column.min() >= 0 and column.max() < size):
            raise InputError(
                f"pairs: expected row numbers from 0 to {size - 1} in column {place}; "
                f"got {column.min()} to {column.max()}."
            )
    return listed[:, 0].copy(), listed[:, 1].copy()


def _finite(values: npt.ArrayLike, name: str) -> Floats:
    numbers = np.atleast_1d(np.array(values, dtype=np.float64))
    if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
        raise InputError(f"{name}: expected a list of finite numbers; got shape {numbers.shape}.")
    return rounded(numbers)


# One person changes: their row is computed again, nobody else's.


def update_ball_sizes(
    sizes: Ints,
    rows: Any,
    person: int,
    profile: Any,
    *,
    radii: npt.ArrayLike,
    include_self: bool = True,
    metric: str = "jensen-shannon",
    compute: Compute = DEFAULT,
) -> Ints:
    """Return everybody's ball sizes after one person's profile changed, without comparing the others again.

    `sizes` are the ball sizes of `rows` (X against itself) for these radii and `include_self`, before the
    change; `profile` is the person's new row. The result equals `ball_sizes(replace_row(rows, person,
    profile))`, at the cost of two rows of distances in place of all pairs.

    >>> X = np.eye(3)
    >>> before = ball_sizes(X, radii=[0.5])
    >>> update_ball_sizes(before, X, 0, [0.0, 1.0, 0.0], radii=[0.5]).ravel().tolist()
    [2, 2, 1]
    """
    x, new = as_rows(rows), as_rows(profile, "profile")
    _check(x, new, sizes, person, np.size(radii))
    options: dict[str, Any] = {"radii": radii, "metric": metric, "compute": compute}
    lost, won = ball_sizes(x, x[[person]], **options), ball_sizes(x, new, **options)
    lost[person], won[person] = 0, 0
    updated = np.asarray(sizes) - lost + won
    alone = ball_sizes(new, include_self=include_self, **options)
    updated[person] = won.sum(axis=0) + alone[0]
    return updated


def replace_row(rows: Any, person: int, profile: Any) -> sparse.csr_matrix:
    """Return the rows with one person's profile replaced."""
    x, new = as_rows(rows), as_rows(profile, "profile")
    return sparse.vstack([x[:person], new, x[person + 1 :]], format="csr")


def _check(x: sparse.csr_matrix, new: sparse.csr_matrix, sizes: Ints, person: int, radii: int) -> None:
    if not 0 <= person < x.shape[0]:
        raise InputError(f"person: expected a row number from 0 to {x.shape[0] - 1}; got {person}.")
    if new.shape != (1, x.shape[1]):
        raise InputError(f"profile: expected one row of {x.shape[1]} columns; got {new.shape}.")
    if np.shape(sizes) != (x.shape[0], radii):
        raise InputError(
            f"sizes: expected what ball_sizes returned for these rows and radii, shape "
            f"{(x.shape[0], radii)}; got {np.shape(sizes)}."
        )

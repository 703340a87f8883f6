"""How many people would fit on average: the paper's Monte-Carlo ground truth, computed exactly.

The pairs are counted once (:mod:`overlaps`); any number of knowledge levels is then a weighted sum of the
same histograms. Processor and graphics card count the same integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln

from incrowd.errors import InputError, MissingExtra
from incrowd.measures.microdata.definition import Floats, Ints, known_sizes
from incrowd.measures.microdata.overlaps import (
    OverlapHistograms,
    Postings,
    Progress,
    batches,
    clean,
    histograms,
    postings,
)
from incrowd.measures.microdata.spec import Knowledge

Device = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Marks:
    """Ratings or dates that have to agree: one row a property, aligned with the entries of a table."""

    profiles: NDArray[np.float32]
    crowd: NDArray[np.float32]
    within: tuple[float, ...]


@dataclass(frozen=True)
class Levels:
    """The knowledge levels of every profile size: sizes[starts[n]:starts[n + 1]] and their weights."""

    starts: Ints
    sizes: Ints
    weights: Floats
    wrong: int


def levels(profile_sizes: NDArray[np.int64], knowledge: Knowledge) -> Levels:
    """Tabulate the adversary's knowledge for the profile sizes that occur."""
    largest = int(profile_sizes.max(initial=0))
    lengths = np.zeros(largest + 2, dtype=np.int64)
    sizes, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
    for n in np.unique(profile_sizes):
        size, weight = known_sizes(int(n), knowledge)
        lengths[n + 1] = len(size)
        sizes.append(size)
        weights.append(weight)
    return Levels(np.cumsum(lengths), np.concatenate(sizes), np.concatenate(weights), knowledge.wrong)


def log_factorials(largest: int) -> Floats:
    """Return log(0!), log(1!), ..., log(largest!)."""
    return np.asarray(gammaln(np.arange(largest + 1) + 1.0))


def weigh(overlap: OverlapHistograms, knowledge: Knowledge) -> Floats:
    """Return the expected number of fitting people a histogram stands for, one a profile."""
    from incrowd.measures.microdata import overlaps_cpu as cpu

    sizes = np.diff(overlap.starts) - 1
    table = levels(sizes, knowledge)
    out = np.empty(len(sizes))
    cpu.weigh(overlap.starts, overlap.counts, table.starts, table.sizes, table.weights, table.wrong,
              log_factorials(int(sizes.max(initial=0))), out)  # fmt: skip
    return out


def leave_out_self(overlap: OverlapHistograms) -> OverlapHistograms:
    """Take each profile itself out of its histogram: it shares all of its items with itself."""
    counts = overlap.counts.copy()
    last = overlap.starts[1:] - 1
    if not np.all(counts[last]):
        raise InputError(
            "profiles: expected rows of the crowd, got one that nobody in the crowd has; use inside=False"
        )
    counts[last] -= 1
    return OverlapHistograms(overlap.starts, counts)


def expected_others(
    profiles: sparse.csr_matrix,
    crowd: sparse.csr_matrix,
    knowledge: Knowledge | Sequence[Knowledge],
    *,
    inside: bool = True,
    marks: Marks | None = None,
    memory: int = 2**30,
    device: Device = "cpu",
    progress: Progress | None = None,
) -> Floats:
    """Return E|AS| - 1: how many *other* people fit on average what the adversary knows of each profile.

    Exact. Range 0 to the size of the crowd; higher is safer; E|AS| itself is one more. One row a knowledge
    level if several are given. `inside`: the profiles are rows of the crowd (and do not count as their own
    company); False for people outside it. `marks`: ratings or dates that have to agree as well.
    """
    asked = [knowledge] if isinstance(knowledge, Knowledge) else list(knowledge)
    profiles = clean(profiles)
    if device == "gpu":
        if marks is not None:
            raise InputError("device: expected 'cpu' for an adversary who knows ratings or dates, got 'gpu'")
        out = _gpu().expected_others(profiles, clean(crowd), asked, inside=inside, progress=progress)
    else:
        out = np.empty((len(asked), profiles.shape[0]))
        laid = postings(crowd, None if marks is None else marks.crowd)
        for part, overlap in _in_batches(profiles, laid, marks, memory, progress):
            kept = leave_out_self(overlap) if inside else overlap
            out[:, part] = [weigh(kept, one) for one in asked]
    return np.asarray(out[0] if isinstance(knowledge, Knowledge) else out)


def _in_batches(
    profiles: sparse.csr_matrix, laid: Postings, marks: Marks | None, memory: int, progress: Progress | None
) -> Iterator[tuple[slice, OverlapHistograms]]:
    for part in batches(profiles, memory):
        if marks is None:
            yield part, histograms(profiles[part], laid)
        else:
            entries = slice(profiles.indptr[part.start], profiles.indptr[part.stop])
            yield (
                part,
                histograms(profiles[part], laid, marks=marks.profiles[:, entries], within=marks.within),
            )
        if progress:
            progress(part.stop, profiles.shape[0], "counting overlaps")


def _gpu() -> Any:
    try:
        import cupy  # noqa: F401
    except ImportError:
        raise MissingExtra("counting on a graphics card", "gpu") from None
    from incrowd.measures.microdata import overlaps_gpu

    return overlaps_gpu

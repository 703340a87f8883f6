"""The metrics as the GPU knows them, and how the CUDA sources (folder `cuda`) are compiled for one.

Every metric is a sum over the words two profiles share, so one set of kernels serves them all; a metric is a
handful of small macros:

==================  ==========================================================================
``TERM``            what one word adds where both profiles sit in a dense block (zero is ``TINY``)
``SHARED``          what one shared word adds where both profiles come from posting lists
``GAP``             from the sum over shared words to a number that is 0 for equal profiles
``DISTANCE``        from the gap to the distance, in single precision
``BAND``            how much an error of the gap can change the distance
``VALUE``           what a stored number means in the sums below
``EXACT``           what one word of the union adds to a sum that is exactly 0 for equal profiles
``OTHER``           the same for a second sum, where a metric needs one
``EXACT_DISTANCE``  from these sums to the distance, in double precision
==================  ==========================================================================

A tile of distances is made in three steps, each a kernel: ``dense_terms`` (frequent words, one logarithm a
term), ``listed_terms`` (all other words, posting lists against posting lists), ``finish`` (distance; pairs
whose single-precision value cannot be trusted are computed again in double precision, a warp a pair).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from itertools import chain
from types import SimpleNamespace
from typing import Any

from incrowd.distances.reductions import DECIMALS

TILE = 128
"""Rows and columns one thread block works on; panels are padded to a multiple of it."""
DEPTH = 16
"""Words of a dense block staged in shared memory at once."""
QUEUE = 512
"""Words two tiles share that are gathered before their lists are worked off."""
TINY = 1e-30
"""Stands for zero in a dense block: its logarithm is finite and its terms vanish."""
FIXED_POINT_BITS = 29
"""Posting-list terms are added as integers, so that the order of additions cannot change a result."""

_METRICS = {
    "jensen-shannon": """
        // x is stored as K p; f(Kp, Kq) = K f(p, q), so a power of two K near 1/p keeps logarithms small.
        #define TERM(acc, x, y) { const float s = (x) + (y); acc = fmaf(s, __log2f(s), acc); }
        #define SHARED(x, xlog, y, ylog) fmaf((x) + (y), __log2f((x) + (y)), -((xlog) + (ylog)))
        #define GAP(shared, mx, my) (0.5f * ((mx) + (my)) - 0.5f * (shared))
        #define DISTANCE(gap) sqrtf(fminf(fmaxf(gap, 0.0f), 1.0f))
        #define BAND(error, gap) (0.5f * (error) * rsqrtf(fmaxf(gap, 1e-6f)))
        #define VALUE(p, norm) (p)
        #define EXACT(x, y) (((x) > 0 ? (x) * log2(2 * (x) / ((x) + (y))) : 0.0) \\
                           + ((y) > 0 ? (y) * log2(2 * (y) / ((x) + (y))) : 0.0))
        #define EXACT_DISTANCE(sum, other) sqrt(fmin(fmax(0.5 * (sum), 0.0), 1.0))
    """,
    "total-variation": """
        #define TERM(acc, x, y) acc += fminf(x, y)
        #define SHARED(x, xlog, y, ylog) fminf(x, y)
        #define GAP(shared, mx, my) (0.5f * ((mx) + (my)) - (shared))
        #define DISTANCE(gap) fminf(fmaxf(gap, 0.0f), 1.0f)
        #define BAND(error, gap) (error)
        #define VALUE(p, norm) (p)
        #define EXACT(x, y) fabs((x) - (y))
        #define EXACT_DISTANCE(sum, other) fmin(0.5 * (sum), 1.0)
    """,
    "hellinger": """
        // x is stored as sqrt(p).
        #define TERM(acc, x, y) acc = fmaf(x, y, acc)
        #define SHARED(x, xlog, y, ylog) ((x) * (y))
        #define GAP(shared, mx, my) (0.5f * ((mx) + (my)) - (shared))
        #define DISTANCE(gap) sqrtf(fminf(fmaxf(gap, 0.0f), 1.0f))
        #define BAND(error, gap) (0.5f * (error) * rsqrtf(fmaxf(gap, 1e-6f)))
        #define VALUE(p, norm) sqrt(p)
        #define EXACT(x, y) (((x) - (y)) * ((x) - (y)))
        #define EXACT_DISTANCE(sum, other) sqrt(fmin(0.5 * (sum), 1.0))
    """,
    "angular-cosine": """
        // x is stored as p / |p|. The angle is 2 atan(|x - y| / |x + y|), also near 0.
        #define TERM(acc, x, y) acc = fmaf(x, y, acc)
        #define SHARED(x, xlog, y, ylog) ((x) * (y))
        #define GAP(shared, mx, my) (1.0f - (shared))
        #define DISTANCE(gap) (acosf(fminf(1.0f - (gap), 1.0f)) * 0.318309886f)
        #define BAND(error, gap) (0.318309886f * (error) * rsqrtf(fmaxf((gap) * (2.0f - (gap)), 1e-6f)))
        #define VALUE(p, norm) ((p) / (norm))
        #define EXACT(x, y) (((x) - (y)) * ((x) - (y)))
        #define OTHER(x, y) (((x) + (y)) * ((x) + (y)))
        #define EXACT_DISTANCE(sum, other) (2 * atan2(sqrt(sum), sqrt(other)) / 3.141592653589793)
    """,
}

METRICS = tuple(_METRICS)


_FILES = {
    "dense.cu": ("dense_terms",),
    "listed.cu": ("listed_terms",),
    "finish.cu": ("mirror", "finish", "exact_pairs"),
    "reduce.cu": ("count_between", "kth_smallest"),
}


def listed_shared_bytes() -> int:
    """Return the shared memory `listed_terms` needs: a tile of sums and the queue."""
    return TILE * TILE * 4 + QUEUE * 16


def source(metric: str) -> str:
    """Return the CUDA source of all kernels for one metric."""
    sizes = {"TILE": TILE, "DEPTH": DEPTH, "QUEUE": QUEUE, "DECIMALS": f"1e{DECIMALS}"}
    defined = "".join(f"#define {name} {size}\n" for name, size in sizes.items())
    macros = "\n".join(line.strip() for line in _METRICS[metric].splitlines())
    if "OTHER" not in macros:
        macros += "#define OTHER(x, y) 0.0\n"
    folder = files("incrowd.distances") / "cuda"
    return defined + macros + "\n".join((folder / name).read_text("utf-8") for name in _FILES)


@cache
def kernels(metric: str) -> Any:
    """Compile the kernels of one metric (once a process; CuPy keeps the binary on disk for the next one)."""
    import cupy

    module = cupy.RawModule(code=source(metric), options=("-std=c++17",))
    names = chain.from_iterable(_FILES.values())
    functions = SimpleNamespace(**{name: module.get_function(name) for name in names})
    functions.listed_terms.max_dynamic_shared_size_bytes = listed_shared_bytes()
    return functions

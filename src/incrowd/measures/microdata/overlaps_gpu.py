"""The graphics-card twin of :mod:`overlaps`: dense blocks, int8 matrix products, the same integers.

A block of profiles times a block of people is one matrix product on tensor cores (0/1 bytes in, exact 32-bit
counts out), turned into histograms where it lies. Blocks are made from the sparse table on the fly, so that
memory does not grow with the crowd. Needs NumPy, SciPy and CuPy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import cupy as cp
import numpy as np
from cupy.cuda import cublas
from scipy import sparse

from incrowd.arrays import Floats
from incrowd.measures.microdata.definition import Levels, levels, log_factorials
from incrowd.measures.microdata.overlaps import OverlapHistograms, Progress
from incrowd.measures.microdata.spec import Knowledge

INT8, INT32, COMPUTE_INT32 = 3, 10, 72  # cudaDataType_t and cublasComputeType_t
TENSOR_OP = 99
ALIGN = 64
MEMORY_SHARE = 0.6
"""Of the card's free memory, for blocks."""

_SOURCE = r"""
extern "C" {
__global__ void scatter(const long long* indptr, const int* indices, long long first, long long width,
                        signed char* block) {
    // One thread block a person: its items become ones in the person's row.
    long long row = blockIdx.x;
    for (long long e = indptr[first + row] + threadIdx.x; e < indptr[first + row + 1]; e += blockDim.x)
        block[row * width + indices[e]] = 1;
}

__global__ void count(const int* shared_items, long long people, long long stride, const long long* starts,
                      unsigned int* counts, int bins_fit) {
    // One thread block a profile: its row of overlaps goes into its histogram.
    extern __shared__ unsigned int bins[];
    const long long base = starts[blockIdx.x], size = starts[blockIdx.x + 1] - base;
    const int* row = shared_items + blockIdx.x * stride;
    unsigned int* into = bins_fit ? bins : counts + base;
    if (bins_fit) {
        for (long long b = threadIdx.x; b < size; b += blockDim.x) bins[b] = 0;
        __syncthreads();
    }
    // Zero is the commonest overlap: counting it in a register spares the atomics most of their work.
    unsigned int zeros = 0;
    for (long long p = threadIdx.x; p < people; p += blockDim.x) {
        const int overlap = row[p];
        if (overlap) atomicAdd(into + overlap, 1u); else ++zeros;
    }
    if (zeros) atomicAdd(into, zeros);
    if (!bins_fit) return;
    __syncthreads();
    for (long long b = threadIdx.x; b < size; b += blockDim.x) counts[base + b] += bins[b];
}

__global__ void weigh(const long long* starts, const unsigned int* counts, const long long* level_starts,
                      const long long* sizes, const double* weights, int wrong, int inside,
                      const double* lf, double* out) {
    // One thread block a profile: sum over overlaps o and levels s of count(o) weight(s) Pr(fits | o, s).
    __shared__ double parts[128];
    const long long base = starts[blockIdx.x], n = starts[blockIdx.x + 1] - base - 1;
    double total = 0;
    for (long long o = threadIdx.x; o <= n; o += blockDim.x) {
        const double people = (double)counts[base + o] - (inside && o == n ? 1 : 0);
        if (people == 0) continue;
        for (long long level = level_starts[n]; level < level_starts[n + 1]; ++level) {
            const long long s = sizes[level];
            double fits = 0;
            for (long long slips = 0; slips <= min((long long)wrong, s); ++slips)
                if (s - slips <= o && slips <= n - o)
                    fits += exp(lf[o] - lf[s - slips] - lf[o - s + slips] + lf[n - o] - lf[slips]
                                - lf[n - o - slips] - lf[n] + lf[s] + lf[n - s]);
            total += people * weights[level] * fmin(fits, 1.0);
        }
    }
    parts[threadIdx.x] = total;
    for (int half = 64; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = parts[0];
}
}
"""


class _Table:
    """A sparse 0/1 table on the card, cut into dense blocks on demand."""

    def __init__(self, matrix: sparse.csr_matrix, width: int) -> None:
        self.indptr = cp.asarray(matrix.indptr.astype(np.int64))
        self.indices = cp.asarray(matrix.indices.astype(np.int32, copy=False))
        self.rows, self.width = matrix.shape[0], width

    def block(self, first: int, rows: int, into: Any) -> Any:
        """Write rows first..first+rows as ones and zeros, then zeros up to an aligned height."""
        dense = into[: _aligned(rows)]
        dense.fill(0)
        _kernel("scatter")(
            (rows,), (128,), (self.indptr, self.indices, np.int64(first), np.int64(self.width), dense)
        )
        return dense


def _aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


@lru_cache(maxsize=1)
def _module() -> Any:
    return cp.RawModule(code=_SOURCE, options=("--std=c++14",))


def _kernel(name: str) -> Any:
    return _module().get_function(name)


def _counter() -> tuple[Any, int]:
    """Return the histogram kernel and the largest histogram (in bytes) it can keep in fast memory."""
    count = _kernel("count")
    count.max_dynamic_shared_size_bytes = cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    return count, count.max_dynamic_shared_size_bytes - 1024


def _multiply(people: Any, profiles: Any, out: Any) -> None:
    """Write profiles @ people.T (exact counts) into `out`, whose rows are `out.shape[1]` apart."""
    one, zero = np.array(1, np.int32), np.array(0, np.int32)
    width, stride = profiles.shape[1], out.shape[1]
    # cuBLAS is column-major: the rows we hold are its columns, so out.T = people @ profiles.T.
    cublas.gemmEx(
        cp.cuda.device.get_cublas_handle(), cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N,
        people.shape[0], profiles.shape[0], width, one.ctypes.data,
        people.data.ptr, INT8, width, profiles.data.ptr, INT8, width, zero.ctypes.data,
        out.data.ptr, INT32, stride, COMPUTE_INT32, TENSOR_OP,
    )  # fmt: skip


def _block_sizes(profiles: int, people: int, width: int) -> tuple[int, int]:
    """Choose how many profiles and people meet at a time, within the card's free memory."""
    free = MEMORY_SHARE * cp.cuda.Device().mem_info[0]
    rows, columns = min(16384, _aligned(profiles)), min(65536, _aligned(people))
    while rows * width + columns * width + 4 * rows * columns > free and max(rows, columns) > ALIGN:
        rows, columns = (
            (max(rows // 2, ALIGN), columns) if rows >= columns else (rows, max(columns // 2, ALIGN))
        )
    return _aligned(rows), _aligned(columns)


def _count(
    profiles: sparse.csr_matrix, crowd: sparse.csr_matrix, progress: Progress | None
) -> tuple[Any, Any]:
    """Count on the card; the profiles come sorted by size, so that a block's histograms are alike."""
    width = _aligned(profiles.shape[1])
    mine, theirs = _Table(profiles, width), _Table(crowd, width)
    host_starts = profiles.indptr.astype(np.int64) + np.arange(profiles.shape[0] + 1)
    starts = cp.asarray(host_starts)
    counts = cp.zeros(int(host_starts[-1]), dtype=cp.uint32)
    rows, columns = _block_sizes(mine.rows, theirs.rows, width)
    left, right = cp.empty((rows, width), cp.int8), cp.empty((columns, width), cp.int8)
    overlap, (count, room) = cp.empty((rows, columns), cp.int32), _counter()
    for first in range(0, mine.rows, rows):
        height = min(rows, mine.rows - first)
        block = mine.block(first, height, left)
        bins = 4 * int(np.diff(host_starts[first : first + height + 1]).max())
        fit = bins <= room
        for start in range(0, theirs.rows, columns):
            people = min(columns, theirs.rows - start)
            _multiply(theirs.block(start, people, right), block, overlap)
            arguments = (overlap, np.int64(people), np.int64(columns), starts[first:], counts, np.int32(fit))
            count((height,), (256,), arguments, shared_mem=bins if fit else 0)
        if progress:
            cp.cuda.Device().synchronize()
            progress(first + height, mine.rows, "counting overlaps on the graphics card")
    return starts, counts


def _weigh(starts: Any, counts: Any, table: Levels, largest: int, inside: bool) -> Floats:
    people = len(starts) - 1
    out = cp.empty(people)
    arguments = (
        starts, counts, cp.asarray(table.starts), cp.asarray(table.sizes), cp.asarray(table.weights),
        np.int32(table.wrong), np.int32(inside), cp.asarray(log_factorials(largest)), out,
    )  # fmt: skip
    _kernel("weigh")((people,), (128,), arguments)
    return np.asarray(cp.asnumpy(out))


def histograms(profiles: sparse.csr_matrix, crowd: sparse.csr_matrix) -> OverlapHistograms:
    """Return the same histograms as :func:`overlaps.histograms`."""
    starts, counts = _count(profiles, crowd, None)
    return OverlapHistograms(cp.asnumpy(starts), cp.asnumpy(counts))


def expected_others(
    profiles: sparse.csr_matrix,
    crowd: sparse.csr_matrix,
    knowledge: Sequence[Knowledge],
    *,
    inside: bool = True,
    progress: Progress | None = None,
) -> Floats:
    """Return :func:`anonymity_set.expected_others`, one row per knowledge level."""
    sizes = np.diff(profiles.indptr).astype(np.int64)
    order = np.argsort(-sizes, kind="stable")
    starts, counts = _count(profiles[order], crowd, progress)
    out = np.empty((len(knowledge), len(sizes)))
    for row, one in enumerate(knowledge):
        out[row, order] = _weigh(starts, counts, levels(sizes, one), int(sizes.max(initial=0)), inside)
    return out

"""The CUDA sources behind :mod:`incrowd.distances.gpu`, and how they are compiled.

Every metric the GPU knows is a sum over the words two profiles share, so one set of kernels serves them all;
a metric is four small macros:

=============  ==================================================================================
``TERM``       what one word adds where both profiles sit in a dense block (zeros are stored as ``TINY``)
``SHARED``     what one shared word adds where both profiles come from posting lists
``GAP``        from the sum over shared words to what `DISTANCE` takes; near 0 for equal profiles
``EXACT``      what one word of the union adds to a sum that is exactly 0 for equal profiles (double)
=============  ==================================================================================

A tile of distances is made in three steps, each a kernel: ``dense_terms`` (frequent words, one logarithm a
term), ``sparse_terms`` (all other words, posting lists against posting lists), ``finish`` (distance; pairs
whose single-precision value cannot be trusted are computed again in double precision, a warp a pair).
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

TILE = 128
"""Rows and columns one thread block works on; panels are padded to a multiple of it."""
DEPTH = 16
"""Words of a dense block staged in shared memory at once."""
QUEUE = 512
"""Words of the posting lists looked at before their shared ones are worked off."""
LANES = 8
"""Threads that share one word's posting lists."""
TINY = 1e-30
"""Stands for zero in a dense block: its logarithm is finite and its terms vanish."""
FIXED_POINT_BITS = 29
"""Posting-list terms are added as integers, so that the order of additions cannot change a result."""

_METRICS = {
    "jensen-shannon": """
        // x is stored as K p; f(Kp, Kq) = K f(p, q), so a power of two K near 1/p keeps logarithms small.
        #define TERM(acc, x, y) { const float s = (x) + (y); acc = fmaf(s, __log2f(s), acc); }
        #define SHARED(x, xlog, y, ylog) (fmaf((x) + (y), __log2f((x) + (y)), -(xlog)) - (ylog))
        #define GAP(shared, mx, my) (0.5f * ((mx) + (my)) - 0.5f * (shared))
        #define DISTANCE(gap) sqrtf(fminf(fmaxf(gap, 0.0f), 1.0f))
        #define VALUE(p, norm) (p)
        #define EXACT(x, y) (((x) > 0 ? (x) * log2(2 * (x) / ((x) + (y))) : 0.0) \\
                           + ((y) > 0 ? (y) * log2(2 * (y) / ((x) + (y))) : 0.0))
        #define EXACT_DISTANCE(sum) sqrt(fmin(fmax(0.5 * (sum), 0.0), 1.0))
    """,
    "total-variation": """
        #define TERM(acc, x, y) acc += fminf(x, y)
        #define SHARED(x, xlog, y, ylog) fminf(x, y)
        #define GAP(shared, mx, my) (0.5f * ((mx) + (my)) - (shared))
        #define DISTANCE(gap) fminf(fmaxf(gap, 0.0f), 1.0f)
        #define VALUE(p, norm) (p)
        #define EXACT(x, y) fabs((x) - (y))
        #define EXACT_DISTANCE(sum) fmin(0.5 * (sum), 1.0)
    """,
    "hellinger": """
        // x is stored as sqrt(p).
        #define TERM(acc, x, y) acc = fmaf(x, y, acc)
        #define SHARED(x, xlog, y, ylog) ((x) * (y))
        #define GAP(shared, mx, my) (0.5f * ((mx) + (my)) - (shared))
        #define DISTANCE(gap) sqrtf(fminf(fmaxf(gap, 0.0f), 1.0f))
        #define VALUE(p, norm) sqrt(p)
        #define EXACT(x, y) (((x) - (y)) * ((x) - (y)))
        #define EXACT_DISTANCE(sum) sqrt(fmin(0.5 * (sum), 1.0))
    """,
    "angular-cosine": """
        // x is stored as p / |p|. For unit vectors the angle is 2 asin(|x - y| / 2), exact near zero.
        #define TERM(acc, x, y) acc = fmaf(x, y, acc)
        #define SHARED(x, xlog, y, ylog) ((x) * (y))
        #define GAP(shared, mx, my) (1.0f - (shared))
        #define DISTANCE(gap) (acosf(fminf(1.0f - (gap), 1.0f)) * 0.318309886f)
        #define VALUE(p, norm) ((p) / (norm))
        #define EXACT(x, y) (((x) - (y)) * ((x) - (y)))
        #define EXACT_DISTANCE(sum) (asin(fmin(0.5 * sqrt(sum), 1.0)) * 0.6366197723675814)
    """,
}

METRICS = tuple(_METRICS)

_DENSE = r"""
// Sum TERM over the words of two dense blocks, laid out word by word: X[word][row], Y[word][column].
extern "C" __global__ void __launch_bounds__(256)
dense_terms(const float4* X, const float4* Y, int ldx, int ldy, int words,
            const float* x_less, const float* y_less, float unit, int first, int triangular,
            float* out, long long ldo)
{
    if (triangular && blockIdx.x < blockIdx.y) return;
    __shared__ float4 sx[2][DEPTH * 32], sy[2][DEPTH * 32];
    const int t = threadIdx.x, tx = t & 15, ty = t >> 4;
    const int k0 = t >> 5, c = t & 31;             // this thread stages words k0 and k0 + 8
    X += blockIdx.y * 32; Y += blockIdx.x * 32;
    float acc[8][8];
    #pragma unroll
    for (int a = 0; a < 8; ++a)
        #pragma unroll
        for (int b = 0; b < 8; ++b) acc[a][b] = 0.0f;

    float4 rx[2], ry[2];
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
        rx[h] = X[(long long)(k0 + 8 * h) * ldx + c];
        ry[h] = Y[(long long)(k0 + 8 * h) * ldy + c];
    }
    int stage = 0;
    for (int base = 0; base < words; base += DEPTH) {
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
            sx[stage][(k0 + 8 * h) * 32 + c] = rx[h];
            sy[stage][(k0 + 8 * h) * 32 + c] = ry[h];
        }
        __syncthreads();
        if (base + DEPTH < words) {
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                rx[h] = X[(long long)(base + DEPTH + k0 + 8 * h) * ldx + c];
                ry[h] = Y[(long long)(base + DEPTH + k0 + 8 * h) * ldy + c];
            }
        }
        #pragma unroll 4
        for (int k = 0; k < DEPTH; ++k) {
            const float4 x0 = sx[stage][k * 32 + ty], x1 = sx[stage][k * 32 + 16 + ty];
            const float4 y0 = sy[stage][k * 32 + tx], y1 = sy[stage][k * 32 + 16 + tx];
            const float x[8] = {x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w};
            const float y[8] = {y0.x, y0.y, y0.z, y0.w, y1.x, y1.y, y1.z, y1.w};
            #pragma unroll
            for (int a = 0; a < 8; ++a)
                #pragma unroll
                for (int b = 0; b < 8; ++b) TERM(acc[a][b], x[a], y[b]);
        }
        stage ^= 1;
    }
    #pragma unroll
    for (int a = 0; a < 8; ++a) {
        const int row = blockIdx.y * 128 + (a >> 2) * 64 + ty * 4 + (a & 3);
        const float less_x = x_less[row];
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int column = blockIdx.x * 128 + half * 64 + tx * 4;
            float4* place = (float4*)(out + row * ldo + column);
            const float4 less = *(const float4*)(y_less + column);
            float4 sum = first ? make_float4(0, 0, 0, 0) : *place;
            sum.x += (acc[a][4 * half + 0] - less_x - less.x) * unit;
            sum.y += (acc[a][4 * half + 1] - less_x - less.y) * unit;
            sum.z += (acc[a][4 * half + 2] - less_x - less.z) * unit;
            sum.w += (acc[a][4 * half + 3] - less_x - less.w) * unit;
            *place = sum;
        }
    }
}
"""

_SPARSE = r"""
// Add SHARED over the words of two tiles' posting lists. starts[tile * words + word] is where a list begins;
// an entry holds (x, x log2 x, row within the tile).
extern "C" __global__ void __launch_bounds__(256)
sparse_terms(const float4* x_entries, const int* x_starts, const float4* y_entries, const int* y_starts,
             int words, float to_fixed, float from_fixed, int triangular, float* out, long long ldo)
{
    if (triangular && blockIdx.x < blockIdx.y) return;
    extern __shared__ int sums[];                  // TILE x TILE, then the queue
    int4* queue = (int4*)(sums + TILE * TILE);
    __shared__ int queued;
    const int t = threadIdx.x;
    x_starts += (long long)blockIdx.y * words;
    y_starts += (long long)blockIdx.x * words;
    for (int k = t; k < TILE * TILE; k += 256) sums[k] = 0;

    for (int base = 0; base < words; base += QUEUE) {
        __syncthreads();
        if (t == 0) queued = 0;
        __syncthreads();
        const int end = min(base + QUEUE, words);
        for (int word = base + t; word < end; word += 256) {
            const int a = x_starts[word], n = x_starts[word + 1] - a;
            const int b = y_starts[word], m = y_starts[word + 1] - b;
            if (n && m) queue[atomicAdd(&queued, 1)] = make_int4(a, n, b, m);
        }
        __syncthreads();
        for (int item = t / LANES; item < queued; item += 256 / LANES) {
            const int4 lists = queue[item];
            const float4* x_list = x_entries + lists.x;
            const float4* y_list = y_entries + lists.z;
            for (int j = t % LANES; j < lists.w; j += LANES) {
                const float4 y = y_list[j];
                int* column = sums + __float_as_int(y.z);
                #pragma unroll 4
                for (int i = 0; i < lists.y; ++i) {
                    const float4 x = __ldg(x_list + i);
                    const float term = SHARED(x.x, x.y, y.x, y.y);
                    atomicAdd(column + __float_as_int(x.z) * TILE, __float2int_rn(term * to_fixed));
                }
            }
        }
    }
    __syncthreads();
    out += (long long)blockIdx.y * TILE * ldo + blockIdx.x * TILE;
    for (int k = t; k < TILE * TILE; k += 256) out[(k / TILE) * ldo + k % TILE] += sums[k] * from_fixed;
}
"""

_FINISH = r"""
// Copy the upper tiles of a square onto the lower ones.
extern "C" __global__ void mirror(float* out, long long ldo, int rows)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j < rows && j / TILE < i / TILE) out[i * ldo + j] = out[j * ldo + i];
}

// Rows as they came: words[starts[i]..] in rising order, their values, their norms; `first` numbers row 0.
struct Rows {
    const long long* starts; const int* words; const double* values; const double* norms; int first;
};
#define ROWS(side) const long long* side##_starts, const int* side##_words, const double* side##_values, \
                   const double* side##_norms, int side##_first
#define AS_ROWS(side) Rows{side##_starts, side##_words, side##_values, side##_norms, side##_first}

__device__ int find(const int* words, int count, int key)
{
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) >> 1;
        if (words[middle] < key) low = middle + 1; else high = middle;
    }
    return low;
}

// One pair's distance in double precision, over the union of its words; all 32 threads of a warp work on it.
// The row with the lower number goes first, so that both orders of a pair give the same bits.
__device__ double exact_distance(Rows X, int i, Rows Y, int j)
{
    if (X.first + i > Y.first + j) {
        const Rows rows = X; X = Y; Y = rows;
        const int row = i; i = j; j = row;
    }
    const int lane = threadIdx.x & 31;
    const long long a = X.starts[i], b = Y.starts[j];
    const int n = (int)(X.starts[i + 1] - a), m = (int)(Y.starts[j + 1] - b);
    double sum = 0;
    for (int k = lane; k < n; k += 32) {
        const int word = X.words[a + k], at = find(Y.words + b, m, word);
        const double x = VALUE(X.values[a + k], X.norms[i]);
        const double y = at < m && Y.words[b + at] == word ? VALUE(Y.values[b + at], Y.norms[j]) : 0.0;
        sum += EXACT(x, y);
    }
    for (int k = lane; k < m; k += 32) {
        const int word = Y.words[b + k], at = find(X.words + a, n, word);
        const double x = 0.0, y = VALUE(Y.values[b + k], Y.norms[j]);
        if (at == n || X.words[a + at] != word) sum += EXACT(x, y);
    }
    for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
    return n && m ? EXACT_DISTANCE(sum) : __longlong_as_double(0x7ff8000000000000ll);
}

// The first of the sorted edges that is at least `value`.
__device__ int first_from(const double* edges, int count, double value)
{
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) >> 1;
        if (edges[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
}

// Round to single precision without changing sides: an exact distance within `slack` of an edge becomes the
// (rounded) edge, one below stays below it, one above stays above.
__device__ float beside_edges(double exact, const double* edges, int count, double slack)
{
    float rounded = (float)exact;
    const int at = first_from(edges, count, exact - slack);
    if (at < count) {
        const float edge = (float)edges[at];
        if (exact >= edges[at] - slack) return edge;
        if (rounded >= edge) return nextafterf(edge, -1.0f);
    }
    if (at > 0 && rounded <= (float)edges[at - 1]) return nextafterf((float)edges[at - 1], 2.0f);
    return rounded;
}

// Turn sums over shared words into distances, in place. Pairs whose gap is below `trust` (where a small error
// of the sum is a large one of the distance) or within `band` of an edge are computed again exactly.
// own_edges: row i has the one edge edges[i]; otherwise all rows share edges[0..count). diagonal: row i is
// column i, the same person.
extern "C" __global__ void finish(float* out, long long ldo, int columns,
                                  const float* x_mass, const float* y_mass, float trust, double band,
                                  const double* edges, int count, int own_edges, double slack, int diagonal,
                                  ROWS(x), ROWS(y), unsigned long long* recomputed)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y, lane = threadIdx.x & 31;
    if (own_edges) edges += i;
    bool doubtful = false;
    float distance = __int_as_float(0x7fc00000);
    if (j < columns && x_mass[i] > 0 && y_mass[j] > 0) {
        const float gap = GAP(out[i * ldo + j], x_mass[i], y_mass[j]);
        distance = DISTANCE(gap);
        const int at = first_from(edges, count, distance - band);
        doubtful = gap < trust || (at < count && edges[at] <= distance + band);
        if (diagonal && i == j) { distance = 0.0f; doubtful = false; }
    }
    unsigned todo = __ballot_sync(~0u, doubtful);
    if (todo && lane == 0) atomicAdd(recomputed, (unsigned long long)__popc(todo));
    while (todo) {
        const int turn = __ffs(todo) - 1;
        todo &= todo - 1;
        const double exact = exact_distance(AS_ROWS(x), i, AS_ROWS(y), j - lane + turn);
        if (lane == turn) distance = beside_edges(exact, edges, count, slack);
    }
    if (j < columns) out[i * ldo + j] = distance;
}

// The distances of listed pairs in double precision.
extern "C" __global__ void exact_pairs(ROWS(x), ROWS(y), const int* rows, const int* columns,
                                       long long pairs, double* distances)
{
    const long long pair = ((long long)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    if (pair >= pairs) return;
    const double distance = exact_distance(AS_ROWS(x), rows[pair], AS_ROWS(y), columns[pair]);
    if ((threadIdx.x & 31) == 0) distances[pair] = distance;
}
"""

_REDUCE = r"""
// Row by row, how many distances fall between one sorted edge and the next (the last bin: beyond all edges).
extern "C" __global__ void count_between(const float* distances, long long ldo, int columns,
                                         const double* edges, int count, int* bins)
{
    extern __shared__ int row_bins[];
    float* known = (float*)(row_bins + count + 1);
    for (int k = threadIdx.x; k <= count; k += blockDim.x) row_bins[k] = 0;
    for (int k = threadIdx.x; k < count; k += blockDim.x) known[k] = (float)edges[k];
    __syncthreads();
    const float* row = distances + blockIdx.x * ldo;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) {
        const float distance = row[j];
        int low = 0, high = count;                 // the first edge that is not below the distance
        while (low < high) {
            const int middle = (low + high) >> 1;
            if (known[middle] < distance) low = middle + 1; else high = middle;
        }
        if (distance == distance) atomicAdd(row_bins + low, 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k <= count; k += blockDim.x)
        bins[(long long)blockIdx.x * (count + 1) + k] = row_bins[k];
}

// Row by row, the k-th smallest distance (infinity if there are fewer): bisection over the bits of a float,
// which sort like the non-negative numbers they stand for.
extern "C" __global__ void kth_smallest(const float* distances, long long ldo, int columns, int k, float* kth)
{
    __shared__ int below;
    const float* row = distances + blockIdx.x * ldo;
    unsigned low = 0, high = 0x7f800000u;
    while (low < high) {
        const unsigned middle = (low + high) >> 1;
        if (threadIdx.x == 0) below = 0;
        __syncthreads();
        int mine = 0;
        for (int j = threadIdx.x; j < columns; j += blockDim.x)
            mine += __float_as_uint(row[j]) <= middle;
        for (int step = 16; step; step >>= 1) mine += __shfl_xor_sync(~0u, mine, step);
        if ((threadIdx.x & 31) == 0 && mine) atomicAdd(&below, mine);
        __syncthreads();
        if (below >= k) high = middle; else low = middle + 1;
        __syncthreads();
    }
    if (threadIdx.x == 0) kth[blockIdx.x] = __uint_as_float(low);
}
"""


def source(metric: str) -> str:
    """Return the CUDA source of all kernels for one metric."""
    sizes = f"#define TILE {TILE}\n#define DEPTH {DEPTH}\n#define QUEUE {QUEUE}\n#define LANES {LANES}\n"
    macros = "\n".join(line.strip() for line in _METRICS[metric].splitlines())
    return sizes + macros + _DENSE + _SPARSE + _FINISH + _REDUCE


SPARSE_SHARED_BYTES = TILE * TILE * 4 + QUEUE * 16
_NAMES = ("dense_terms", "sparse_terms", "mirror", "finish", "exact_pairs", "count_between", "kth_smallest")


@cache
def kernels(metric: str) -> Any:
    """Compile the kernels of one metric (once a process; CuPy keeps the binary on disk for the next one)."""
    import cupy

    module = cupy.RawModule(code=source(metric), options=("-std=c++17",))
    functions = SimpleNamespace(**{name: module.get_function(name) for name in _NAMES})
    functions.sparse_terms.max_dynamic_shared_size_bytes = SPARSE_SHARED_BYTES
    return functions

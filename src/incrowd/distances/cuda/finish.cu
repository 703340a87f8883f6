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

// One pair's distance in double precision, over the union of its words, rounded as all distances are that meet
// a threshold; all 32 threads of a warp work on it.
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
    double sum = 0, other = 0;
    for (int k = lane; k < n; k += 32) {
        const int word = X.words[a + k], at = find(Y.words + b, m, word);
        const double x = VALUE(X.values[a + k], X.norms[i]);
        const double y = at < m && Y.words[b + at] == word ? VALUE(Y.values[b + at], Y.norms[j]) : 0.0;
        sum += EXACT(x, y);
        other += OTHER(x, y);
    }
    for (int k = lane; k < m; k += 32) {
        const int word = Y.words[b + k], at = find(X.words + a, n, word);
        const double x = 0.0, y = VALUE(Y.values[b + k], Y.norms[j]);
        if (at == n || X.words[a + at] != word) { sum += EXACT(x, y); other += OTHER(x, y); }
    }
    for (int step = 16; step; step >>= 1) {
        sum += __shfl_xor_sync(~0u, sum, step);
        other += __shfl_xor_sync(~0u, other, step);
    }
    if (!n || !m) return __longlong_as_double(0x7ff8000000000000ll);  // NaN: nobody is like an empty profile
    return rint(EXACT_DISTANCE(sum, other) * DECIMALS) / DECIMALS;
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

// Turn an exact distance into single precision without changing sides: one that equals an edge becomes the
// edge in single precision, one below stays below it, one above stays above.
__device__ float beside_edges(double exact, const double* edges, int count)
{
    const float single = (float)exact;
    const int at = first_from(edges, count, exact);
    if (at < count && exact == edges[at]) return (float)edges[at];
    if (at < count && single >= (float)edges[at]) return nextafterf((float)edges[at], -1.0f);
    if (at > 0 && single <= (float)edges[at - 1]) return nextafterf((float)edges[at - 1], 2.0f);
    return single;
}

// Turn sums over shared words into distances, in place. Pairs whose gap is below `trust` (where a small error
// of the sum is a large one of the distance), or that an error of `gap_error` could move across an edge, are
// computed again exactly.
// own_edges: row i has the one edge edges[i]; otherwise all rows share edges[0..count). diagonal: row i is
// column i, the same person.
extern "C" __global__ void finish(float* out, long long ldo, int columns,
                                  const float* x_mass, const float* y_mass, float trust, float gap_error,
                                  const double* edges, int count, int own_edges, int diagonal,
                                  ROWS(x), ROWS(y), unsigned long long* recomputed)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y, lane = threadIdx.x & 31;
    if (own_edges) edges += i;
    bool doubtful = false;
    float distance = __int_as_float(0x7fc00000);
    if (j < columns && x_mass[i] > 0 && y_mass[j] > 0) {
        const float gap = GAP(out[i * ldo + j], x_mass[i], y_mass[j]);
        distance = DISTANCE(gap);
        const double band = BAND(gap_error, gap);
        const int at = first_from(edges, count, distance - band);
        doubtful = gap < trust || (at < count && edges[at] <= distance + band);
        if (diagonal && i == j) { distance = beside_edges(0.0, edges, count); doubtful = false; }
    }
    unsigned todo = __ballot_sync(~0u, doubtful);
    if (todo && lane == 0) atomicAdd(recomputed, (unsigned long long)__popc(todo));
    while (todo) {
        const int turn = __ffs(todo) - 1;
        todo &= todo - 1;
        const double exact = exact_distance(AS_ROWS(x), i, AS_ROWS(y), j - lane + turn);
        if (lane == turn) distance = beside_edges(exact, edges, count);
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

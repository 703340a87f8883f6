// Add SHARED over the words of two tiles' posting lists. starts[tile * words + word] is where a list begins;
// an entry holds (x, x log2 x, row within the tile).
extern "C" __global__ void __launch_bounds__(256)
listed_terms(const float4* x_entries, const int* x_starts, const float4* y_entries, const int* y_starts,
             int words, float to_fixed, float from_fixed, int triangular, float* out, long long ldo)
{
    if (triangular && blockIdx.x < blockIdx.y) return;
    extern __shared__ int sums[];                  // TILE x TILE, then the queue
    int4* queue = (int4*)(sums + TILE * TILE);
    __shared__ int queued, reach;                  // words waiting, and the length of their lists together
    const int t = threadIdx.x;
    x_starts += (long long)blockIdx.y * words;
    y_starts += (long long)blockIdx.x * words;
    for (int k = t; k < TILE * TILE; k += 256) sums[k] = 0;

    if (t == 0) queued = reach = 0;
    __syncthreads();
    int waiting = 0;                               // what `queued` is, known without reading it too early
    for (int base = 0; base < words; base += 256) {
        const int word = base + t;
        bool shared = false;
        if (word < words) {
            const int a = x_starts[word], n = x_starts[word + 1] - a;
            const int b = y_starts[word], m = y_starts[word + 1] - b;
            shared = n && m;
            if (shared) { queue[atomicAdd(&queued, 1)] = make_int4(a, n, b, m); atomicAdd(&reach, m); }
        }
        waiting += __syncthreads_count(shared);
        if (waiting + 256 <= QUEUE && base + 256 < words) continue;
        // 1, 2, 4 or 8 threads share a word: as many as its list is long, on average.
        const int shift = min(3, 31 - __clz(max(reach / max(waiting, 1), 1)));
        const int lanes = 1 << shift;
        for (int item = t >> shift; item < waiting; item += 256 >> shift) {
            const int4 lists = queue[item];
            const float4* x_list = x_entries + lists.x;
            const float4* y_list = y_entries + lists.z;
            for (int j = t & (lanes - 1); j < lists.w; j += lanes) {
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
        __syncthreads();
        if (t == 0) queued = reach = 0;
        waiting = 0;
        __syncthreads();
    }
    __syncthreads();
    out += (long long)blockIdx.y * TILE * ldo + blockIdx.x * TILE;
    for (int k = t; k < TILE * TILE; k += 256) out[(k / TILE) * ldo + k % TILE] += sums[k] * from_fixed;
}

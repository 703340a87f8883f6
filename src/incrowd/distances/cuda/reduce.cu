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

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
            sum.x += (acc[a][4 * half + 0] - (less_x + less.x)) * unit;
            sum.y += (acc[a][4 * half + 1] - (less_x + less.y)) * unit;
            sum.z += (acc[a][4 * half + 2] - (less_x + less.z)) * unit;
            sum.w += (acc[a][4 * half + 3] - (less_x + less.w)) * unit;
            *place = sum;
        }
    }
}

// Residual add and RMS normalisation, one block per token.
// residual[t, :] += x[t, :];  out[t, :] = residual[t, :] * rsqrt(mean(residual[t, :]^2) + eps) * weight
#include <cuda_fp16.h>

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

__inline__ __device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, offset);
  }
  return value;
}

__global__ void __launch_bounds__(THREADS)
add_rms_norm_kernel(__half* __restrict__ out, const __half* __restrict__ x, __half* __restrict__ residual,
                    const __half* __restrict__ weight, int hidden, float eps) {
  __shared__ float partial[WARPS];
  __shared__ float inverse_rms;

  const size_t row = static_cast<size_t>(blockIdx.x) * hidden;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += THREADS) {
    const float sum = __half2float(x[row + i]) + __half2float(residual[row + i]);
    residual[row + i] = __float2half_rn(sum);
    squares += sum * sum;
  }

  squares = warp_sum(squares);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = squares;
  __syncthreads();

  if (threadIdx.x < 32) {
    float total = threadIdx.x < WARPS ? partial[threadIdx.x] : 0.0f;
    total = warp_sum(total);
    if (threadIdx.x == 0) inverse_rms = rsqrtf(total / hidden + eps);
  }
  __syncthreads();

  for (int i = threadIdx.x; i < hidden; i += THREADS) {
    const float value = __half2float(residual[row + i]) * inverse_rms;
    out[row + i] = __float2half_rn(value * __half2float(weight[i]));
  }
}

void add_rms_norm(__half* out, const __half* x, __half* residual, const __half* weight, int tokens, int hidden,
                  float eps, cudaStream_t stream) {
  add_rms_norm_kernel<<<tokens, THREADS, 0, stream>>>(out, x, residual, weight, hidden, eps);
}

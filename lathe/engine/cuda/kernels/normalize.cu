// layer_norm and rms_norm and their gradients: a warp for each row, and sums over rows by chunks.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kRowsOfBlock = kThreads / kWarp;
constexpr int kColumns = 32, kRowLanes = 8;

struct Statistics {
  float mean, rate;  // rate: the reciprocal deviation
};

template <typename Load>
__device__ Statistics statistics_of(std::int64_t n, float eps, bool is_rms, Load load) {
  const int lane = threadIdx.x % kWarp;
  const float count = static_cast<float>(n);
  float mean = 0;
  if (!is_rms) {
    float sum = 0;
    for (std::int64_t i = lane; i < n; i += kWarp) sum += load(i);
    mean = join_warp(sum, Add()) / count;
  }
  float squares = 0;
  for (std::int64_t i = lane; i < n; i += kWarp) {
    const float centred = load(i) - mean;
    squares = fmaf(centred, centred, squares);
  }
  squares = join_warp(squares, Add()) / count;
  return {mean, 1.0f / sqrtf(squares + eps)};
}

__global__ void normalize_kernel(NormalizeArgs args) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t real = real_size(args.rows);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kRowsOfBlock;
  for (std::int64_t row =
           static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kWarp;
       row < args.rows.capacity; row += stride) {
    float* const y = args.y + row * args.n;
    if (row >= real) {
      for (std::int64_t i = lane; i < args.n; i += kWarp) y[i] = 0;
      continue;
    }
    const float* const x = args.x + row * args.n;
    const float* const residual = args.residual == nullptr ? nullptr : args.residual + row * args.n;
    const auto load = [&](std::int64_t i) {
      return residual == nullptr ? x[i] : x[i] + residual[i];
    };
    const Statistics s = statistics_of(args.n, args.eps, args.is_rms, load);
    for (std::int64_t i = lane; i < args.n; i += kWarp) {
      const float scaled = (load(i) - s.mean) * s.rate;
      y[i] =
          args.beta == nullptr ? scaled * args.gamma[i] : fmaf(scaled, args.gamma[i], args.beta[i]);
    }
  }
}

// dx = rate * (g - mean(g) - h * mean(g * h)) with g = dy * gamma; rms has no mean(g).
__global__ void normalize_gradient_kernel(NormalizeGradientArgs args) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t real = real_size(args.rows);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kRowsOfBlock;
  const float count = static_cast<float>(args.n);
  for (std::int64_t row =
           static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kWarp;
       row < args.rows.capacity; row += stride) {
    float* const dx = args.dx + row * args.n;
    if (row >= real) {
      for (std::int64_t i = lane; i < args.n; i += kWarp) dx[i] = 0;
      continue;
    }
    const float* const x = args.x + row * args.n;
    const float* const dy = args.dy + row * args.n;
    const Statistics s =
        statistics_of(args.n, args.eps, args.is_rms, [&](std::int64_t i) { return x[i]; });
    float sum_g = 0, sum_gh = 0;
    for (std::int64_t i = lane; i < args.n; i += kWarp) {
      const float g = dy[i] * args.gamma[i];
      sum_g += g;
      sum_gh = fmaf(g, (x[i] - s.mean) * s.rate, sum_gh);
    }
    const float mean_g = args.is_rms ? 0.0f : join_warp(sum_g, Add()) / count;
    const float mean_gh = join_warp(sum_gh, Add()) / count;
    for (std::int64_t i = lane; i < args.n; i += kWarp) {
      const float h = (x[i] - s.mean) * s.rate;
      dx[i] = s.rate * (dy[i] * args.gamma[i] - mean_g - h * mean_gh);
    }
    if (lane == 0) {
      args.statistics[2 * row] = s.mean;
      args.statistics[2 * row + 1] = s.rate;
    }
  }
}

// As sum_rows: the sums of dy * h and of dy over a chunk of rows.
__global__ void parameter_sums_kernel(NormalizeGradientArgs args) {
  __shared__ double gammas[kRowLanes][kColumns], betas[kRowLanes][kColumns];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  const std::int64_t chunk = rows_of_chunk(args.rows.capacity);
  const std::int64_t first = blockIdx.y * chunk, real = real_size(args.rows);
  const std::int64_t end = first + chunk < real ? first + chunk : real;
  double gamma = 0, beta = 0;
  if (column < args.n)
    for (std::int64_t row = first + threadIdx.y; row < end; row += kRowLanes) {
      const float dy = args.dy[row * args.n + column];
      const float h =
          (args.x[row * args.n + column] - args.statistics[2 * row]) * args.statistics[2 * row + 1];
      gamma += static_cast<double>(dy) * static_cast<double>(h);
      beta += static_cast<double>(dy);
    }
  gammas[threadIdx.y][threadIdx.x] = gamma;
  betas[threadIdx.y][threadIdx.x] = beta;
  __syncthreads();
  if (threadIdx.y != 0 || column >= args.n) return;
  for (int lane = 1; lane < kRowLanes; ++lane) {
    gamma += gammas[lane][threadIdx.x];
    beta += betas[lane][threadIdx.x];
  }
  double* const sums = args.scratch + 2 * static_cast<std::int64_t>(blockIdx.y) * args.n;
  sums[column] = gamma;
  sums[args.n + column] = beta;
}

__global__ void add_parameter_sums_kernel(NormalizeGradientArgs args, std::int64_t chunks) {
  const std::int64_t column = global_thread();
  if (column >= args.n) return;
  double gamma = 0, beta = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    gamma += args.scratch[2 * chunk * args.n + column];
    beta += args.scratch[(2 * chunk + 1) * args.n + column];
  }
  args.dgamma[column] = static_cast<float>(gamma);
  if (args.dbeta != nullptr) args.dbeta[column] = static_cast<float>(beta);
}

}  // namespace

void normalize(const NormalizeArgs& args, Stream* stream) {
  if (args.rows.capacity == 0 || args.n == 0) return;
  normalize_kernel<<<blocks_for(args.rows.capacity, kRowsOfBlock), kThreads, 0,
                     stream_of(stream)>>>(args);
}

void normalize_gradient(const NormalizeGradientArgs& args, Stream* stream) {
  if (args.n == 0) return;
  if (args.rows.capacity != 0)
    normalize_gradient_kernel<<<blocks_for(args.rows.capacity, kRowsOfBlock), kThreads, 0,
                                stream_of(stream)>>>(args);
  const std::int64_t chunks = num_row_chunks(args.rows.capacity);
  const dim3 grid(blocks_for(args.n, kColumns, 1 << 30), static_cast<unsigned>(chunks));
  parameter_sums_kernel<<<grid, dim3(kColumns, kRowLanes), 0, stream_of(stream)>>>(args);
  add_parameter_sums_kernel<<<blocks_for(args.n, kThreads, 1 << 30), kThreads, 0,
                              stream_of(stream)>>>(args, chunks);
}

}  // namespace lathe::engine::cuda

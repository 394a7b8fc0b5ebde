// Sums, means and maxima, in an order that follows from the sizes alone.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kColumns = 32, kRowLanes = 8;

__device__ std::int64_t inner_size(const ReduceArgs& args) {
  std::int64_t size = 1;
  for (int axis = 1; axis < args.reduced_rank; ++axis) size *= args.reduced_dims[axis];
  return size;
}

// One block of threads for each result.
__global__ void reduce_kernel(ReduceArgs args) {
  __shared__ double sums[kWarp];
  __shared__ float largest[kWarp];
  const std::int64_t real = real_size(args.count);
  const std::int64_t total = real_size(args.outer_axis) * inner_size(args);
  for (std::int64_t result = blockIdx.x; result < args.count.capacity; result += gridDim.x) {
    if (result >= real) {
      if (threadIdx.x == 0) args.y[result] = 0;
      continue;
    }
    const float* const x = args.x + place_of(result, args.rank, args.dims, args.walk);
    double sum = 0;
    float most = -INFINITY;
    for (std::int64_t i = threadIdx.x; i < total; i += blockDim.x) {
      const float value = x[place_of(i, args.reduced_rank, args.reduced_dims, args.reduced_walk)];
      sum += static_cast<double>(value);
      most = Larger()(most, value);
    }
    if (args.reduction == Reduction::Max) {
      most = join_block(most, -INFINITY, largest, Larger());
    } else {
      sum = join_block(sum, 0.0, sums, Add());
      if (args.reduction == Reduction::Mean) sum /= static_cast<double>(total);
    }
    if (threadIdx.x == 0)
      args.y[result] = args.reduction == Reduction::Max ? most : static_cast<float>(sum);
  }
}

__global__ void max_gradient_kernel(MaxGradientArgs args) {
  __shared__ float largest[kWarp];
  __shared__ double counts[kWarp];
  const ReduceArgs& reduce = args.reduce;
  const std::int64_t real = real_size(reduce.count), inner = inner_size(reduce);
  const std::int64_t total = real_size(reduce.outer_axis) * inner;
  const std::int64_t all = reduce.outer_axis.capacity * inner;
  for (std::int64_t result = blockIdx.x; result < reduce.count.capacity; result += gridDim.x) {
    const std::int64_t first = place_of(result, reduce.rank, reduce.dims, reduce.walk);
    const std::int64_t seen = result < real ? total : 0;
    const auto place = [&](std::int64_t i) {
      return first + place_of(i, reduce.reduced_rank, reduce.reduced_dims, reduce.reduced_walk);
    };
    float most = -INFINITY;
    for (std::int64_t i = threadIdx.x; i < seen; i += blockDim.x)
      most = fmaxf(most, reduce.x[place(i)]);
    most = join_block(most, -INFINITY, largest, Larger());
    double count = 0;
    for (std::int64_t i = threadIdx.x; i < seen; i += blockDim.x)
      count += reduce.x[place(i)] == most ? 1 : 0;
    count = join_block(count, 0.0, counts, Add());
    for (std::int64_t i = threadIdx.x; i < all; i += blockDim.x)
      args.dx[place(i)] = i < seen && reduce.x[place(i)] == most
                              ? static_cast<float>(args.dy[result] / count)
                              : 0.0f;
  }
}

// A chunk of rows for 32 columns: eight threads a column add every eighth row, then one adds those.
__global__ void sum_rows_kernel(SumRowsArgs args) {
  __shared__ double sums[kRowLanes][kColumns];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  const std::int64_t chunk = rows_of_chunk(args.rows.capacity);
  const std::int64_t first = blockIdx.y * chunk;
  const std::int64_t real = real_size(args.rows);
  const std::int64_t end = first + chunk < real ? first + chunk : real;
  double sum = 0;
  if (column < args.n)
    for (std::int64_t row = first + threadIdx.y; row < end; row += kRowLanes)
      sum += static_cast<double>(args.x[row * args.n + column]);
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= args.n) return;
  for (int lane = 1; lane < kRowLanes; ++lane) sum += sums[lane][threadIdx.x];
  args.scratch[blockIdx.y * args.n + column] = sum;
}

__global__ void add_chunks_kernel(const double* scratch, std::int64_t chunks, std::int64_t n,
                                  float* y) {
  const std::int64_t column = global_thread();
  if (column >= n) return;
  double sum = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += scratch[chunk * n + column];
  y[column] = static_cast<float>(sum);
}

unsigned threads_for(const ReduceArgs& args) {
  std::int64_t total = args.outer_axis.capacity;
  for (int axis = 1; axis < args.reduced_rank; ++axis) total *= args.reduced_dims[axis];
  return total > 128 ? kThreads : kWarp;
}

}  // namespace

void reduce(const ReduceArgs& args, Stream* stream) {
  if (args.count.capacity == 0) return;
  reduce_kernel<<<blocks_for(args.count.capacity, 1, 1 << 20), threads_for(args), 0,
                  stream_of(stream)>>>(args);
}

void max_gradient(const MaxGradientArgs& args, Stream* stream) {
  if (args.reduce.count.capacity == 0) return;
  max_gradient_kernel<<<blocks_for(args.reduce.count.capacity, 1, 1 << 20),
                        threads_for(args.reduce), 0, stream_of(stream)>>>(args);
}

void sum_rows(const SumRowsArgs& args, Stream* stream) {
  if (args.n == 0) return;
  const std::int64_t chunks = num_row_chunks(args.rows.capacity);
  const dim3 grid(blocks_for(args.n, kColumns, 1 << 30), static_cast<unsigned>(chunks));
  sum_rows_kernel<<<grid, dim3(kColumns, kRowLanes), 0, stream_of(stream)>>>(args);
  add_chunks_kernel<<<blocks_for(args.n, kThreads, 1 << 30), kThreads, 0, stream_of(stream)>>>(
      args.scratch, chunks, args.n, args.y);
}

}  // namespace lathe::engine::cuda

// Rows looked up in tables, and their gradients without floating-point atomics.
//
// The gradient of a row is the sum of the dy rows of its id, each part of them in their order: the
// tokens are cut into as many ranges as a block has warps, a warp adds those of its range, and the
// ranges are added in order. Which tokens those are is found by looking at all ids, which costs
// less than sorting them for the batches that training has. A table of few rows has many tokens a
// row, so there the tokens are spread over more blocks.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kWarps = kThreads / kWarp;
constexpr int kLaneColumns = 4;
constexpr int kColumns = kWarp * kLaneColumns;  // that a block sums at once
constexpr int kScanThreads = 1024;

// An id outside its table gives NaN, so that no optimizer moves before the fault is seen.
__global__ void embedding_kernel(EmbeddingArgs args) {
  const std::int64_t real = real_size(args.rows) * args.n, all = args.rows.capacity * args.n;
  for (std::int64_t i = global_thread(); i < all; i += grid_stride()) {
    float sum = 0;
    if (i < real) {
      const std::int64_t row = i / args.n, column = i - row * args.n;
      for (int t = 0; t < args.num_tables; ++t) {
        const std::int64_t id = integer_at(args.ids[t], row);
        if (id < 0 || id >= args.table_rows[t]) {
          report(args.fault);
          sum = NAN;
          continue;
        }
        sum += args.tables[t][id * args.n + column];
      }
    }
    args.y[i] = sum;
  }
}

// The first place of every id that occurs.
__global__ void head_kernel(EmbeddingGradientArgs args) {
  const std::int64_t real = real_size(args.rows);
  for (std::int64_t i = global_thread(); i < real; i += grid_stride()) {
    const std::int64_t id = integer_at(args.ids, i);
    if (id < 0 || id >= args.table_rows)
      report(args.fault);
    else
      atomicMin(args.heads + id, static_cast<std::int32_t>(i));
  }
}

// Places of the ids that occur, in the table's order: one block, a run of the table for each
// thread.
__global__ void place_kernel(EmbeddingGradientArgs args) {
  __shared__ int totals[kWarp];
  const std::int64_t each = (args.table_rows + kScanThreads - 1) / kScanThreads;
  const std::int64_t first = threadIdx.x * each;
  const std::int64_t last = first + each < args.table_rows ? first + each : args.table_rows;
  int used = 0;
  for (std::int64_t row = first; row < last; ++row) used += args.heads[row] != kNoHead ? 1 : 0;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  int before = used;  // up to this thread, itself included, within the warp
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const int other = __shfl_up_sync(kAllLanes, before, distance);
    if (lane >= distance) before += other;
  }
  if (lane == kWarp - 1) totals[warp] = before;
  __syncthreads();
  int place = before - used;
  for (int earlier = 0; earlier < warp; ++earlier) place += totals[earlier];
  for (std::int64_t row = first; row < last; ++row) {
    const bool occurs = args.heads[row] != kNoHead;
    args.places[row] = occurs ? place : -1;
    place += occurs ? 1 : 0;
  }
  if (threadIdx.x == kScanThreads - 1) *args.used = place;
}

// Adds the dy rows of `id` to target, which is set where `base` is null.
__device__ void sum_rows_of(const EmbeddingGradientArgs& args, std::int64_t id, std::int64_t real,
                            const float* base, float* target) {
  __shared__ float sums[kWarps][kColumns];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::int64_t begin = real * warp / kWarps, end = real * (warp + 1) / kWarps;
  for (std::int64_t first = 0; first < args.n; first += kColumns) {
    float sum[kLaneColumns] = {};
    for (std::int64_t i = begin; i < end; i += kWarp) {
      const bool is_mine = i + lane < end && integer_at(args.ids, i + lane) == id;
      unsigned found = __ballot_sync(kAllLanes, is_mine);
      while (found != 0) {
        const std::int64_t row = i + __ffs(static_cast<int>(found)) - 1;
        found &= found - 1;
        for (int c = 0; c < kLaneColumns; ++c) {
          const std::int64_t column = first + c * kWarp + lane;
          if (column < args.n) sum[c] += args.dy[row * args.n + column];
        }
      }
    }
    for (int c = 0; c < kLaneColumns; ++c) sums[warp][c * kWarp + lane] = sum[c];
    __syncthreads();
    for (int c = threadIdx.x; c < kColumns; c += blockDim.x) {
      if (first + c >= args.n) continue;
      float total = base == nullptr ? 0.0f : base[first + c];
      for (int w = 0; w < kWarps; ++w) total += sums[w][c];
      target[first + c] = total;
    }
    __syncthreads();
  }
}

// A block for each row of the table.
__global__ void dense_kernel(EmbeddingGradientArgs args) {
  const std::int64_t real = real_size(args.rows);
  for (std::int64_t row = blockIdx.x; row < args.table_rows; row += gridDim.x) {
    float* const y = args.y + row * args.n;
    const float* const base = args.base == nullptr ? nullptr : args.base + row * args.n;
    if (args.heads[row] != kNoHead) {
      sum_rows_of(args, row, real, base, y);
      continue;
    }
    for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x)
      y[i] = base == nullptr ? 0.0f : base[i];
  }
}

// A block for each token; the first of an id works.
__global__ void sparse_kernel(EmbeddingGradientArgs args) {
  const std::int64_t real = real_size(args.rows);
  for (std::int64_t i = blockIdx.x; i < real; i += gridDim.x) {
    const std::int64_t id = integer_at(args.ids, i);
    if (id < 0 || id >= args.table_rows || args.heads[id] != i) continue;
    sum_rows_of(args, id, real, nullptr, args.y + args.places[id] * args.n);
  }
}

__global__ void small_kernel(EmbeddingGradientArgs args) {
  const std::int64_t real = real_size(args.rows);
  const std::int64_t row = blockIdx.x, chunk = blockIdx.y;
  const std::int64_t begin = real * chunk / kSmallTableChunks;
  const std::int64_t end = real * (chunk + 1) / kSmallTableChunks;
  for (std::int64_t column = threadIdx.x; column < args.n; column += blockDim.x) {
    float sum = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t id = integer_at(args.ids, i);
      if (id == row) sum += args.dy[i * args.n + column];
      if (id < 0 || id >= args.table_rows) report(args.fault);
    }
    args.partial[(chunk * args.table_rows + row) * args.n + column] = sum;
  }
}

__global__ void add_small_kernel(EmbeddingGradientArgs args) {
  const std::int64_t size = args.table_rows * args.n;
  for (std::int64_t i = global_thread(); i < size; i += grid_stride()) {
    float sum = args.base == nullptr ? 0.0f : args.base[i];
    for (std::int64_t chunk = 0; chunk < kSmallTableChunks; ++chunk)
      sum += args.partial[chunk * size + i];
    args.y[i] = sum;
  }
}

}  // namespace

void embedding(const EmbeddingArgs& args, Stream* stream) {
  const std::int64_t count = args.rows.capacity * args.n;
  if (count == 0) return;
  embedding_kernel<<<blocks_for(count, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

void embedding_gradient(const EmbeddingGradientArgs& args, Stream* stream) {
  const cudaStream_t on = stream_of(stream);
  if (args.table_rows == 0 || args.n == 0) return;
  if (args.places == nullptr && args.table_rows <= kSmallTable) {
    const dim3 grid(static_cast<unsigned>(args.table_rows),
                    static_cast<unsigned>(kSmallTableChunks));
    small_kernel<<<grid, 128, 0, on>>>(args);
    add_small_kernel<<<blocks_for(args.table_rows * args.n, kThreads), kThreads, 0, on>>>(args);
    return;
  }
  cudaMemsetAsync(args.heads, 0x7f, static_cast<std::size_t>(args.table_rows) * sizeof(int), on);
  if (args.rows.capacity != 0)
    head_kernel<<<blocks_for(args.rows.capacity, kThreads), kThreads, 0, on>>>(args);
  if (args.places == nullptr) {
    dense_kernel<<<blocks_for(args.table_rows, 1, 1 << 20), kThreads, 0, on>>>(args);
    return;
  }
  place_kernel<<<1, kScanThreads, 0, on>>>(args);
  if (args.rows.capacity != 0)
    sparse_kernel<<<blocks_for(args.rows.capacity, 1, 1 << 20), kThreads, 0, on>>>(args);
}

}  // namespace lathe::engine::cuda

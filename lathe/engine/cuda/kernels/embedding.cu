// Rows looked up in tables, and their gradients without floating-point atomics.
//
// The gradient of a row is the sum of the dy rows of its id, in their order. Tokens are sorted in
// chunks, whose places in the whole are then counted; warps add up segments of that order, and runs
// that reach over several segments are joined. A table of few rows has most tokens in one run, so
// there the tokens are cut into parts instead.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kWarps = kThreads / kWarp;
constexpr int kLaneColumns = 4;
constexpr int kColumns = kWarp * kLaneColumns;  // that a warp sums at once

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

// Tokens are sorted by id and place: as numbers that hold both, in chunks first.
constexpr int kChunk = 2048, kSortThreads = kChunk / 2;
__global__ void __launch_bounds__(kSortThreads)
    sort_chunks_kernel(const __grid_constant__ EmbeddingGradientsArgs all) {
  __shared__ std::uint64_t keys[kChunk];
  const EmbeddingGradientArgs& args = all.tables[blockIdx.y];
  const std::int64_t real = real_size(args.rows);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kChunk;
  if (first >= real) return;
  for (int i = threadIdx.x; i < kChunk; i += kSortThreads) {
    std::uint64_t key = ~std::uint64_t{0};
    if (first + i < real) {
      const std::int64_t id = integer_at(args.ids, first + i);
      const bool is_inside = id >= 0 && id < args.table_rows;
      if (!is_inside) report(args.fault);
      // Any that are outside stand last; nobody reads their sums.
      const std::uint64_t order = is_inside ? static_cast<std::uint64_t>(id) : 0x7fffffffu;
      key = order << 32 | static_cast<std::uint64_t>(first + i);
    }
    keys[i] = key;
  }
  // Bitonic: runs of `run` are sorted upwards and downwards in turn, until one is left.
  for (int run = 2; run <= kChunk; run *= 2)
    for (int distance = run / 2; distance > 0; distance /= 2) {
      __syncthreads();
      const int i = static_cast<int>(threadIdx.x);
      const int low = i / distance * 2 * distance + i % distance, high = low + distance;
      const bool is_upwards = (low & run) == 0;
      const std::uint64_t a = keys[low], b = keys[high];
      if ((a > b) == is_upwards) {
        keys[low] = b;
        keys[high] = a;
      }
    }
  __syncthreads();
  for (int i = threadIdx.x; i < kChunk; i += kSortThreads)
    if (first + i < real) args.sorted[first + i] = keys[i];
}

// Where a token stands in the order of all: as many stand before it as are smaller in any chunk.
__global__ void order_kernel(const __grid_constant__ EmbeddingGradientsArgs all) {
  const EmbeddingGradientArgs& args = all.tables[blockIdx.y];
  const std::int64_t real = real_size(args.rows), place = global_thread();
  if (place >= real) return;
  const std::uint64_t key = args.sorted[place];
  const std::int64_t own = place / kChunk;
  std::int64_t before = place - own * kChunk;
#pragma unroll 4
  for (std::int64_t chunk = 0; chunk * kChunk < real; ++chunk) {
    if (chunk == own) continue;
    const std::uint64_t* const keys = args.sorted + chunk * kChunk;
    int count = static_cast<int>(real - chunk * kChunk < kChunk ? real - chunk * kChunk : kChunk);
    int low = 0;
    while (low < count) {
      const int middle = (low + count) / 2;
      if (keys[middle] < key)
        low = middle + 1;
      else
        count = middle;
    }
    before += low;
  }
  args.order[before] = static_cast<std::int32_t>(key & 0xffffffffu);
}

// Four neighbours of a row, or as many as there are.
struct Four {
  float v[4] = {};
};
__device__ Four four_at(const float* row, std::int64_t column, std::int64_t n) {
  Four four;
  if (n % 4 == 0) {
    if (column < n)
      *reinterpret_cast<float4*>(four.v) = *reinterpret_cast<const float4*>(row + column);
    return four;
  }
  for (int j = 0; j < 4; ++j)
    if (column + j < n) four.v[j] = row[column + j];
  return four;
}
__device__ void put_four(float* row, std::int64_t column, std::int64_t n, const Four& four) {
  for (int j = 0; j < 4; ++j)
    if (column + j < n) row[column + j] = four.v[j];
}
__device__ void add(Four& sum, const Four& four) {
  for (int j = 0; j < 4; ++j) sum.v[j] += four.v[j];
}

// The row that the sum of an id goes to, which begins at this place of the order.
__device__ float* target_of(const EmbeddingGradientArgs& args, std::int64_t place,
                            std::int64_t id) {
  return args.y + (args.places != nullptr ? place : id) * args.n;
}

// A warp adds up the runs of equal ids within a segment of the order. What belongs to a run that
// began before the segment is left in `partial`.
__global__ void segment_kernel(const __grid_constant__ EmbeddingGradientsArgs all) {
  constexpr int kAtOnce = 8;
  const EmbeddingGradientArgs& args = all.tables[blockIdx.y];
  const std::int64_t real = real_size(args.rows), n = args.n;
  const int lane = threadIdx.x % kWarp;
  const std::int64_t columns = (n + kColumns - 1) / kColumns;
  const std::int64_t work = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  const std::int64_t segment = work / columns, column = (work % columns) * kColumns + lane * 4;
  const std::int64_t first = segment * kTokenSegment;
  if (work == 0 && lane == 0 && args.used != nullptr) *args.used = static_cast<std::int32_t>(real);
  if (first >= real) return;
  const int count = static_cast<int>(real - first < kTokenSegment ? real - first : kTokenSegment);
  const std::int32_t token = args.order[first + (lane < count ? lane : count - 1)];
  const std::int64_t own = integer_at(args.ids, token);
  const auto id_of = [&](int i) { return __shfl_sync(kAllLanes, own, i); };
  const bool continues = first != 0 && integer_at(args.ids, args.order[first - 1]) == id_of(0);
  std::int64_t previous = id_of(0);
  Four sum;
  int begin = 0;  // of the run
  const auto finish = [&](int end) {
    const std::int64_t id = id_of(begin);
    if (begin == 0 && continues) {
      put_four(args.partial + segment * n, column, n, sum);
    } else if (id >= 0 && id < args.table_rows) {
      float* const target = target_of(args, first + begin, id);
      if (args.base != nullptr) {
        Four whole = four_at(args.base + id * n, column, n);
        add(whole, sum);
        sum = whole;
      }
      put_four(target, column, n, sum);
      if (args.places != nullptr && column == 0)
        args.places[id] = static_cast<std::int32_t>(first + begin);
    }
    begin = end;
    sum = Four();
  };
  for (int i = 0; i < count; i += kAtOnce) {
    Four rows[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const std::int32_t from = __shfl_sync(kAllLanes, token, i + j < kWarp ? i + j : kWarp - 1);
      if (i + j < count) rows[j] = four_at(args.dy + from * n, column, n);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const std::int64_t id = id_of(i + j < kWarp ? i + j : kWarp - 1);
      if (i + j >= count) continue;
      const bool is_first = i + j == 0 ? !continues : id != previous;
      if (is_first && i + j > 0) finish(i + j);
      if (!is_first && args.places != nullptr)
        put_four(args.y + (first + i + j) * n, column, n, Four());
      add(sum, rows[j]);
      previous = id;
    }
  }
  finish(count);
}

// Joins runs that go on into later segments, in order.
__global__ void join_kernel(const __grid_constant__ EmbeddingGradientsArgs all) {
  const EmbeddingGradientArgs& args = all.tables[blockIdx.y];
  const std::int64_t real = real_size(args.rows), n = args.n;
  const int lane = threadIdx.x % kWarp;
  const std::int64_t columns = (n + kColumns - 1) / kColumns;
  const std::int64_t work = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  const std::int64_t segment = work / columns, column = (work % columns) * kColumns + lane * 4;
  const std::int64_t first = segment * kTokenSegment, next = first + kTokenSegment;
  if (next >= real) return;
  const auto id_at = [&](std::int64_t place) { return integer_at(args.ids, args.order[place]); };
  const std::int64_t id = id_at(next - 1);
  if (id_at(next) != id || id < 0 || id >= args.table_rows) return;
  // Where the run begins: in this segment, or an earlier one joins it.
  const bool is_same = lane < kTokenSegment && id_at(first + lane) == id;
  const unsigned same = __ballot_sync(kAllLanes, is_same);
  const int begin = __ffs(static_cast<int>(same)) - 1;
  if (begin == 0 && first > 0 && id_at(first - 1) == id) return;
  float* const target = target_of(args, first + begin, id);
  Four sum = four_at(target, column, n);
  bool goes_on = true;
  for (std::int64_t later = segment + 1; goes_on; later += kWarp) {
    // How many segments from here on begin with the run; a lane looks at each.
    const std::int64_t own = (later + lane) * kTokenSegment;
    const unsigned ended = __ballot_sync(kAllLanes, own >= real || id_at(own) != id);
    const int count = ended == 0 ? kWarp : __ffs(static_cast<int>(ended)) - 1;
#pragma unroll 4
    for (int i = 0; i < count; ++i) add(sum, four_at(args.partial + (later + i) * n, column, n));
    goes_on = ended == 0;
  }
  put_four(target, column, n, sum);
}

// A part of the tokens for one row of the table: eight shares of it beside each other.
__global__ void small_kernel(SmallTableGradientArgs args) {
  __shared__ float sums[kWarps][kColumns];
  const std::int64_t real = real_size(args.rows), row = blockIdx.x, part = blockIdx.y;
  const std::int64_t begin = real * part / kSmallTableParts;
  const std::int64_t end = real * (part + 1) / kSmallTableParts;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (std::int64_t first = 0; first < args.n; first += kColumns) {
    Four sum;
    // Several rows are asked for before the first is added: their number decides how long this is.
    constexpr int kAtOnce = 4;
    for (std::int64_t next = begin + warp; next < end; next += kAtOnce * kWarps) {
      std::int64_t ids[kAtOnce];
      Four rows[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j)
        ids[j] = next + j * kWarps < end ? integer_at(args.ids, next + j * kWarps) : row + 1;
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j)
        if (ids[j] == row)
          rows[j] = four_at(args.dy + (next + j * kWarps) * args.n, first + lane * 4, args.n);
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (ids[j] == row) add(sum, rows[j]);
        if (next + j * kWarps < end && (ids[j] < 0 || ids[j] >= args.table_rows))
          report(args.fault);
      }
    }
    for (int j = 0; j < 4; ++j) sums[warp][lane * 4 + j] = sum.v[j];
    __syncthreads();
    for (int c = threadIdx.x; c < kColumns && first + c < args.n; c += blockDim.x) {
      float total = 0;
      for (int w = 0; w < kWarps; ++w) total += sums[w][c];
      args.parts[(part * args.table_rows + row) * args.n + first + c] = total;
    }
    __syncthreads();
  }
}

}  // namespace

void embedding(const EmbeddingArgs& args, Stream* stream) {
  const std::int64_t count = args.rows.capacity * args.n;
  if (count == 0) return;
  embedding_kernel<<<blocks_for(count, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

void embedding_order(const EmbeddingGradientsArgs& args, Stream* stream) {
  const cudaStream_t on = stream_of(stream);
  std::int64_t most_tokens = 0;
  for (int i = 0; i < args.count; ++i) {
    const EmbeddingGradientArgs& table = args.tables[i];
    if (table.places != nullptr)
      cudaMemsetAsync(table.places, 0xff, static_cast<std::size_t>(table.table_rows) * sizeof(int),
                      on);
    if (table.rows.capacity > most_tokens) most_tokens = table.rows.capacity;
  }
  if (most_tokens == 0) return;
  const auto tables = static_cast<unsigned>(args.count);
  const dim3 chunks(blocks_for(most_tokens, kChunk, 1 << 30), tables);
  const dim3 tokens(blocks_for(most_tokens, kThreads, 1 << 30), tables);
  sort_chunks_kernel<<<chunks, kSortThreads, 0, on>>>(args);
  order_kernel<<<tokens, kThreads, 0, on>>>(args);
}

void embedding_gradients(const EmbeddingGradientsArgs& args, Stream* stream) {
  const cudaStream_t on = stream_of(stream);
  std::int64_t most_work = 0;
  for (int i = 0; i < args.count; ++i) {
    const EmbeddingGradientArgs& table = args.tables[i];
    const auto bytes = static_cast<std::size_t>(table.table_rows * table.n) * sizeof(float);
    if (table.places == nullptr && table.base == nullptr) cudaMemsetAsync(table.y, 0, bytes, on);
    if (table.base != nullptr)
      cudaMemcpyAsync(table.y, table.base, bytes, cudaMemcpyDeviceToDevice, on);
    const std::int64_t segments = (table.rows.capacity + kTokenSegment - 1) / kTokenSegment;
    const std::int64_t work = segments * ((table.n + kColumns - 1) / kColumns);
    if (work > most_work) most_work = work;
  }
  if (most_work == 0) return;
  const dim3 segments(blocks_for(most_work, kWarps, 1 << 30), static_cast<unsigned>(args.count));
  segment_kernel<<<segments, kThreads, 0, on>>>(args);
  join_kernel<<<segments, kThreads, 0, on>>>(args);
}

void small_table_gradient(const SmallTableGradientArgs& args, Stream* stream) {
  if (args.table_rows == 0 || args.n == 0) return;
  const dim3 grid(static_cast<unsigned>(args.table_rows), static_cast<unsigned>(kSmallTableParts));
  small_kernel<<<grid, kThreads, 0, stream_of(stream)>>>(args);
}

}  // namespace lathe::engine::cuda

// Attention and its gradient: which kernels do it, and the sum of dq's parts.

#include "lathe/engine/cuda/kernels/attention.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kRowsOfBlock = 8;

// dq of 64 queries: the parts that were made for them, in order. A part begins with the tile of
// keys of its own number.
__global__ void __launch_bounds__(kThreads)
    add_parts_kernel(AttentionGradientArgs args, int parts) {
  const AttentionShape& shape = args.shape;
  const std::int64_t width = static_cast<std::int64_t>(shape.heads) * shape.d;
  const std::int64_t stride = shape.q_stride != 0 ? shape.q_stride : width;
  float* const dq = static_cast<float*>(args.dq);
  const Place place = find_place(shape, static_cast<int>(blockIdx.x), false);
  if (place.sequence < 0) return clear_rows(dq, shape.queries, stride, width);
  int used = min(parts, tiles_of(place.lk));
  if (shape.is_causal && shape.mask.data == nullptr) used = min(used, place.begin / kTile + 1);
  const std::int64_t part = shape.queries.capacity * width;
  const float* const parts_of_dq = part_of(args, 0);
  const int begin = place.begin + static_cast<int>(blockIdx.y) * kRowsOfBlock;
  const int end = min(place.lq, begin + kRowsOfBlock), columns = static_cast<int>(width);
  const std::int64_t first = place.q_start + begin;
  const float* const from = parts_of_dq + first * width;  // rows lie one behind another there
  if (columns % 4 == 0 && stride % 4 == 0) {
    for (int i = static_cast<int>(threadIdx.x) * 4; i < (end - begin) * columns;
         i += kThreads * 4) {
      float4 sum = {};
#pragma unroll 4
      for (int p = 0; p < used; ++p) {
        const float4 four = *reinterpret_cast<const float4*>(from + p * part + i);
        sum = make_float4(sum.x + four.x, sum.y + four.y, sum.z + four.z, sum.w + four.w);
      }
      *reinterpret_cast<float4*>(dq + (first + i / columns) * stride + i % columns) = sum;
    }
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < (end - begin) * columns; i += kThreads) {
      float sum = 0;
      for (int p = 0; p < used; ++p) sum += from[p * part + i];
      dq[(first + i / columns) * stride + i % columns] = sum;
    }
  }
  clear_rows(dq, shape.queries, stride, width);
}

// Elements [begin, begin + 8) of a row, zeros from d on.
template <typename T>
__device__ void load_eight(const T* row, int begin, int d, bool is_aligned, float (&eight)[8]) {
  if (is_aligned) {
    alignas(16) T numbers[8];
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(numbers) / sizeof(uint4)); ++i)
      reinterpret_cast<uint4*>(numbers)[i] = reinterpret_cast<const uint4*>(row + begin)[i];
#pragma unroll
    for (int i = 0; i < 8; ++i) eight[i] = static_cast<float>(numbers[i]);
    return;
  }
  for (int i = 0; i < 8; ++i) eight[i] = begin + i < d ? static_cast<float>(row[begin + i]) : 0.0f;
}

// Eight threads for each query and head.
template <typename T>
__global__ void __launch_bounds__(kThreads) facts_kernel(AttentionGradientArgs args) {
  constexpr int kEach = 8;
  const AttentionShape& shape = args.shape;
  const std::int64_t item = global_thread() / kEach;
  const int lane = static_cast<int>(threadIdx.x) % kEach;
  const bool is_there = item < shape.queries.capacity * shape.heads;
  float mean = 0;
  if (is_there) {
    const T* const dout = static_cast<const T*>(args.dout) + item * shape.d;
    const T* const y = static_cast<const T*>(args.y) + item * shape.d;
    for (int begin = lane * 8; begin < shape.d; begin += kEach * 8) {
      float a[8], b[8];
      load_eight(dout, begin, shape.d, shape.d % 8 == 0, a);
      load_eight(y, begin, shape.d, shape.d % 8 == 0, b);
#pragma unroll
      for (int i = 0; i < 8; ++i) mean = fmaf(a[i], b[i], mean);
    }
  }
#pragma unroll
  for (int distance = kEach / 2; distance > 0; distance /= 2)
    mean += __shfl_xor_sync(kAllLanes, mean, distance);
  if (!is_there || lane != 0) return;
  const float highest = args.statistics[item * kAttentionStatistics];
  const float inverse = args.statistics[item * kAttentionStatistics + 1];
  const bool sees_none = highest == kMasked;
  QueryFacts facts;
  facts.sum = (sees_none ? 0.0f : highest) - log2f(inverse);
  facts.mean = mean * shape.scale;
  facts.masked = sees_none ? 0.0f : -INFINITY;
  facts.unused = 0;
  reinterpret_cast<QueryFacts*>(args.scratch)[item] = facts;
}

bool asks_once(const AttentionShape& shape) {
  return shape.only_first || (shape.offsets.data == nullptr && shape.lq == 1);
}

}  // namespace

int most_shared_memory() {
  static const int bytes = [] {
    int device = 0, most = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    return most - 1024;  // what kernels have beside
  }();
  return bytes;
}

void attention(const AttentionArgs& args, Stream* stream) {
  const AttentionShape& shape = args.shape;
  const cudaStream_t on = stream_of(stream);
  if (shape.queries.capacity == 0 || most_tiles(shape, false) == 0) return;
  if (shape.d > kMostHeadSize) return attend_wide(args, on);
  if (try_attend_short(args, on)) return;
  if (asks_once(shape)) return attend_once(args, on);
  if (shape.precision == Precision::Bf16) return attend_bf16(args, on);
  if (shape.precision == Precision::Tf32 && try_attend_tf32(args, on)) return;
  attend_float(args, on);
}

void attention_gradient(const AttentionGradientArgs& args, Stream* stream) {
  const AttentionShape& shape = args.shape;
  const cudaStream_t on = stream_of(stream);
  if (shape.queries.capacity == 0 || most_tiles(shape, false) == 0) return;
  const bool is_wide = shape.d > kMostHeadSize;
  if (!is_wide && asks_once(shape)) return differentiate_once(args, on);
  const bool is_bf16 = shape.elements == Number::BF16;
  const auto items = static_cast<unsigned>(shape.queries.capacity * shape.heads);
  const unsigned facts_blocks = (items * 8 + kThreads - 1) / kThreads;
  if (is_bf16)
    facts_kernel<__nv_bfloat16><<<facts_blocks, kThreads, 0, on>>>(args);
  else
    facts_kernel<float><<<facts_blocks, kThreads, 0, on>>>(args);
  if (is_wide) return differentiate_wide(args, on);
  if (shape.precision == Precision::Bf16) return differentiate_bf16(args, on);
  if (shape.precision == Precision::Tf32 && try_differentiate_tf32(args, on)) return;
  const int parts = static_cast<int>(num_query_parts(shape.queries.capacity, shape.keys.capacity,
                                                     shape.sequences.capacity, shape.heads,
                                                     shape.kv_heads, shape.d));
  differentiate_float(args, parts, on);
  const dim3 grid(most_tiles(shape, false), kTile / kRowsOfBlock);
  add_parts_kernel<<<grid, kThreads, 0, on>>>(args, parts);
}

}  // namespace lathe::engine::cuda

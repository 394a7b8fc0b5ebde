// Attention and its gradient: which kernels do it, and the sum of dq's parts.

#include "lathe/engine/cuda/kernels/attention.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kRowsOfBlock = 8;

// dq of 64 queries: the parts that were made for them, in order. A part begins with the tile of
// keys of its own number.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    add_parts_kernel(AttentionGradientArgs args, int parts) {
  const AttentionShape& shape = args.shape;
  const std::int64_t width = static_cast<std::int64_t>(shape.heads) * shape.d;
  const std::int64_t stride = shape.q_stride != 0 ? shape.q_stride : width;
  T* const dq = static_cast<T*>(args.dq);
  clear_rows(dq, shape.queries, stride, width);
  const Place place = find_place(shape, blockIdx.x, false);
  if (place.sequence < 0) return;
  int used = min(parts, tiles_of(place.lk));
  if (shape.is_causal && shape.mask.data == nullptr) used = min(used, place.begin / kTile + 1);
  const std::int64_t part = shape.queries.capacity * width;
  const int begin = place.begin + static_cast<int>(blockIdx.y) * kRowsOfBlock;
  const int end = min(place.lq, begin + kRowsOfBlock);
  for (std::int64_t i = threadIdx.x; i < (end - begin) * width; i += kThreads) {
    const std::int64_t row = place.q_start + begin + i / width, column = i % width;
    float sum = 0;
    for (int p = 0; p < used; ++p) sum += args.scratch[p * part + row * width + column];
    store(dq + row * stride + column, sum, shape.precision == Precision::Bf16);
  }
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
  if (asks_once(shape)) return attend_once(args, on);
  switch (shape.precision) {
    case Precision::Float32:
      return attend_float(args, on);
    case Precision::Tf32:
      return attend_tf32(args, on);
    case Precision::Bf16:
      return attend_bf16(args, on);
  }
}

void attention_gradient(const AttentionGradientArgs& args, Stream* stream) {
  const AttentionShape& shape = args.shape;
  const cudaStream_t on = stream_of(stream);
  if (shape.queries.capacity == 0 || most_tiles(shape, false) == 0) return;
  if (asks_once(shape)) return differentiate_once(args, on);
  const int parts = static_cast<int>(num_query_parts(
      shape.queries.capacity, shape.sequences.capacity, shape.heads, shape.kv_heads, shape.d));
  switch (shape.precision) {
    case Precision::Float32:
      differentiate_float(args, parts, on);
      break;
    case Precision::Tf32:
      differentiate_tf32(args, parts, on);
      break;
    case Precision::Bf16:
      differentiate_bf16(args, parts, on);
      break;
  }
  const dim3 grid(most_tiles(shape, false), kTile / kRowsOfBlock);
  if (shape.elements == Number::BF16)
    add_parts_kernel<__nv_bfloat16><<<grid, kThreads, 0, on>>>(args, parts);
  else
    add_parts_kernel<float><<<grid, kThreads, 0, on>>>(args, parts);
}

}  // namespace lathe::engine::cuda

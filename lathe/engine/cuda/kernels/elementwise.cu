// Element by element: maps, pairs with broadcasting, what follows a product, casts, fills.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/maps.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {
namespace {

__global__ void map_kernel(MapArgs args) {
  const std::int64_t count = real_size(args.count);
  for (std::int64_t i = global_thread(); i < args.count.capacity; i += grid_stride())
    args.y[i] = i < count ? apply(args.map, args.x[i], args.slope) : 0.0f;
}

__global__ void map_gradient_kernel(MapGradientArgs args) {
  const std::int64_t count = real_size(args.count);
  for (std::int64_t i = global_thread(); i < args.count.capacity; i += grid_stride())
    args.dx[i] = i < count ? args.dy[i] * derivative(args.map, args.x[i], args.slope) : 0.0f;
}

__global__ void pair_kernel(PairArgs args) {
  const std::int64_t count = real_size(args.count);
  for (std::int64_t i = global_thread(); i < args.count.capacity; i += grid_stride()) {
    float y = 0;
    if (i < count)
      y = apply(args.pair, args.a[place_of(i, args.rank, args.dims, args.a_walk)],
                args.b[place_of(i, args.rank, args.dims, args.b_walk)]);
    args.y[i] = y;
  }
}

__global__ void pair_gradient_kernel(PairGradientArgs args) {
  const PairArgs& pair = args.pair;
  const std::int64_t count = real_size(pair.count);
  for (std::int64_t i = global_thread(); i < pair.count.capacity; i += grid_stride()) {
    float y = 0;
    if (i < count)
      y = args.dy[i] * derivative(pair.pair, args.operand,
                                  pair.a[place_of(i, pair.rank, pair.dims, pair.a_walk)],
                                  pair.b[place_of(i, pair.rank, pair.dims, pair.b_walk)]);
    pair.y[i] = y;
  }
}

// Beyond the real size nothing is read, and zeros are written.
template <typename Element>
__global__ void copy_kernel(CopyArgs args) {
  const std::int64_t count = real_size(args.count);
  const auto* const x = static_cast<const Element*>(args.x);
  auto* const y = static_cast<Element*>(args.y);
  for (std::int64_t i = global_thread(); i < args.count.capacity; i += grid_stride()) {
    Element value{};
    if (i < count) value = x[place_of(i, args.rank, args.dims, args.x_walk)];
    y[place_of(i, args.rank, args.dims, args.y_walk)] = value;
  }
}

__global__ void scaled_copy_kernel(CopyArgs args) {
  const std::int64_t count = real_size(args.count);
  const auto* const x = static_cast<const float*>(args.x);
  auto* const y = static_cast<float*>(args.y);
  for (std::int64_t i = global_thread(); i < args.count.capacity; i += grid_stride()) {
    float value = 0;
    if (i < count) value = x[place_of(i, args.rank, args.dims, args.x_walk)] * args.factor;
    y[place_of(i, args.rank, args.dims, args.y_walk)] = value;
  }
}

__global__ void fill_kernel(FillArgs args) {
  const std::int64_t count = real_size(args.count);
  for (std::int64_t i = global_thread(); i < args.count.capacity; i += grid_stride())
    args.y[i] = i < count ? args.pattern : 0u;
}

__device__ double number_at(Number type, const void* data, std::int64_t i) {
  switch (type) {
    case Number::F64:
      return static_cast<const double*>(data)[i];
    case Number::F32:
      return static_cast<const float*>(data)[i];
    case Number::F16:
      return __half2float(static_cast<const __half*>(data)[i]);
    case Number::BF16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    case Number::I64:
      return static_cast<double>(static_cast<const std::int64_t*>(data)[i]);
    case Number::I32:
      return static_cast<const std::int32_t*>(data)[i];
    case Number::I16:
      return static_cast<const std::int16_t*>(data)[i];
    case Number::I8:
      return static_cast<const std::int8_t*>(data)[i];
    case Number::U8:
    case Number::Bool:
      return static_cast<const std::uint8_t*>(data)[i];
  }
  return 0;
}

__device__ void store_number(Number type, void* data, std::int64_t i, double value) {
  switch (type) {
    case Number::F64:
      static_cast<double*>(data)[i] = value;
      return;
    case Number::F32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    case Number::F16:
      static_cast<__half*>(data)[i] = __double2half(value);
      return;
    case Number::BF16:
      static_cast<__nv_bfloat16*>(data)[i] = __double2bfloat16(value);
      return;
    case Number::I64:
      static_cast<std::int64_t*>(data)[i] = static_cast<std::int64_t>(value);
      return;
    case Number::I32:
      static_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(value);
      return;
    default:
      return;  // the step refuses narrower integers
  }
}

__global__ void cast_kernel(CastArgs args) {
  const std::int64_t count = real_size(args.count);
  for (std::int64_t i = global_thread(); i < args.count.capacity; i += grid_stride()) {
    if (args.from == Number::I64 && args.to == Number::I64)
      static_cast<std::int64_t*>(args.y)[i] =
          i < count ? static_cast<const std::int64_t*>(args.x)[i] : 0;
    else
      store_number(args.to, args.y, i, i < count ? number_at(args.from, args.x, i) : 0.0);
  }
}

// Norm and scale of gradients whose squares and examples were counted. A scale that is no number
// says that the step has failed.
__device__ float scale_of_gradients(float squares, float examples, double most, float* norm) {
  const double count = examples, length = sqrt(static_cast<double>(squares)) / count;
  double scale = 1.0 / count;
  if (most > 0 && length > most) scale *= most / (length + 1e-6);
  if (!isfinite(length)) scale = NAN;
  *norm = static_cast<float>(length);
  return static_cast<float>(scale);
}

// All operands come from memory at once. Then operations that wait for none of each other are done
// side by side, one level after another, and a long sum by one thread.
__global__ void scalars_kernel(ScalarArgs args) {
  struct Short {
    ScalarOperation::Kind kind;
    Map map;
    Pair pair;
    std::int32_t a_from, b_from, level;
    bool continues;
    float value;
  };
  __shared__ Short operations[kMostScalars];
  __shared__ float a[kMostScalars], b[kMostScalars], y[kMostScalars];
  int last_level = -1;  // of this thread's operations
  for (int i = threadIdx.x; i < args.count; i += blockDim.x) {
    const ScalarOperation& operation = args.operations[i];
    operations[i] = {operation.kind,      operation.map,
                     operation.pair,      operation.a_from,
                     operation.b_from,    operation.level,
                     operation.continues, static_cast<float>(operation.value)};
    last_level = operation.level > last_level ? operation.level : last_level;
    if (operation.a != nullptr && operation.a_from < 0) a[i] = *operation.a;
    if (operation.b != nullptr && operation.b_from < 0) b[i] = *operation.b;
  }
  for (int level = 0; __syncthreads_or(last_level >= level); ++level)
    for (int i = threadIdx.x; i < args.count; i += blockDim.x) {
      const Short operation = operations[i];
      if (operation.level != level || operation.continues) continue;
      const float left = operation.a_from < 0 ? a[i] : y[operation.a_from];
      const float right = operation.b_from < 0 ? b[i] : y[operation.b_from];
      float result = 0;
      switch (operation.kind) {
        case ScalarOperation::Kind::Map:
          result = apply(operation.map, left, operation.value);
          break;
        case ScalarOperation::Kind::Pair:
          result = operation.pair == Pair::Add ? left + right : apply(operation.pair, left, right);
          break;
        case ScalarOperation::Kind::Fill:
          result = operation.value;
          break;
        case ScalarOperation::Kind::GradientScale:
          result =
              scale_of_gradients(left, right, args.operations[i].value, args.operations[i].norm);
          break;
      }
      y[i] = result;
      for (int next = i + 1; next < args.count && operations[next].continues; ++next)
        y[next] = result += b[next];
    }
  for (int i = threadIdx.x; i < args.count; i += blockDim.x) *args.operations[i].y = y[i];
}

__global__ void vectors_kernel(VectorArgs args) {
  __shared__ double room[kWarp];
  const VectorOperation operation = args.operations[blockIdx.x];
  if (operation.kind == VectorOperation::Kind::Mean) {
    double sum = 0;
    for (std::int64_t i = threadIdx.x; i < operation.count; i += blockDim.x)
      sum += static_cast<double>(operation.a[i]);
    sum = join_block(sum, 0.0, room, Add());
    if (threadIdx.x == 0)
      *operation.y = static_cast<float>(sum / static_cast<double>(operation.count));
    return;
  }
  for (std::int64_t i = threadIdx.x; i < operation.count; i += blockDim.x)
    operation.y[i] = apply(operation.pair, operation.a[operation.is_a_single ? 0 : i],
                           operation.b[operation.is_b_single ? 0 : i]);
}

__global__ void halves_kernel(HalvesArgs args) {
  const HalfCopy copy = of_this_block(args.copies, args.count);
  const std::int64_t first = (blockIdx.x - copy.first_block) * kHalvesBlock;
  const std::int64_t end = first + kHalvesBlock < copy.count ? first + kHalvesBlock : copy.count;
#pragma unroll 4
  for (std::int64_t i = first + threadIdx.x * 4; i < end; i += kThreads * 4) {
    if (i + 4 > copy.count) {
      for (std::int64_t j = i; j < copy.count; ++j)
        copy.y[j] = static_cast<std::uint16_t>(to_bf16_pair(copy.x[j], 0));
      continue;
    }
    const float4 four = *reinterpret_cast<const float4*>(copy.x + i);
    *reinterpret_cast<uint2*>(copy.y + i) =
        make_uint2(to_bf16_pair(four.x, four.y), to_bf16_pair(four.z, four.w));
  }
}

__global__ void gate_kernel(GateArgs args) {
  const std::int64_t count = real_size(args.count);
  for (std::int64_t i = global_thread(); i < args.count.capacity; i += grid_stride()) {
    float dx = 0;
    if (i < count && !(args.x[i] < args.minimum || args.x[i] > args.maximum)) dx = args.dy[i];
    args.dx[i] = dx;
  }
}

}  // namespace

void map(const MapArgs& args, Stream* stream) {
  if (args.count.capacity == 0) return;
  map_kernel<<<blocks_for(args.count.capacity, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

void map_gradient(const MapGradientArgs& args, Stream* stream) {
  if (args.count.capacity == 0) return;
  map_gradient_kernel<<<blocks_for(args.count.capacity, kThreads), kThreads, 0,
                        stream_of(stream)>>>(args);
}

void pair(const PairArgs& args, Stream* stream) {
  if (args.count.capacity == 0) return;
  pair_kernel<<<blocks_for(args.count.capacity, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

void pair_gradient(const PairGradientArgs& args, Stream* stream) {
  if (args.pair.count.capacity == 0) return;
  pair_gradient_kernel<<<blocks_for(args.pair.count.capacity, kThreads), kThreads, 0,
                         stream_of(stream)>>>(args);
}

void copy(const CopyArgs& args, Stream* stream) {
  if (args.count.capacity == 0) return;
  const unsigned blocks = blocks_for(args.count.capacity, kThreads);
  const cudaStream_t on = stream_of(stream);
  if (args.factor != 1)
    scaled_copy_kernel<<<blocks, kThreads, 0, on>>>(args);
  else if (args.element_bytes == 1)
    copy_kernel<std::uint8_t><<<blocks, kThreads, 0, on>>>(args);
  else if (args.element_bytes == 2)
    copy_kernel<std::uint16_t><<<blocks, kThreads, 0, on>>>(args);
  else if (args.element_bytes == 4)
    copy_kernel<std::uint32_t><<<blocks, kThreads, 0, on>>>(args);
  else
    copy_kernel<std::uint64_t><<<blocks, kThreads, 0, on>>>(args);
}

void fill(const FillArgs& args, Stream* stream) {
  if (args.count.capacity == 0) return;
  fill_kernel<<<blocks_for(args.count.capacity, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

void cast(const CastArgs& args, Stream* stream) {
  if (args.count.capacity == 0) return;
  cast_kernel<<<blocks_for(args.count.capacity, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

void scalars(const ScalarArgs& args, Stream* stream) {
  scalars_kernel<<<1, kThreads, 0, stream_of(stream)>>>(args);
}

void vectors(const VectorArgs& args, Stream* stream) {
  if (args.count == 0) return;
  vectors_kernel<<<static_cast<unsigned>(args.count), kThreads, 0, stream_of(stream)>>>(args);
}

void halves(const HalvesArgs& args, Stream* stream) {
  if (args.num_blocks == 0) return;
  halves_kernel<<<static_cast<unsigned>(args.num_blocks), kThreads, 0, stream_of(stream)>>>(args);
}

void gate(const GateArgs& args, Stream* stream) {
  if (args.count.capacity == 0) return;
  gate_kernel<<<blocks_for(args.count.capacity, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

}  // namespace lathe::engine::cuda

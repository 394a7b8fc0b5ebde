// One step of an optimizer over all parameters in one launch, and what gradients are clipped by.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr float kSmallestNormal = 0x1p-126f;

__device__ float unless_below(float least, float value) {
  return fabsf(value) < least ? 0.0f : value;
}

// The tensor that a block belongs to: the last whose first block is not after it.
template <typename Tensor>
__device__ int tensor_of(const Tensor* tensors, int count, std::int64_t block) {
  int low = 0, high = count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (tensors[middle].first_block <= block)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// What all elements of a tensor share, made in double as the CPU makes it.
struct Rates {
  float scale, decay, step_size, root_correction;
};

// Elements of a tensor are updated four at a time where its rows are whole fours.
template <int Count>
struct Elements {
  float v[Count];
};
template <int Count>
__device__ Elements<Count> elements_at(const float* x, std::int64_t i) {
  Elements<Count> result;
  if constexpr (Count == 4)
    *reinterpret_cast<float4*>(result.v) = *reinterpret_cast<const float4*>(x + i);
  else
    result.v[0] = x[i];
  return result;
}
template <int Count>
__device__ void put(float* y, std::int64_t i, const Elements<Count>& elements) {
  if constexpr (Count == 4)
    *reinterpret_cast<float4*>(y + i) = *reinterpret_cast<const float4*>(elements.v);
  else
    y[i] = elements.v[0];
}

template <int Count>
__device__ void put_half(std::uint16_t* y, std::int64_t i, const Elements<Count>& elements) {
  if constexpr (Count == 4)
    *reinterpret_cast<uint2*>(y + i) = make_uint2(to_bf16_pair(elements.v[0], elements.v[1]),
                                                  to_bf16_pair(elements.v[2], elements.v[3]));
  else
    y[i] = static_cast<std::uint16_t>(to_bf16_pair(elements.v[0], 0));
}

template <int Count>
__device__ Elements<Count> gradient_at(const UpdatedTensor& tensor, std::int64_t i) {
  if (tensor.places == nullptr) return elements_at<Count>(tensor.gradient, i);
  const std::int64_t row =
      i <= 0x7fffffff ? static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(tensor.n)
                      : i / tensor.n;
  const std::int64_t place = tensor.places[row];
  if (place < 0) return {};
  return elements_at<Count>(tensor.gradient, place * tensor.n + (i - row * tensor.n));
}

template <int Count>
__device__ void update_block(const UpdateArgs& args, const UpdatedTensor& tensor,
                             const Rates& rates) {
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) - tensor.first_block) * kUpdateBlock;
  const std::int64_t end =
      first + kUpdateBlock < tensor.count ? first + kUpdateBlock : tensor.count;
  // A scale that is no number says that the step has failed: everything stays.
  const bool stays = rates.scale != rates.scale;
#pragma unroll 4
  for (std::int64_t i = first + threadIdx.x * Count; i < end; i += blockDim.x * Count) {
    Elements<Count> param = elements_at<Count>(tensor.param, i);
    Elements<Count> m = elements_at<Count>(tensor.m, i), v{};
    if (args.is_adamw) v = elements_at<Count>(tensor.v, i);
    const Elements<Count> gradient = gradient_at<Count>(tensor, i);
#pragma unroll
    for (int j = 0; j < Count && !stays; ++j) {
      const float g = gradient.v[j] * rates.scale;
      if (!args.is_adamw) {
        float velocity = fmaf(param.v[j], static_cast<float>(tensor.weight_decay), g);
        velocity = fmaf(m.v[j], static_cast<float>(tensor.beta1), velocity);
        m.v[j] = unless_below(kSmallestNormal, velocity);
        param.v[j] = fmaf(-m.v[j], rates.step_size, param.v[j]);
        continue;
      }
      m.v[j] = unless_below(kSmallestNormal, fmaf(m.v[j], static_cast<float>(tensor.beta1),
                                                  g * static_cast<float>(1 - tensor.beta1)));
      v.v[j] = unless_below(kSmallestNormal, fmaf(v.v[j], static_cast<float>(tensor.beta2),
                                                  g * g * static_cast<float>(1 - tensor.beta2)));
      const float step =
          m.v[j] / fmaf(sqrtf(v.v[j]), rates.root_correction, static_cast<float>(tensor.eps));
      param.v[j] = fmaf(-step, rates.step_size, param.v[j] * rates.decay);
    }
    put<Count>(tensor.new_m, i, m);
    if (args.is_adamw) put<Count>(tensor.new_v, i, v);
    put<Count>(tensor.new_param, i, param);
    if (tensor.new_half != nullptr) put_half<Count>(tensor.new_half, i, param);
  }
}

__global__ void update_kernel(UpdateArgs args) {
  __shared__ Rates rates;
  const UpdatedTensor tensor = args.tensors[tensor_of(args.tensors, args.num_tensors, blockIdx.x)];
  if (threadIdx.x == 0) {
    rates.scale = *tensor.scale;
    rates.step_size = *tensor.rate;
    if (args.is_adamw) {
      const double rate = *tensor.rate, step = tensor.random[2];
      rates.decay = static_cast<float>(1 - rate * tensor.weight_decay);
      rates.step_size = static_cast<float>(rate / (1 - pow(tensor.beta1, step)));
      rates.root_correction = static_cast<float>(1 / sqrt(1 - pow(tensor.beta2, step)));
    }
  }
  __syncthreads();
  const bool has_fours = tensor.count % 4 == 0 && (tensor.places == nullptr || tensor.n % 4 == 0);
  if (has_fours)
    update_block<4>(args, tensor, rates);
  else
    update_block<1>(args, tensor, rates);
}

__global__ void square_parts_kernel(SumSquaresArgs args) {
  __shared__ double room[kWarp];
  const SquaredTensor& tensor = args.tensors[tensor_of(args.tensors, args.num_tensors, blockIdx.x)];
  const std::int64_t count =
      tensor.used_rows == nullptr ? real_size(tensor.count) : *tensor.used_rows * tensor.n;
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) - tensor.first_block) * kUpdateBlock;
  const std::int64_t end = first + kUpdateBlock < count ? first + kUpdateBlock : count;
  double sum = 0;
  if (count % 4 == 0) {
#pragma unroll 4
    for (std::int64_t i = first + threadIdx.x * 4; i < end; i += blockDim.x * 4) {
      const Elements<4> x = elements_at<4>(tensor.x, i);
#pragma unroll
      for (int j = 0; j < 4; ++j) sum += static_cast<double>(x.v[j]) * static_cast<double>(x.v[j]);
    }
  } else {
    for (std::int64_t i = first + threadIdx.x; i < end; i += blockDim.x)
      sum += static_cast<double>(tensor.x[i]) * static_cast<double>(tensor.x[i]);
  }
  sum = join_block(sum, 0.0, room, Add());
  if (threadIdx.x == 0) args.parts[blockIdx.x] = sum;
}

__global__ void add_squares_kernel(SumSquaresArgs args) {
  __shared__ double room[kWarp];
  const int index = static_cast<int>(blockIdx.x);
  const std::int64_t first = args.tensors[index].first_block;
  const std::int64_t end =
      index + 1 < args.num_tensors ? args.tensors[index + 1].first_block : args.num_blocks;
  double sum = 0;
  for (std::int64_t i = first + threadIdx.x; i < end; i += blockDim.x) sum += args.parts[i];
  sum = join_block(sum, 0.0, room, Add());
  if (threadIdx.x == 0) *args.tensors[index].sum = static_cast<float>(sum);
}

}  // namespace

void update(const UpdateArgs& args, Stream* stream) {
  if (args.num_blocks == 0) return;
  update_kernel<<<static_cast<unsigned>(args.num_blocks), kThreads, 0, stream_of(stream)>>>(args);
}

void sum_squares(const SumSquaresArgs& args, Stream* stream) {
  if (args.num_tensors == 0) return;
  if (args.num_blocks != 0)
    square_parts_kernel<<<static_cast<unsigned>(args.num_blocks), kThreads, 0, stream_of(stream)>>>(
        args);
  add_squares_kernel<<<static_cast<unsigned>(args.num_tensors), kThreads, 0, stream_of(stream)>>>(
      args);
}

}  // namespace lathe::engine::cuda

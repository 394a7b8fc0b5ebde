// One step of an optimizer over all parameters in one launch, and what gradients are clipped by.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

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

__device__ float gradient_at(const UpdatedTensor& tensor, std::int64_t i) {
  if (tensor.places == nullptr) return tensor.gradient[i];
  const std::int64_t row = i / tensor.n, place = tensor.places[row];
  return place < 0 ? 0.0f : tensor.gradient[place * tensor.n + (i - row * tensor.n)];
}

__global__ void update_kernel(UpdateArgs args) {
  __shared__ Rates rates;
  const UpdatedTensor tensor = args.tensors[tensor_of(args.tensors, args.num_tensors, blockIdx.x)];
  if (threadIdx.x == 0) {
    rates.scale = *tensor.scale;
    if (args.is_adamw) {
      const double rate = *tensor.rate, step = tensor.random[2];
      rates.decay = static_cast<float>(1 - rate * tensor.weight_decay);
      rates.step_size = static_cast<float>(rate / (1 - pow(tensor.beta1, step)));
      rates.root_correction = static_cast<float>(1 / sqrt(1 - pow(tensor.beta2, step)));
    }
  }
  __syncthreads();
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) - tensor.first_block) * kUpdateBlock;
  const std::int64_t end =
      first + kUpdateBlock < tensor.count ? first + kUpdateBlock : tensor.count;
  // A scale that is no number says that the step has failed: everything stays.
  const bool stays = rates.scale != rates.scale;
  for (std::int64_t i = first + threadIdx.x; i < end; i += blockDim.x) {
    if (stays) {
      tensor.new_param[i] = tensor.param[i];
      tensor.new_m[i] = tensor.m[i];
      if (args.is_adamw) tensor.new_v[i] = tensor.v[i];
      continue;
    }
    const float g = gradient_at(tensor, i) * rates.scale;
    const float param = tensor.param[i];
    if (!args.is_adamw) {
      float velocity = fmaf(param, static_cast<float>(tensor.weight_decay), g);
      velocity = fmaf(tensor.m[i], static_cast<float>(tensor.beta1), velocity);
      velocity = unless_below(kSmallestNormal, velocity);
      tensor.new_m[i] = velocity;
      tensor.new_param[i] = fmaf(-velocity, *tensor.rate, param);
      continue;
    }
    const float m =
        unless_below(kSmallestNormal, fmaf(tensor.m[i], static_cast<float>(tensor.beta1),
                                           g * static_cast<float>(1 - tensor.beta1)));
    const float v =
        unless_below(kSmallestNormal, fmaf(tensor.v[i], static_cast<float>(tensor.beta2),
                                           g * g * static_cast<float>(1 - tensor.beta2)));
    const float step = m / fmaf(sqrtf(v), rates.root_correction, static_cast<float>(tensor.eps));
    tensor.new_m[i] = m;
    tensor.new_v[i] = v;
    tensor.new_param[i] = fmaf(-step, rates.step_size, param * rates.decay);
  }
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
  for (std::int64_t i = first + threadIdx.x; i < end; i += blockDim.x) {
    const double x = tensor.x[i];
    sum += x * x;
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

__global__ void gradient_scale_kernel(GradientScaleArgs args) {
  const double count = *args.count, norm = sqrt(static_cast<double>(*args.squares)) / count;
  double scale = 1.0 / count;
  if (args.max_norm > 0 && norm > args.max_norm) scale *= args.max_norm / (norm + 1e-6);
  if (!isfinite(norm)) scale = NAN;
  *args.scale = static_cast<float>(scale);
  *args.norm = static_cast<float>(norm);
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

void gradient_scale(const GradientScaleArgs& args, Stream* stream) {
  gradient_scale_kernel<<<1, 1, 0, stream_of(stream)>>>(args);
}

}  // namespace lathe::engine::cuda

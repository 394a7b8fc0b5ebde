// Softmax along an axis, cross-entropy and squared error, forward and backward.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

// Where results underflow to zero by definition (ops/underflow.h).
constexpr float kSmallestNormal = 0x1p-126f;
constexpr float kLeastScoreGradient = 0x1p-100f;
constexpr int kRowThreads = 128;
constexpr int kRowsOfBlock = kThreads / kWarp;

__device__ float unless_below(float least, float value) {
  return fabsf(value) < least ? 0.0f : value;
}

// A warp for each line along the axis.
__global__ void softmax_kernel(SoftmaxArgs args) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t real = real_size(args.outer) * args.inner;
  const std::int64_t all = args.outer.capacity * args.inner;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kRowsOfBlock;
  for (std::int64_t line =
           static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kWarp;
       line < all; line += stride) {
    const std::int64_t first = line / args.inner * args.size * args.inner + line % args.inner;
    const float* const x = args.x + first;
    float* const out = args.out + first;
    const std::int64_t end = args.size * args.inner, next = kWarp * args.inner;
    const std::int64_t begin = lane * args.inner;
    if (line >= real) {
      for (std::int64_t i = begin; i < end; i += next) out[i] = 0;
      continue;
    }
    if (args.kind == Softmax::Forward || args.kind == Softmax::Logarithm) {
      float highest = -INFINITY;
      for (std::int64_t i = begin; i < end; i += next) highest = fmaxf(highest, x[i]);
      highest = join_warp(highest, Larger());
      float sum = 0;
      for (std::int64_t i = begin; i < end; i += next) sum += expf(x[i] - highest);
      sum = join_warp(sum, Add());
      const float logarithm = logf(sum);
      for (std::int64_t i = begin; i < end; i += next)
        out[i] = args.kind == Softmax::Logarithm
                     ? x[i] - highest - logarithm
                     : unless_below(kSmallestNormal, expf(x[i] - highest) / sum);
      continue;
    }
    const float* const y = args.y + first;
    const bool is_logarithm = args.kind == Softmax::LogarithmGradient;
    float sum = 0;
    for (std::int64_t i = begin; i < end; i += next) sum += is_logarithm ? x[i] : x[i] * y[i];
    sum = join_warp(sum, Add());
    for (std::int64_t i = begin; i < end; i += next)
      out[i] = is_logarithm ? x[i] - expf(y[i]) * sum
                            : unless_below(kLeastScoreGradient, y[i] * (x[i] - sum));
  }
}

// The largest logit of a row, and the sum of the exponentials of what the others are below it, by
// all threads of a block.
struct RowExponentials {
  float highest, sum;
};
__device__ RowExponentials exponentials_of_row(const float* x, std::int64_t classes,
                                               float (&room)[kWarp]) {
  float highest = -INFINITY;
  for (std::int64_t i = threadIdx.x; i < classes; i += blockDim.x) highest = fmaxf(highest, x[i]);
  highest = join_block(highest, -INFINITY, room, Larger());
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < classes; i += blockDim.x) sum += expf(x[i] - highest);
  return {highest, join_block(sum, 0.0f, room, Add())};
}

// A block of threads for each row. A label that is none makes the row NaN, so that no optimizer
// moves before the fault is seen.
__global__ void cross_entropy_kernel(CrossEntropyArgs args) {
  __shared__ float room[kWarp];
  const std::int64_t real = real_size(args.rows);
  double* const counts = args.losses + args.rows.capacity;
  for (std::int64_t row = blockIdx.x; row < real; row += gridDim.x) {
    const std::int64_t label = integer_at(args.labels, row);
    if (label == args.ignore_index) {
      if (threadIdx.x == 0) args.losses[row] = counts[row] = 0;
      continue;
    }
    const float* const x = args.logits + row * args.classes;
    const auto [highest, sum] = exponentials_of_row(x, args.classes, room);
    if (threadIdx.x != 0) continue;
    const bool is_label = label >= 0 && label < args.classes;
    if (!is_label) report(args.fault);
    args.losses[row] = is_label ? log(static_cast<double>(sum)) + static_cast<double>(highest) -
                                      static_cast<double>(x[label])
                                : NAN;
    counts[row] = 1;
  }
}

__global__ void add_losses_kernel(CrossEntropyArgs args) {
  __shared__ double room[kWarp];
  const std::int64_t real = real_size(args.rows);
  double sum = 0, count = 0;
  for (std::int64_t row = threadIdx.x; row < real; row += blockDim.x) {
    sum += args.losses[row];
    count += args.losses[args.rows.capacity + row];
  }
  sum = join_block(sum, 0.0, room, Add());
  count = join_block(count, 0.0, room, Add());
  if (threadIdx.x != 0) return;
  *args.sum = static_cast<float>(sum);
  *args.count = static_cast<float>(count);
}

__global__ void cross_entropy_gradient_kernel(CrossEntropyGradientArgs args) {
  __shared__ float room[kWarp];
  const std::int64_t real = real_size(args.rows);
  for (std::int64_t row = blockIdx.x; row < args.rows.capacity; row += gridDim.x) {
    float* const out = args.dlogits + row * args.classes;
    const std::int64_t label = row < real ? integer_at(args.labels, row) : args.ignore_index;
    if (label == args.ignore_index || row >= real) {
      for (std::int64_t i = threadIdx.x; i < args.classes; i += blockDim.x) out[i] = 0;
      continue;
    }
    const float* const x = args.logits + row * args.classes;
    const auto [highest, sum] = exponentials_of_row(x, args.classes, room);
    const bool is_label = label >= 0 && label < args.classes;
    if (!is_label && threadIdx.x == 0) report(args.fault);
    const float dsum = is_label ? *args.dsum : NAN, scale = dsum / sum;
    for (std::int64_t i = threadIdx.x; i < args.classes; i += blockDim.x) {
      const float share = unless_below(kLeastScoreGradient, expf(x[i] - highest) * scale);
      out[i] = i == label ? share - dsum : share;
    }
  }
}

__global__ void squared_error_kernel(SquaredErrorArgs args) {
  __shared__ double room[kWarp];
  const std::int64_t real = real_size(args.elements);
  double sum = 0;
  for (std::int64_t i = global_thread(); i < real; i += grid_stride()) {
    const double difference =
        static_cast<double>(args.prediction[i]) - static_cast<double>(args.target[i]);
    sum += difference * difference;
  }
  sum = join_block(sum, 0.0, room, Add());
  if (threadIdx.x == 0) args.scratch[blockIdx.x] = sum;
}

__global__ void add_squared_errors_kernel(SquaredErrorArgs args) {
  __shared__ double room[kWarp];
  const double sum = join_block(args.scratch[threadIdx.x], 0.0, room, Add());
  if (threadIdx.x != 0) return;
  *args.sum = static_cast<float>(sum);
  *args.count = static_cast<float>(real_size(args.elements));
}

__global__ void squared_error_gradient_kernel(SquaredErrorGradientArgs args) {
  const std::int64_t real = real_size(args.elements);
  const float factor = 2 * *args.dsum;
  for (std::int64_t i = global_thread(); i < args.elements.capacity; i += grid_stride())
    args.dx[i] = i < real ? (args.prediction[i] - args.target[i]) * factor : 0.0f;
}

static_assert(kSquaredErrorBlocks == kThreads, "one thread adds each block's sum");

}  // namespace

void softmax(const SoftmaxArgs& args, Stream* stream) {
  const std::int64_t lines = args.outer.capacity * args.inner;
  if (lines == 0 || args.size == 0) return;
  softmax_kernel<<<blocks_for(lines, kRowsOfBlock), kThreads, 0, stream_of(stream)>>>(args);
}

void cross_entropy(const CrossEntropyArgs& args, Stream* stream) {
  if (args.rows.capacity != 0)
    cross_entropy_kernel<<<blocks_for(args.rows.capacity, 1, 1 << 16), kRowThreads, 0,
                           stream_of(stream)>>>(args);
  add_losses_kernel<<<1, kThreads, 0, stream_of(stream)>>>(args);
}

void cross_entropy_gradient(const CrossEntropyGradientArgs& args, Stream* stream) {
  if (args.rows.capacity == 0) return;
  cross_entropy_gradient_kernel<<<blocks_for(args.rows.capacity, 1, 1 << 16), kRowThreads, 0,
                                  stream_of(stream)>>>(args);
}

void squared_error(const SquaredErrorArgs& args, Stream* stream) {
  squared_error_kernel<<<kSquaredErrorBlocks, kThreads, 0, stream_of(stream)>>>(args);
  add_squared_errors_kernel<<<1, kThreads, 0, stream_of(stream)>>>(args);
}

void squared_error_gradient(const SquaredErrorGradientArgs& args, Stream* stream) {
  if (args.elements.capacity == 0) return;
  squared_error_gradient_kernel<<<blocks_for(args.elements.capacity, kThreads), kThreads, 0,
                                  stream_of(stream)>>>(args);
}

}  // namespace lathe::engine::cuda

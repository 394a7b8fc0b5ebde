// Norms of channels, forward and backward. What is summed over a channel is summed in double by
// blocks whose number follows from the sizes, and then in their order; then every number of the
// result is a sum of its operands by factors of its channel.

#include "lathe/engine/cuda/arguments/batch_norm.h"
#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kLanes = 32, kLines = 8;

bool sums_anything(ChannelNorm kind) {
  return kind != ChannelNorm::Given;
}

__device__ float number_at(const void* from, Number as, std::int64_t at) {
  return as == Number::BF16 ? __bfloat162float(static_cast<const __nv_bfloat16*>(from)[at])
                            : static_cast<const float*>(from)[at];
}

// Two sums of each channel: of x and its square, or of dy and dy * (x - mean).
__device__ void add_terms(const BatchNormArgs& args, std::int64_t at, std::int64_t channel,
                          double& first, double& second) {
  const double x = number_at(args.x, args.x_as, at);
  if (args.kind == ChannelNorm::Own) {
    first += x;
    second += x * x;
    return;
  }
  const double dy = number_at(args.dy, args.dy_as, at);
  first += dy;
  second += dy * (x - args.mean[channel]);
}

// Numbers of a channel that lie in runs: a block has one channel.
__global__ void run_sums_kernel(const __grid_constant__ BatchNormArgs args) {
  __shared__ double room[kWarp];
  const std::int64_t channel = blockIdx.x, count = args.sizes.count();
  const std::int64_t begin = count * blockIdx.y / gridDim.y;
  const std::int64_t end = count * (blockIdx.y + 1) / gridDim.y;
  double first = 0, second = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    const std::int64_t outer = i / args.sizes.inner;
    const std::int64_t at =
        (outer * args.sizes.channels + channel) * args.sizes.inner + (i - outer * args.sizes.inner);
    add_terms(args, at, channel, first, second);
  }
  const auto add = [](double a, double b) { return a + b; };
  first = join_block(first, 0.0, room, add);
  second = join_block(second, 0.0, room, add);
  if (threadIdx.x != 0) return;
  double* const to = args.sums + (blockIdx.y * args.sizes.channels + channel) * 2;
  to[0] = first;
  to[1] = second;
}

// Channels that lie side by side: a block has 32 of them.
__global__ void row_sums_kernel(const __grid_constant__ BatchNormArgs args) {
  __shared__ double rooms[2][kLines][kLanes];
  const std::int64_t channel = std::int64_t{blockIdx.x} * kLanes + threadIdx.x;
  const std::int64_t count = args.sizes.outer;
  const std::int64_t begin = count * blockIdx.y / gridDim.y;
  const std::int64_t end = count * (blockIdx.y + 1) / gridDim.y;
  double first = 0, second = 0;
  if (channel < args.sizes.channels)
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kLines)
      add_terms(args, row * args.sizes.channels + channel, channel, first, second);
  rooms[0][threadIdx.y][threadIdx.x] = first;
  rooms[1][threadIdx.y][threadIdx.x] = second;
  __syncthreads();
  if (threadIdx.y > 1 || channel >= args.sizes.channels) return;
  double total = 0;
#pragma unroll
  for (int line = 0; line < kLines; ++line) total += rooms[threadIdx.y][line][threadIdx.x];
  args.sums[(blockIdx.y * args.sizes.channels + channel) * 2 + threadIdx.y] = total;
}

// The factors of a channel: y = of_dy * dy + of_x * (x - center) + shift.
__global__ void coefficients_kernel(const __grid_constant__ BatchNormArgs args, int parts) {
  const std::int64_t c = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t channels = args.sizes.channels;
  if (c >= channels) return;
  double first = 0, second = 0;
  for (int part = 0; part < parts; ++part) {
    first += args.sums[(part * channels + c) * 2];
    second += args.sums[(part * channels + c) * 2 + 1];
  }
  const auto n = static_cast<double>(args.sizes.count());
  const double weight = args.weight[c];
  double of_dy = 0, of_x = 0, center = 0, shift = 0;
  switch (args.kind) {
    case ChannelNorm::Given:
      center = args.mean[c];
      of_x = weight / sqrt(args.variance[c] + args.eps);
      shift = args.bias[c];
      break;
    case ChannelNorm::Own: {
      center = first / n;
      const double squares = second - first * center;  // about the mean
      const double about = squares < 0 ? 0.0 : squares;
      of_x = weight / sqrt(about / n + args.eps);
      if (args.bias != nullptr) shift = args.bias[c];  // statistics alone need none
      args.results[0][c] = static_cast<float>(center);
      args.results[1][c] = static_cast<float>(about / (n - 1));
      if (args.results[2] != nullptr) args.results[2][c] = static_cast<float>(of_x);
      break;
    }
    case ChannelNorm::GivenGradient: {
      const double scale = 1.0 / sqrt(args.variance[c] + args.eps);
      of_dy = scale * weight;
      args.results[0][c] = static_cast<float>(second * scale);
      args.results[1][c] = static_cast<float>(first);
      args.results[2][c] = static_cast<float>(-scale * weight * first);
      args.results[3][c] = static_cast<float>(-0.5 * scale * scale * weight * second * scale);
      break;
    }
    case ChannelNorm::OwnGradient: {
      const double scale = 1.0 / sqrt(args.variance[c] * (n - 1) / n + args.eps);
      center = args.mean[c];
      of_dy = scale * weight;
      of_x = -scale * weight * scale * scale * second / n;
      shift = -scale * weight * first / n;
      if (args.dmean != nullptr) shift += args.dmean[c] / n;
      if (args.dvariance != nullptr) of_x += 2.0 * args.dvariance[c] / (n - 1);
      args.results[0][c] = static_cast<float>(second * scale);
      args.results[1][c] = static_cast<float>(first);
      if (args.results[2] == nullptr) break;
      args.results[2][c] = static_cast<float>(of_dy);
      args.results[3][c] = static_cast<float>(first / n);
      args.results[4][c] = static_cast<float>(scale * scale * second / n);
      break;
    }
  }
  args.coefficients[c] = static_cast<float>(of_dy);
  args.coefficients[channels + c] = static_cast<float>(of_x);
  args.coefficients[2 * channels + c] = static_cast<float>(center);
  args.coefficients[3 * channels + c] = static_cast<float>(shift);
}

__global__ void scale_kernel(const __grid_constant__ BatchNormArgs args) {
  const std::int64_t channels = args.sizes.channels;
  const std::int64_t count = args.sizes.count() * channels;
  const bool reads_x = args.kind != ChannelNorm::GivenGradient;
  const bool reads_dy =
      args.kind == ChannelNorm::GivenGradient || args.kind == ChannelNorm::OwnGradient;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t c = i / args.sizes.inner % channels;
    float y = args.coefficients[3 * channels + c];
    if (reads_x)
      y = fmaf(number_at(args.x, args.x_as, i) - args.coefficients[2 * channels + c],
               args.coefficients[channels + c], y);
    if (reads_dy) y = fmaf(number_at(args.dy, args.dy_as, i), args.coefficients[c], y);
    if (args.y != nullptr) args.y[i] = y;
    if (args.y_half != nullptr) args.y_half[i] = bf16_bits(y);
  }
}

// Four neighbours at a time, which have one row where channels come in fours.
template <int Each>
__global__ void scale_channels_kernel(const __grid_constant__ ScaleChannelsArgs args) {
  const std::int64_t count = args.rows * args.channels;
  const auto channels = static_cast<std::uint32_t>(args.channels);
  for (std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * Each; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x * Each) {
    const std::uint32_t first = i <= 0x7fffffff ? static_cast<std::uint32_t>(i) % channels
                                                : static_cast<std::uint32_t>(i % channels);
    float y[Each];
#pragma unroll
    for (int e = 0; e < Each; ++e) {
      const std::uint32_t c = first + static_cast<std::uint32_t>(e);
      const float scaled = (number_at(args.x, args.x_as, i + e) - args.mean[c]) * args.slope[c];
      y[e] =
          args.dy == nullptr
              ? scaled + args.shift[c]
              : args.factor[c] * (number_at(args.dy, args.dy_as, i + e) - args.shift[c] - scaled);
    }
    if constexpr (Each == 4) {
      if (args.y != nullptr)
        *reinterpret_cast<float4*>(args.y + i) = make_float4(y[0], y[1], y[2], y[3]);
      if (args.y_half != nullptr)
        *reinterpret_cast<uint2*>(args.y_half + i) =
            make_uint2(to_bf16_pair(y[0], y[1]), to_bf16_pair(y[2], y[3]));
    } else {
      if (args.y != nullptr) args.y[i] = y[0];
      if (args.y_half != nullptr) args.y_half[i] = bf16_bits(y[0]);
    }
  }
}

__global__ void running_average_kernel(const __grid_constant__ RunningAverageArgs args) {
  const float scale = *args.scale;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const float kept = args.kept[i];
    args.y[i] = scale != scale ? kept : fmaf(args.momentum, args.seen[i] - kept, kept);
  }
}

}  // namespace

void batch_norm(const BatchNormArgs& args, Stream* stream) {
  const std::int64_t count = args.sizes.count() * args.sizes.channels;
  const auto channels = static_cast<unsigned>(args.sizes.channels);
  if (channels == 0) return;
  const auto parts = static_cast<unsigned>(norm_parts(args.sizes));
  const bool has_sums = sums_anything(args.kind);
  if (has_sums && args.sizes.inner == 1)
    row_sums_kernel<<<dim3((channels + kLanes - 1) / kLanes, parts), dim3(kLanes, kLines), 0,
                      stream_of(stream)>>>(args);
  else if (has_sums)
    run_sums_kernel<<<dim3(channels, parts), kThreads, 0, stream_of(stream)>>>(args);
  coefficients_kernel<<<(channels + 127) / 128, 128, 0, stream_of(stream)>>>(
      args, has_sums ? static_cast<int>(parts) : 0);
  if (count == 0 || (args.y == nullptr && args.y_half == nullptr)) return;
  scale_kernel<<<blocks_for(count, kThreads, 1 << 14), kThreads, 0, stream_of(stream)>>>(args);
}

void scale_channels(const ScaleChannelsArgs& args, Stream* stream) {
  const std::int64_t count = args.rows * args.channels;
  if (count == 0) return;
  constexpr std::int64_t kMost = 1 << 14;
  if (args.channels % 4 == 0)
    scale_channels_kernel<4>
        <<<blocks_for(count / 4, kThreads, kMost), kThreads, 0, stream_of(stream)>>>(args);
  else
    scale_channels_kernel<1>
        <<<blocks_for(count, kThreads, kMost), kThreads, 0, stream_of(stream)>>>(args);
}

void running_average(const RunningAverageArgs& args, Stream* stream) {
  if (args.count == 0) return;
  running_average_kernel<<<blocks_for(args.count, kThreads), kThreads, 0, stream_of(stream)>>>(
      args);
}

}  // namespace lathe::engine::cuda

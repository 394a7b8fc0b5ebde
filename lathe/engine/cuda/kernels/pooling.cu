// Pooling and its gradients. Gradients are gathered, not scattered: a number of dx goes through the
// windows that hold it, so that every sum has one order.

#include "lathe/engine/cuda/arguments/pooling.h"
#include "lathe/engine/cuda/kernels/early_launch.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {
namespace {

__device__ float pooled_at(const PoolArgs& args, std::int64_t at) {
  return args.x_as == Number::BF16 ? __bfloat162float(static_cast<const __nv_bfloat16*>(args.x)[at])
                                   : static_cast<const float*>(args.x)[at];
}
__device__ std::int64_t place_of(const PooledImages& places, std::int64_t image, int line,
                                 int column, int channel) {
  return image * places.of_image + line * places.of_line + column * places.of_column +
         channel * places.of_channel;
}

// The part of a window that lies inside.
struct Span {
  int begin, end;
};
__device__ Span span_of(const WindowAxis& axis, int place, int size) {
  const int first = place * axis.step + axis.offset, last = first + axis.taps;
  return {first < 0 ? 0 : first, last > size ? size : last};
}
__device__ float divisor_of(const PoolArgs& args, Span lines, Span columns) {
  return static_cast<float>(args.counts_padding
                                ? args.axes[0].taps * args.axes[1].taps
                                : (lines.end - lines.begin) * (columns.end - columns.begin));
}

__device__ void write_pooled(const PoolArgs& args, std::int64_t at, float value) {
  if (args.y != nullptr) args.y[at] = value;
  if (args.y_half != nullptr) args.y_half[at] = bf16_bits(value);
}

// Of the numbers of a result, channels go fastest where they lie side by side, else columns.
struct PooledPlace {
  std::int64_t image;
  int line, column, channel;
};
__device__ PooledPlace pooled_place(std::int64_t i, const PooledImages& places, int channels,
                                    int height, int width) {
  PooledPlace at{};
  if (places.of_channel == 1) {
    at.channel = static_cast<int>(i % channels);
    i /= channels;
  }
  at.column = static_cast<int>(i % width);
  i /= width;
  at.line = static_cast<int>(i % height);
  i /= height;
  if (places.of_channel != 1) {
    at.channel = static_cast<int>(i % channels);
    i /= channels;
  }
  at.image = i;
  return at;
}

__global__ void pool_kernel(const __grid_constant__ PoolArgs args) {
  const std::int64_t count =
      std::int64_t{args.count} * args.channels * args.y_height * args.y_width;
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const PooledPlace at =
        pooled_place(i, args.y_places, args.channels, args.y_height, args.y_width);
    const Span lines = span_of(args.axes[0], at.line, args.height);
    const Span columns = span_of(args.axes[1], at.column, args.width);
    float result = 0;
    bool is_first = true;
    for (int line = lines.begin; line < lines.end; ++line)
      for (int column = columns.begin; column < columns.end; ++column) {
        const float x =
            pooled_at(args, place_of(args.x_places, at.image, line, column, at.channel));
        if (!args.is_largest)
          result += x;
        else if (is_first || (result == result && !(x <= result)))  // NaN stays
          result = x;
        is_first = false;
      }
    if (!args.is_largest) result /= divisor_of(args, lines, columns);
    write_pooled(args, place_of(args.y_places, at.image, at.line, at.column, at.channel), result);
  }
}

// The largest of eight channels of bfloat16 at once, which lie side by side in both.
__device__ __nv_bfloat162 larger(__nv_bfloat162 one, __nv_bfloat162 other) {
  return __hmax2_nan(one, other);
}
__global__ void largest_of_eight_kernel(const __grid_constant__ PoolArgs args) {
  let_next_begin();
  wait_for_previous();
  const int eights = args.channels / 8;
  const std::int64_t count = std::int64_t{args.count} * args.y_height * args.y_width * eights;
  const auto* const x = static_cast<const uint4*>(args.x);
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t pixel = i / eights, row = pixel / args.y_width;
    const int eight = static_cast<int>(i - pixel * eights);
    const std::int64_t image = row / args.y_height;
    const Span lines =
        span_of(args.axes[0], static_cast<int>(row - image * args.y_height), args.height);
    const Span columns =
        span_of(args.axes[1], static_cast<int>(pixel - row * args.y_width), args.width);
    uint4 result = {};
    bool is_first = true;
    for (int line = lines.begin; line < lines.end; ++line) {
      const uint4* from =
          x + ((image * args.height + line) * args.width + columns.begin) * eights + eight;
#pragma unroll 3
      for (int column = columns.begin; column < columns.end; ++column, from += eights) {
        const uint4 next = *from;
        if (is_first) {
          result = next;
          is_first = false;
          continue;
        }
        auto* const held = reinterpret_cast<__nv_bfloat162*>(&result);
        const auto* const seen = reinterpret_cast<const __nv_bfloat162*>(&next);
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) held[pair] = larger(held[pair], seen[pair]);
      }
    }
    reinterpret_cast<uint4*>(args.y_half)[i] = result;
  }
}

// Large windows: a block has one window of 64 channels that lie side by side, 32 threads by 8; each
// thread has eight channels of every 32nd pixel.
constexpr int kWideChannels = 64, kWidePixels = 32;
__global__ void __launch_bounds__(kWidePixels * 8)
    mean_kernel(const __grid_constant__ PoolArgs args) {
  __shared__ float sums[kWidePixels][kWideChannels];
  let_next_begin();
  wait_for_previous();
  const int groups = (args.channels + kWideChannels - 1) / kWideChannels;
  const std::int64_t pixel_of_y = blockIdx.x / groups, row = pixel_of_y / args.y_width;
  const std::int64_t image = row / args.y_height;
  const int first = static_cast<int>(blockIdx.x % groups) * kWideChannels;
  const Span lines =
      span_of(args.axes[0], static_cast<int>(row - image * args.y_height), args.height);
  const Span columns =
      span_of(args.axes[1], static_cast<int>(pixel_of_y - row * args.y_width), args.width);
  const int width = columns.end - columns.begin, pixels = width * (lines.end - lines.begin);
  const int own = static_cast<int>(threadIdx.x) / 8, eight = static_cast<int>(threadIdx.x) % 8 * 8;
  float sum[8] = {};
#pragma unroll 2
  for (int i = own; i < pixels; i += kWidePixels) {
    const std::int64_t at = place_of(args.x_places, image, lines.begin + i / width,
                                     columns.begin + i % width, first + eight);
    if (args.x_as == Number::BF16 && args.channels % 8 == 0) {
      if (first + eight >= args.channels) break;
      const uint4 words =
          *reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(args.x) + at);
      const std::uint32_t all[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        sum[2 * pair] += __uint_as_float(all[pair] << 16);
        sum[2 * pair + 1] += __uint_as_float(all[pair] & 0xffff0000u);
      }
      continue;
    }
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (first + eight + e < args.channels) sum[e] += pooled_at(args, at + e);
  }
#pragma unroll
  for (int e = 0; e < 8; ++e) sums[own][eight + e] = sum[e];
  __syncthreads();
  const int channel = static_cast<int>(threadIdx.x);
  if (channel >= kWideChannels || first + channel >= args.channels) return;
  float total = 0;
#pragma unroll
  for (int i = 0; i < kWidePixels; ++i) total += sums[i][channel];
  write_pooled(args, pixel_of_y * args.channels + first + channel,
               total / divisor_of(args, lines, columns));
}

// Windows of one axis that hold a place: those from `begin` to `end`.
__device__ Span windows_of(const WindowAxis& axis, int place, int places) {
  const int from = place - axis.offset;  // of the first pixel of window 0
  const int first = from - axis.taps + 1;
  const int begin = first <= 0 ? 0 : (first + axis.step - 1) / axis.step;
  const int end = from / axis.step + 1;
  return {begin, end > places ? places : end};
}

__global__ void pool_gradient_kernel(const __grid_constant__ PoolGradientArgs gradient) {
  const PoolArgs& args = gradient.pool;
  const std::int64_t count = std::int64_t{args.count} * args.channels * args.height * args.width;
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const PooledPlace at = pooled_place(i, args.x_places, args.channels, args.height, args.width);
    const Span down = windows_of(args.axes[0], at.line, args.y_height);
    const Span across = windows_of(args.axes[1], at.column, args.y_width);
    float sum = 0;
    for (int row = down.begin; row < down.end; ++row)
      for (int place = across.begin; place < across.end; ++place) {
        const Span lines = span_of(args.axes[0], row, args.height);
        const Span columns = span_of(args.axes[1], place, args.width);
        const float dy = gradient.dy[place_of(args.y_places, at.image, row, place, at.channel)];
        if (!args.is_largest) {
          sum += dy / divisor_of(args, lines, columns);
          continue;
        }
        // Whether the first of the largest is here.
        int best_line = lines.begin, best_column = columns.begin;
        float best = 0;
        bool is_first = true;
        for (int line = lines.begin; line < lines.end; ++line)
          for (int column = columns.begin; column < columns.end; ++column) {
            const float x =
                pooled_at(args, place_of(args.x_places, at.image, line, column, at.channel));
            if (is_first || (best == best && !(x <= best))) {
              best = x;
              best_line = line;
              best_column = column;
            }
            is_first = false;
          }
        if (best_line == at.line && best_column == at.column) sum += dy;
      }
    gradient.dx[place_of(args.x_places, at.image, at.line, at.column, at.channel)] = sum;
  }
}

bool is_last(const PoolArgs& args) {
  return args.x_places.of_channel == 1 && args.y_places.of_channel == 1;
}

}  // namespace

void pool(const PoolArgs& args, Stream* stream) {
  const std::int64_t pixels = std::int64_t{args.count} * args.y_height * args.y_width;
  if (pixels * args.channels == 0) return;
  const bool are_halves = args.x_as == Number::BF16 && args.y_half != nullptr && args.y == nullptr;
  if (args.is_largest && are_halves && is_last(args) && args.channels % 8 == 0)
    return launch_early(true, largest_of_eight_kernel,
                        dim3(blocks_for(pixels * (args.channels / 8), kThreads, 1 << 16)), kThreads,
                        0, stream, args);
  constexpr int kLargeWindow = 32;
  if (!args.is_largest && is_last(args) && args.axes[0].taps * args.axes[1].taps >= kLargeWindow)
    return launch_early(
        true, mean_kernel,
        dim3(static_cast<unsigned>(pixels * ((args.channels + kWideChannels - 1) / kWideChannels))),
        kWidePixels * 8, 0, stream, args);
  pool_kernel<<<blocks_for(pixels * args.channels, kThreads, 1 << 16), kThreads, 0,
                stream_of(stream)>>>(args);
}

void pool_gradient(const PoolGradientArgs& args, Stream* stream) {
  const std::int64_t count =
      std::int64_t{args.pool.count} * args.pool.channels * args.pool.height * args.pool.width;
  if (count == 0) return;
  pool_gradient_kernel<<<blocks_for(count, kThreads, 1 << 16), kThreads, 0, stream_of(stream)>>>(
      args);
}

}  // namespace lathe::engine::cuda

// The gradient of a convolution's filters: dw[outputs, taps, inputs] is summed over the pixels of
// dy, of which each part has a range, and then over the parts in order.

#include "lathe/engine/cuda/kernels/attention_tensor.cuh"
#include "lathe/engine/cuda/kernels/convolution_tile.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"

namespace lathe::engine::cuda {
namespace {

// Where the window of a pixel of dy has the pixel of x under a tap.
struct TapOfWindow {
  int down, across;
};
__device__ std::int64_t pixel_under(const FilterGradientArgs& args, int pixel, TapOfWindow tap) {
  const int plane = args.y_height * args.y_width, image = pixel / plane;
  const int rest = pixel - image * plane, row = rest / args.y_width;
  const int line = row * args.axes[0].step + args.axes[0].offset + tap.down * args.axes[0].spread;
  const int column = (rest - row * args.y_width) * args.axes[1].step + args.axes[1].offset +
                     tap.across * args.axes[1].spread;
  if (line < 0 || line >= args.height || column < 0 || column >= args.width) return -1;
  return (std::int64_t{image} * args.height + line) * args.width + column;
}

__device__ int part_begin(std::int64_t pixels, int part, int parts) {
  return static_cast<int>(pixels * part / parts);
}

constexpr int kFilterTile = 64, kPixels = 16, kOwn = 4;

// Floats: 64 outputs by 64 inputs of one tap, 4 x 4 for each thread.
template <Precision P>
__global__ void __launch_bounds__(256)
    filter_gradient_kernel(const __grid_constant__ FilterGradientArgs args) {
  __shared__ float left[kPixels][kFilterTile + 4], right[kPixels][kFilterTile + 4];
  const int inputs = args.inputs / args.groups, outputs = args.outputs / args.groups;
  const int taps = args.axes[0].taps * args.axes[1].taps;
  const int tiles_in = (inputs + kFilterTile - 1) / kFilterTile,
            tiles_out = (outputs + kFilterTile - 1) / kFilterTile;
  int block = static_cast<int>(blockIdx.x);
  const int first_in = block % tiles_in * kFilterTile;
  block /= tiles_in;
  const int tap = block % taps;
  block /= taps;
  const int first_out = block % tiles_out * kFilterTile, group = block / tiles_out;
  const TapOfWindow place{tap / args.axes[1].taps, tap % args.axes[1].taps};
  const std::int64_t pixels = std::int64_t{args.count} * args.y_height * args.y_width;
  const int part = static_cast<int>(blockIdx.y);
  const int begin = part_begin(pixels, part, args.parts);
  const int end = part_begin(pixels, part + 1, args.parts);
  const int thread = static_cast<int>(threadIdx.x), across = thread % 16 * kOwn,
            down = thread / 16 * kOwn;
  float sums[kOwn][kOwn] = {};
  for (int first = begin; first < end; first += kPixels) {
    for (int i = thread; i < kPixels * kFilterTile; i += 256) {
      const int line = i / kFilterTile, column = i % kFilterTile, pixel = first + line;
      float dy = 0, x = 0;
      if (pixel < end) {
        if (first_out + column < outputs)
          dy =
              element_at(args.dy, args.dy_as == Number::BF16,
                         std::int64_t{pixel} * args.outputs + group * outputs + first_out + column);
        const std::int64_t under = pixel_under(args, pixel, place);
        if (under >= 0 && first_in + column < inputs)
          x = element_at(args.x, args.x_as == Number::BF16,
                         under * args.inputs + group * inputs + first_in + column);
      }
      left[line][column] = seen<P>(dy);
      right[line][column] = seen<P>(x);
    }
    __syncthreads();
#pragma unroll
    for (int line = 0; line < kPixels; ++line) {
      const float4 a = *reinterpret_cast<const float4*>(&left[line][down]);
      const float4 b = *reinterpret_cast<const float4*>(&right[line][across]);
      const float as[kOwn] = {a.x, a.y, a.z, a.w}, bs[kOwn] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
#pragma unroll
        for (int j = 0; j < kOwn; ++j) sums[i][j] = fmaf(as[i], bs[j], sums[i][j]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kOwn; ++i)
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const int output = first_out + down + i, input = first_in + across + j;
      if (output < outputs && input < inputs)
        args.sums[((std::int64_t{part} * args.outputs + group * outputs + output) * taps + tap) *
                      inputs +
                  input] = sums[i][j];
    }
}

// bfloat16: tiles of 64 pixels lie as in memory, and operands are read across their rows. Two by
// two warps have 32 outputs by 32 inputs each.
constexpr int kStages = 4, kTensorBlock = 128, kTileBytes = kFilterTile * kDepthBytes;

__global__ void __launch_bounds__(kTensorBlock, 3)
    half_filter_gradient_kernel(const __grid_constant__ FilterGradientArgs args) {
  extern __shared__ std::byte room[];
  const int taps = args.axes[0].taps * args.axes[1].taps;
  const int tiles_in = (args.inputs + kFilterTile - 1) / kFilterTile;
  int block = static_cast<int>(blockIdx.x);
  const int first_in = block % tiles_in * kFilterTile;
  block /= tiles_in;
  const int tap = block % taps, first_out = block / taps * kFilterTile;
  const TapOfWindow place{tap / args.axes[1].taps, tap % args.axes[1].taps};
  const std::int64_t pixels = std::int64_t{args.count} * args.y_height * args.y_width;
  const int part = static_cast<int>(blockIdx.y);
  const int begin = part_begin(pixels, part, args.parts);
  const int end = part_begin(pixels, part + 1, args.parts);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const int chunk = thread % 8, own = thread / 8;
  const auto* const dy = static_cast<const __nv_bfloat16*>(args.dy);
  const auto* const x = static_cast<const __nv_bfloat16*>(args.x);
  const auto copy = [&](int first, int stage) {
    std::byte* const lefts = room + stage * 2 * kTileBytes;
    std::byte* const rights = lefts + kTileBytes;
#pragma unroll
    for (int line = own; line < kFilterTile; line += kTensorBlock / 8) {
      const int pixel = first + line;
      const int output = first_out + chunk * 8, input = first_in + chunk * 8;
      const bool has_output = pixel < end && output < args.outputs;
      copy_async(lefts + place_of_chunk(line, chunk),
                 dy + (has_output ? std::int64_t{pixel} * args.outputs + output : 0), has_output);
      const std::int64_t under = pixel < end ? pixel_under(args, pixel, place) : -1;
      const bool has_input = under >= 0 && input < args.inputs;
      copy_async(rights + place_of_chunk(line, chunk),
                 x + (has_input ? under * args.inputs + input : 0), has_input);
    }
  };
  const int num_tiles = (end - begin + kFilterTile - 1) / kFilterTile;
  const int down = warp / 2 * 32, across = warp % 2 * 32;
  Accumulator sums[2][4] = {};
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage < num_tiles) copy(begin + stage * kFilterTile, stage);
    commit_copies();
  }
  int stage = 0;
  for (int i = 0; i < num_tiles; ++i) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    const std::byte* const lefts = room + stage * 2 * kTileBytes;
    const std::byte* const rights = lefts + kTileBytes;
#pragma unroll
    for (int step = 0; step < kFilterTile / 16; ++step) {
      Fragment a[2], b[2];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        // Matrices of 8 pixels by 8 outputs, crossed: pixels 0-7 and outputs 0-7, outputs 8-15,
        // then pixels 8-15.
        const int line = step * 16 + lane / 16 * 8 + lane % 8;
        const int at = (down + m * 16) / 8 + lane / 8 % 2;
        load_matrices_across(lefts + place_of_chunk(line, at), a[m]);
      }
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int line = step * 16 + lane % 16, at = (across + n * 16) / 8 + lane / 16;
        load_matrices_across(rights + place_of_chunk(line, at), b[n]);
      }
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int n = 0; n < 4; ++n)
          Bf16Products::multiply(a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1], sums[m][n]);
    }
    const int ahead = i + kStages - 1;
    if (ahead < num_tiles) copy(begin + ahead * kFilterTile, stage == 0 ? kStages - 1 : stage - 1);
    commit_copies();
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int output = first_out + down + m * 16 + lane / 4 + half * 8;
        const int input = first_in + across + n * 8 + lane % 4 * 2;
        if (output >= args.outputs || input >= args.inputs) continue;
        *reinterpret_cast<float2*>(
            args.sums + ((std::int64_t{part} * args.outputs + output) * taps + tap) * args.inputs +
            input) = make_float2(sums[m][n][2 * half], sums[m][n][2 * half + 1]);
      }
}

// Adds up the parts, and brings taps behind inputs.
__global__ void filter_sums_kernel(const __grid_constant__ FilterGradientArgs args) {
  const int taps = args.axes[0].taps * args.axes[1].taps, inputs = args.inputs / args.groups;
  const std::int64_t count = std::int64_t{args.outputs} * taps * inputs;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    float sum = 0;
    for (int part = 0; part < args.parts; ++part) sum += args.sums[part * count + i];
    const std::int64_t input = i % inputs, tap = i / inputs % taps, output = i / inputs / taps;
    args.dw[(output * inputs + input) * taps + tap] = sum;
  }
}

}  // namespace

void filter_gradient(const FilterGradientArgs& args, Stream* stream) {
  const int taps = args.axes[0].taps * args.axes[1].taps;
  const int inputs = args.inputs / args.groups, outputs = args.outputs / args.groups;
  const auto tiles =
      static_cast<unsigned>((inputs + kFilterTile - 1) / kFilterTile *
                            ((outputs + kFilterTile - 1) / kFilterTile) * taps * args.groups);
  const dim3 grid(tiles, static_cast<unsigned>(args.parts));
  if (tiles == 0) return;
  if (args.precision == Precision::Bf16 && args.groups == 1 && args.dy_as == Number::BF16 &&
      args.x_as == Number::BF16 && args.inputs % 8 == 0 && args.outputs % 8 == 0) {
    constexpr int kBytes = kStages * 2 * kTileBytes;
    static const cudaError_t is_allowed = cudaFuncSetAttribute(
        half_filter_gradient_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    static_cast<void>(is_allowed);
    half_filter_gradient_kernel<<<grid, kTensorBlock, kBytes, stream_of(stream)>>>(args);
  } else if (args.precision == Precision::Bf16) {
    filter_gradient_kernel<Precision::Bf16><<<grid, 256, 0, stream_of(stream)>>>(args);
  } else if (args.precision == Precision::Tf32) {
    filter_gradient_kernel<Precision::Tf32><<<grid, 256, 0, stream_of(stream)>>>(args);
  } else {
    filter_gradient_kernel<Precision::Float32><<<grid, 256, 0, stream_of(stream)>>>(args);
  }
  const std::int64_t count = std::int64_t{args.outputs} * taps * inputs;
  filter_sums_kernel<<<blocks_for(count, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

}  // namespace lathe::engine::cuda

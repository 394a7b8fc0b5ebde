// Convolutions: the precision and the tile are chosen here; images and filters are brought into the
// order that products read; and groups of channels, which have few products each, go one by one.

#include "lathe/engine/cuda/kernels/convolution.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"

namespace lathe::engine::cuda {
namespace {

// The weight's element that filter `row` has at `at` of its depth; negative: padding.
__device__ std::int64_t place_in_weight(const FiltersArgs& args, std::int64_t row,
                                        std::int64_t at) {
  const std::int64_t taps = args.rows_of_taps * args.taps_of_row;
  std::int64_t tap = at / args.channels, channel = at % args.channels;
  if (args.shift >= 0) {
    const std::int64_t pairs = (args.taps_of_row + args.shift + 1) / 2;
    const std::int64_t column = tap % pairs * 2 + channel / 4 - args.shift;
    if (column < 0 || column >= args.taps_of_row) return -1;
    if (tap / pairs >= args.rows_of_taps) return -1;
    tap = tap / pairs * args.taps_of_row + column;
    channel %= 4;
  }
  if (tap >= taps || channel >= (args.is_turned ? args.outputs : args.inputs)) return -1;
  return args.is_turned ? (channel * args.inputs + row) * taps + tap
                        : (row * args.inputs + channel) * taps + tap;
}

__global__ void filters_kernel(const __grid_constant__ FiltersArgs args) {
  const std::int64_t rows = args.is_turned ? args.inputs : args.outputs;
  const std::int64_t count = rows * args.depth;
  const std::int64_t first = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  for (std::int64_t i = first; i < count; i += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t row = i / args.depth, at = i % args.depth;
    const std::int64_t place = place_in_weight(args, row, at), to = row * args.pitch + at;
    float value = place < 0 ? 0.0f : args.weight[place];
    if (args.norm_weight != nullptr)
      value *= static_cast<float>(args.norm_weight[row] / sqrt(args.norm_variance[row] + args.eps));
    if (args.precision == Precision::Bf16)
      static_cast<std::uint16_t*>(args.filters)[to] = bf16_bits(value);
    else
      static_cast<float*>(args.filters)[to] =
          args.precision == Precision::Tf32 ? __uint_as_float(to_tf32(value)) : value;
  }
  if (args.new_bias == nullptr) return;
  for (std::int64_t row = first; row < rows; row += std::int64_t{gridDim.x} * blockDim.x) {
    double bias = args.bias == nullptr ? 0.0 : args.bias[row];
    if (args.norm_weight != nullptr) {
      const double factor = args.norm_weight[row] / sqrt(args.norm_variance[row] + args.eps);
      bias = (bias - args.norm_mean[row]) * factor + args.norm_bias[row];
    }
    if (args.adds_bias) bias += args.new_bias[row];
    args.new_bias[row] = static_cast<float>(bias);
  }
}

// Tiles of 32 pixels and 32 channels cross in shared memory where images are planes.
constexpr int kImageTile = 32, kImageRows = 8;

template <typename Element>
__device__ Element to_element(float value) {
  if constexpr (sizeof(Element) == 2)
    return __float2bfloat16_rn(value);
  else
    return value;
}

template <typename Element>
__global__ void images_kernel(const __grid_constant__ ImagesArgs args) {
  __shared__ float crossed[kImageTile][kImageTile + 1];
  let_next_begin();
  wait_for_previous();
  const bool is_bf16 = args.x_as == Number::BF16;
  auto* const y = static_cast<Element*>(args.y);
  const std::int64_t tiles = (args.pixels + kImageTile - 1) / kImageTile;
  const std::int64_t image = blockIdx.x / tiles;
  const std::int64_t first_pixel = blockIdx.x % tiles * kImageTile;
  const int lane = static_cast<int>(threadIdx.x), line = static_cast<int>(threadIdx.y);
  for (std::int64_t first = 0; first < args.to_channels; first += kImageTile) {
#pragma unroll
    for (int i = line; i < kImageTile; i += kImageRows) {
      const std::int64_t pixel = first_pixel + (args.are_planes ? lane : i);
      const std::int64_t channel = first + (args.are_planes ? i : lane);
      const std::int64_t at = args.are_planes
                                  ? (image * args.channels + channel) * args.pixels + pixel
                                  : (image * args.pixels + pixel) * args.channels + channel;
      const float value =
          pixel < args.pixels && channel < args.channels ? element_at(args.x, is_bf16, at) : 0.0f;
      (args.are_planes ? crossed[lane][i] : crossed[i][lane]) = value;
    }
    __syncthreads();
#pragma unroll
    for (int i = line; i < kImageTile; i += kImageRows)
      if (first_pixel + i < args.pixels && first + lane < args.to_channels)
        y[(image * args.pixels + first_pixel + i) * args.to_channels + first + lane] =
            to_element<Element>(crossed[i][lane]);
    __syncthreads();
  }
}

// Few channels: a thread makes a whole pixel, whose numbers come from as many planes.
template <typename Element, int Channels>
__global__ void few_channels_kernel(const __grid_constant__ ImagesArgs args) {
  let_next_begin();
  wait_for_previous();
  const bool is_bf16 = args.x_as == Number::BF16;
  const std::int64_t count = args.count * args.pixels;
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t image = i / args.pixels, pixel = i - image * args.pixels;
    alignas(16) Element numbers[Channels];
#pragma unroll
    for (int channel = 0; channel < Channels; ++channel) {
      const std::int64_t at = args.are_planes
                                  ? (image * args.channels + channel) * args.pixels + pixel
                                  : i * args.channels + channel;
      numbers[channel] =
          to_element<Element>(channel < args.channels ? element_at(args.x, is_bf16, at) : 0.0f);
    }
    constexpr int kBytes = Channels * static_cast<int>(sizeof(Element));
    if constexpr (kBytes == 8)
      *reinterpret_cast<uint2*>(static_cast<std::byte*>(args.y) + i * kBytes) =
          *reinterpret_cast<const uint2*>(numbers);
    else
#pragma unroll
      for (int chunk = 0; chunk < kBytes / 16; ++chunk)
        *reinterpret_cast<uint4*>(static_cast<std::byte*>(args.y) + i * kBytes + chunk * 16) =
            reinterpret_cast<const uint4*>(numbers)[chunk];
  }
}

template <typename Element>
void launch_images(const ImagesArgs& args, Stream* stream) {
  const auto few = [&](auto kernel) {
    launch_early(true, kernel, dim3(blocks_for(args.count * args.pixels, kThreads)), kThreads, 0,
                 stream, args);
  };
  if (args.to_channels == 4) return few(few_channels_kernel<Element, 4>);
  if (args.to_channels == 8) return few(few_channels_kernel<Element, 8>);
  const std::int64_t tiles = (args.pixels + kImageTile - 1) / kImageTile * args.count;
  images_kernel<Element>
      <<<static_cast<unsigned>(tiles), dim3(kImageTile, kImageRows), 0, stream_of(stream)>>>(args);
}

// A thread makes one number of the result; neighbours have neighbouring channels.
__global__ void grouped_kernel(const __grid_constant__ GroupedConvolutionArgs grouped) {
  const ConvolutionArgs& args = grouped.all;
  const ConvolutionSource& source = args.first;
  const WindowAxis &rows = source.axes[0], &columns = source.axes[1];
  const bool is_bf16 = grouped.x_as == Number::BF16;
  const int inputs = source.channels / grouped.groups, outputs = args.columns / grouped.groups;
  const int plane = args.y_height * args.y_width;
  const std::int64_t count = std::int64_t{args.count} * plane * args.columns;
  const bool rounds = args.precision == Precision::Bf16;
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t row = i / args.columns;
    const int column = static_cast<int>(i - row * args.columns);
    const std::int64_t image = row / plane;
    const int pixel = static_cast<int>(row - image * plane);
    const int top = pixel / args.y_width * rows.step + rows.offset;
    const int left = pixel % args.y_width * columns.step + columns.offset;
    const int first = column / outputs * inputs;
    const float* filter =
        static_cast<const float*>(args.filters) + std::int64_t{column} * source.depth;
    float sum = 0;
    for (int down = 0; down < rows.taps; ++down)
      for (int across = 0; across < columns.taps; ++across, filter += inputs) {
        int line = top + down * rows.spread, place = left + across * columns.spread;
        if (line < 0 || place < 0 || line % rows.divisor != 0 || place % columns.divisor != 0)
          continue;
        line /= rows.divisor;
        place /= columns.divisor;
        if (line >= source.height || place >= source.width) continue;
        const std::int64_t at =
            ((image * source.height + line) * source.width + place) * source.channels + first;
        for (int channel = 0; channel < inputs; ++channel) {
          float x = element_at(source.x, is_bf16, at + channel);
          if (rounds) x = round_to_bf16(x);
          sum = fmaf(x, filter[channel], sum);
        }
      }
    if (args.bias != nullptr) sum += args.bias[column];
    if (args.residual != nullptr)
      sum += element_at(args.residual, args.residual_as == Number::BF16, i);
    sum = apply(args.map, sum, 0);
    const std::int64_t at = args.are_planes ? (image * args.columns + column) * plane + pixel : i;
    if (args.y_half != nullptr) args.y_half[at] = bf16_bits(sum);
    if (args.y != nullptr) args.y[at] = rounds ? round_to_bf16(sum) : sum;
  }
}

}  // namespace

void convolution(const ConvolutionArgs& given, Stream* stream) {
  ConvolutionArgs args = given;
  const std::int64_t rows = std::int64_t{args.count} * args.y_height * args.y_width;
  if (rows == 0 || args.columns == 0) return;
  if (args.tile.rows == 0)
    args.tile = choose_tile(
        rows, args.columns, args.depth() * element_bytes(args.precision) / kDepthBytes,
        num_multiprocessors(), device_attribute(cudaDevAttrComputeCapabilityMajor) == 9);
  switch (args.precision) {
    case Precision::Float32:
      return convolution_float(args, stream);
    case Precision::Tf32:
      return convolution_tf32(args, stream);
    case Precision::Bf16:
      return convolution_bf16(args, stream);
  }
}

void grouped_convolution(const GroupedConvolutionArgs& args, Stream* stream) {
  const std::int64_t count =
      std::int64_t{args.all.count} * args.all.y_height * args.all.y_width * args.all.columns;
  if (count == 0) return;
  grouped_kernel<<<blocks_for(count, kThreads, 1 << 16), kThreads, 0, stream_of(stream)>>>(args);
}

void filters(const FiltersArgs& args, Stream* stream) {
  const std::int64_t count = (args.is_turned ? args.inputs : args.outputs) * args.depth;
  if (count == 0) return;
  filters_kernel<<<blocks_for(count, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

void images(const ImagesArgs& args, Stream* stream) {
  if (args.count * args.pixels == 0) return;
  if (args.is_half)
    launch_images<__nv_bfloat16>(args, stream);
  else
    launch_images<float>(args, stream);
}

}  // namespace lathe::engine::cuda

// The convolutions of ResNet-18 on a GPU, one by one, in each tile that the kernel has.
//
//   bench_cuda_convolution [--precision NAME] [--all] [BATCH...]
//
// Prints a line for each layer and tile: microseconds, the median of replays of a captured run of
// launches, TFLOP/s, and a star at the tile that `choose_tile` takes; with --all every tile, else
// that one and the fastest. The last line of a batch adds up what all layers of the network take.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include "lathe/core/error.h"
#include "lathe/engine/cuda/arguments/convolution.h"
#include "lathe/engine/cuda/cuda_library.h"
#include "lathe/engine/cuda/cuda_memory.h"
#include "lathe/engine/precision.h"

namespace {

using namespace lathe;
namespace cuda = engine::cuda;

struct Layer {
  const char* name;
  int times;  // in the network
  int height, width, channels, filters;
  cuda::WindowAxis rows, columns;
  double flops_of_pixel;  // without padding
};

Layer layer(const char* name, int times, int size, int channels, int filters, int taps,
            int stride) {
  const cuda::WindowAxis axis{.taps = taps, .step = stride, .offset = -(taps / 2)};
  return {name, times,    size,
          size, channels, filters,
          axis, axis,     2.0 * taps * taps * channels * filters};
}

std::vector<Layer> layers(bool is_half) {
  std::vector<Layer> all;
  if (is_half)  // two neighbours of four channels are one pixel
    all.push_back({"stem",
                   1,
                   224,
                   112,
                   8,
                   64,
                   {.taps = 7, .step = 2, .offset = -3},
                   {.taps = 4, .step = 1, .offset = -2},
                   2.0 * 49 * 3 * 64});
  for (const Layer& one :
       {layer("1", 4, 56, 64, 64, 3, 1), layer("2 first", 1, 56, 64, 128, 3, 2),
        layer("2 short", 1, 56, 64, 128, 1, 2), layer("2", 3, 28, 128, 128, 3, 1),
        layer("3 first", 1, 28, 128, 256, 3, 2), layer("3 short", 1, 28, 128, 256, 1, 2),
        layer("3", 3, 14, 256, 256, 3, 1), layer("4 first", 1, 14, 256, 512, 3, 2),
        layer("4 short", 1, 14, 256, 512, 1, 2), layer("4", 3, 7, 512, 512, 3, 1)})
    all.push_back(one);
  return all;
}

class Bench {
 public:
  explicit Bench(cuda::Precision precision)
      : kernels_(*engine::cuda_library().kernels), precision_(precision) {
    engine::check_cuda(kernels_.device.make_stream(&stream_));
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() { kernels_.device.drop_stream(stream_); }

  void run(int batch, bool prints_all) {
    double total = 0, total_flops = 0;
    for (const Layer& one : layers(precision_ == cuda::Precision::Bf16)) {
      const double chosen = run(one, batch, prints_all);
      total += chosen * one.times;
      const int stride = one.rows.step;
      total_flops +=
          one.flops_of_pixel * batch * (one.height / stride) * (one.height / stride) * one.times;
    }
    fmt::print("batch {}: {:.1f} us for all convolutions, {:.0f} TFLOP/s\n", batch, total * 1e6,
               total_flops / total * 1e-12);
    std::fflush(stdout);
  }

 private:
  // The seconds of the chosen tile.
  double run(const Layer& one, int batch, bool prints_all) {
    cuda::ConvolutionArgs args;
    args.precision = precision_;
    args.map = cuda::Map::Relu;
    args.count = batch;
    args.first.height = one.height;
    args.first.width = one.width;
    args.first.channels = one.channels;
    args.columns = one.filters;
    args.first.axes[0] = one.rows;
    args.first.axes[1] = one.columns;
    args.y_height = one.height / one.rows.step;
    args.y_width = one.width / one.columns.step;
    args.first.depth = static_cast<std::int32_t>(cuda::padded_depth(
        std::int64_t{one.rows.taps} * one.columns.taps * one.channels, precision_));
    const std::int64_t element = cuda::element_bytes(precision_);
    const std::int64_t pixels = std::int64_t{batch} * args.y_height * args.y_width;
    const engine::CudaBuffer x =
        numbers(std::int64_t{batch} * one.height * one.width * one.channels * element);
    const engine::CudaBuffer filters =
        numbers(std::int64_t{one.filters} * args.first.depth * element);
    const engine::CudaBuffer bias = numbers(one.filters * 4);
    const engine::CudaBuffer residual = numbers(pixels * one.filters * element);
    const engine::CudaBuffer y = numbers(pixels * one.filters * element);
    args.first.x = x.data();
    args.filters = filters.data();
    args.bias = reinterpret_cast<const float*>(bias.data());
    args.residual = residual.data();
    const bool is_half = precision_ == cuda::Precision::Bf16;
    args.residual_as = is_half ? cuda::Number::BF16 : cuda::Number::F32;
    if (is_half)
      args.y_half = reinterpret_cast<std::uint16_t*>(y.data());
    else
      args.y = reinterpret_cast<float*>(y.data());
    cuda::DeviceFacts facts;
    engine::check_cuda(kernels_.device.open(0, &facts));
    const std::int64_t tiles_of_depth = args.first.depth * element / cuda::kDepthBytes;
    const cuda::ConvolutionTile chosen = cuda::choose_tile(pixels, one.filters, tiles_of_depth,
                                                           facts.multiprocessors, facts.major == 9);
    const double flops = one.flops_of_pixel * static_cast<double>(pixels);
    double chosen_seconds = 0, best_seconds = 1e9;
    std::string best_line;
    for (const auto& [rows, columns] : cuda::kConvolutionShapes)
      for (const int parts : {1, 2, 4, 8}) {
        const std::int64_t blocks =
            (pixels + rows - 1) / rows * ((one.filters + columns - 1) / columns) * parts;
        if (rows * columns > 128 * 128 && (!is_half || facts.major != 9)) continue;
        if (parts > tiles_of_depth || (parts > 1 && blocks > 8 * facts.multiprocessors)) continue;
        args.tile = {rows, columns, parts};
        const bool is_chosen =
            chosen.rows == rows && chosen.columns == columns && chosen.parts == parts;
        double both[2] = {};
        for (const bool is_early : {false, true}) {
          args.may_begin_early = is_early;
          both[is_early ? 1 : 0] = seconds(args);
        }
        const double least = std::min(both[0], both[1]);
        const std::string line = fmt::format(
            "  {:<8} {:>3}x{:<3} in {} {:>5} blocks: {:>8.2f} us, {:>8.2f} begun early, {:>5.0f} "
            "TFLOP/s{}",
            one.name, rows, columns, parts, blocks, both[0] * 1e6, both[1] * 1e6,
            flops / least * 1e-12, is_chosen ? " *" : "");
        if (is_chosen) chosen_seconds = both[1];
        if (least < best_seconds) {
          best_seconds = least;
          best_line = line;
        }
        if (prints_all || is_chosen) fmt::print("{}\n", line);
      }
    if (!prints_all && best_seconds < chosen_seconds) fmt::print("{} fastest\n", best_line);
    return chosen_seconds;
  }

  // Made-up numbers of either width, none of them large.
  engine::CudaBuffer numbers(std::int64_t bytes) {
    std::vector<std::uint16_t> halves(static_cast<std::size_t>((bytes + 15) / 16 * 8));
    for (std::uint16_t& half : halves) {
      const std::uint32_t bits = random_();
      half = static_cast<std::uint16_t>((bits & 0x80ffu) | 0x3c00u);
    }
    engine::CudaBuffer buffer;
    const auto whole = static_cast<std::int64_t>(halves.size() * 2);
    buffer.reserve(whole);
    engine::check_cuda(kernels_.device.copy(buffer.data(), halves.data(), whole, stream_));
    engine::check_cuda(kernels_.device.synchronize(stream_));
    return buffer;
  }

  double seconds(const cuda::ConvolutionArgs& args) {
    constexpr int kLaunches = 20, kReplays = 5;
    const cuda::Device& device = kernels_.device;
    kernels_.convolution(args, stream_);
    engine::check_cuda(device.launch_error());
    engine::check_cuda(device.synchronize(stream_));
    engine::check_cuda(device.begin_capture(stream_));
    for (int i = 0; i < kLaunches; ++i) kernels_.convolution(args, stream_);
    cuda::Capture* capture = nullptr;
    std::int32_t num_nodes = 0;
    engine::check_cuda(device.end_capture(stream_, &capture, &num_nodes));
    std::vector<double> times;
    for (int i = 0; i < kReplays; ++i) {
      const auto start = std::chrono::steady_clock::now();
      engine::check_cuda(device.launch(capture, stream_));
      engine::check_cuda(device.synchronize(stream_));
      times.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
          kLaunches);
    }
    device.drop_capture(capture);
    std::ranges::sort(times);
    return times[times.size() / 2];
  }

  const cuda::KernelTable& kernels_;
  cuda::Precision precision_;
  cuda::Stream* stream_ = nullptr;
  std::mt19937 random_{1};
};

int run(int argc, char** argv) {
  std::vector<int> batches;
  bool prints_all = false;
  auto precision = cuda::Precision::Bf16;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--all")
      prints_all = true;
    else if (word == "--precision" && i + 1 < argc)
      precision = static_cast<cuda::Precision>(engine::parse_precision(argv[++i]));
    else if (std::atoi(argv[i]) > 0)
      batches.push_back(std::atoi(argv[i]));
    else
      fail("{}: expected a number of images, --all or --precision NAME", word);
  }
  if (batches.empty()) batches = {1, 128};
  Bench bench(precision);
  for (const int batch : batches) bench.run(batch, prints_all);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_cuda_convolution: {}\n", error.what());
    return 1;
  }
}

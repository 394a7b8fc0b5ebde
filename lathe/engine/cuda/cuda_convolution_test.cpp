// Convolutions on a GPU: the kernel by itself in every tile, and graphs with what follows them.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "lathe/engine/backend.h"
#include "lathe/engine/cuda/arguments/convolution.h"
#include "lathe/engine/cuda/cuda_memory.h"
#include "lathe/engine/cuda/cuda_plan.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/testing/cuda_gpu.h"

namespace lathe::engine {
namespace {

float rounded_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}
std::vector<std::uint16_t> halves_of(const std::vector<float>& values) {
  std::vector<std::uint16_t> result;
  for (const float value : values)
    result.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
  return result;
}

// Numbers that the precision sees as they are, so that results differ by the sums' rounding alone.
std::vector<float> random_numbers(std::size_t count, unsigned seed, cuda::Precision precision) {
  std::mt19937 random(seed);
  std::vector<float> result(count);
  for (float& value : result) {
    value = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
    if (precision != cuda::Precision::Float32) value = rounded_to_bf16(value);
  }
  return result;
}

CudaBuffer on_device(const void* from, std::size_t bytes) {
  CudaBuffer result;
  result.reserve(static_cast<std::int64_t>(bytes));
  const cuda::Device& device = cuda_library().kernels->device;
  check_cuda(device.copy(result.data(), from, static_cast<std::int64_t>(bytes), nullptr));
  check_cuda(device.synchronize(nullptr));
  return result;
}
CudaBuffer on_device(const std::vector<float>& values, cuda::Precision precision) {
  if (precision != cuda::Precision::Bf16) return on_device(values.data(), values.size() * 4);
  const std::vector<std::uint16_t> halves = halves_of(values);
  return on_device(halves.data(), halves.size() * 2);
}

struct KernelCase {
  int count, height, width, channels, columns, taps, stride;
};

struct TileCase {
  cuda::Precision precision;
  cuda::ConvolutionTile tile;
};

class EveryConvolutionTile : public testing::TestWithParam<TileCase> {};

// y = relu(windows . filters + bias), of images with their channels last.
TEST_P(EveryConvolutionTile, MultipliesWindowsOfEverySize) {
  LATHE_NEEDS_GPU();
  const auto [precision, tile] = GetParam();
  for (const KernelCase& size :
       {KernelCase{2, 9, 10, 72, 72, 3, 1}, KernelCase{1, 14, 14, 64, 128, 3, 2},
        KernelCase{3, 7, 7, 256, 40, 1, 1}, KernelCase{1, 20, 20, 64, 33, 3, 1}}) {
    SCOPED_TRACE(testing::Message()
                 << size.count << "x" << size.height << "x" << size.width << "x" << size.channels
                 << " to " << size.columns << ", " << size.taps << " taps, stride " << size.stride);
    const int pad = size.taps / 2, y_height = (size.height - 1) / size.stride + 1,
              y_width = (size.width - 1) / size.stride + 1;
    const std::int64_t depth =
        cuda::padded_depth(std::int64_t{size.taps} * size.taps * size.channels, precision);
    if (tile.parts > depth * cuda::element_bytes(precision) / cuda::kDepthBytes) continue;
    const std::vector<float> x = random_numbers(
        static_cast<std::size_t>(size.count * size.height * size.width * size.channels), 1,
        precision);
    std::vector<float> filters =
        random_numbers(static_cast<std::size_t>(size.columns * depth), 2, precision);
    for (std::size_t i = 0; i < filters.size(); ++i)
      if (static_cast<int>(i) % depth >= size.taps * size.taps * size.channels) filters[i] = 0;
    const std::vector<float> bias =
        random_numbers(static_cast<std::size_t>(size.columns), 3, precision);
    const std::size_t results =
        static_cast<std::size_t>(size.count * y_height * y_width * size.columns);
    const std::vector<float> poison(results, std::nanf(""));
    const CudaBuffer x_there = on_device(x, precision),
                     filters_there = on_device(filters, precision);
    const CudaBuffer bias_there = on_device(bias.data(), bias.size() * 4);
    const CudaBuffer y_there = on_device(poison.data(), results * 4);
    cuda::ConvolutionArgs args;
    args.precision = precision;
    args.first.x = x_there.data();
    args.filters = filters_there.data();
    args.bias = reinterpret_cast<const float*>(bias_there.data());
    args.y = reinterpret_cast<float*>(y_there.data());
    args.map = cuda::Map::Relu;
    args.count = size.count;
    args.first.height = size.height;
    args.first.width = size.width;
    args.first.channels = size.channels;
    args.y_height = y_height;
    args.y_width = y_width;
    args.columns = size.columns;
    args.first.depth = static_cast<std::int32_t>(depth);
    for (cuda::WindowAxis& axis : args.first.axes)
      axis = {.taps = size.taps, .step = size.stride, .offset = -pad};
    args.tile = tile;
    const cuda::KernelTable& kernels = *cuda_library().kernels;
    kernels.convolution(args, nullptr);
    check_cuda(kernels.device.launch_error());
    std::vector<float> y(results);
    check_cuda(kernels.device.copy(y.data(), y_there.data(), static_cast<std::int64_t>(results * 4),
                                   nullptr));
    check_cuda(kernels.device.synchronize(nullptr));
    std::size_t at = 0;
    for (int n = 0; n < size.count; ++n)
      for (int row = 0; row < y_height; ++row)
        for (int column = 0; column < y_width; ++column)
          for (int o = 0; o < size.columns; ++o, ++at) {
            double sum = bias[static_cast<std::size_t>(o)];
            for (int p = 0; p < size.taps; ++p)
              for (int q = 0; q < size.taps; ++q) {
                const int line = row * size.stride - pad + p,
                          place = column * size.stride - pad + q;
                if (line < 0 || line >= size.height || place < 0 || place >= size.width) continue;
                for (int c = 0; c < size.channels; ++c)
                  sum +=
                      double{x[static_cast<std::size_t>(
                          ((n * size.height + line) * size.width + place) * size.channels + c)]} *
                      filters[static_cast<std::size_t>(o * depth +
                                                       (p * size.taps + q) * size.channels + c)];
              }
            const double expected = std::max(0.0, sum);
            const double tolerance = precision == cuda::Precision::Bf16 ? 0x1p-8 : 1e-4;
            ASSERT_NEAR(y[at], expected, tolerance * (1 + expected))
                << "image " << n << ", row " << row << ", column " << column << ", filter " << o;
          }
  }
}

std::vector<TileCase> all_tiles() {
  std::vector<TileCase> result;
  for (const cuda::Precision precision :
       {cuda::Precision::Float32, cuda::Precision::Tf32, cuda::Precision::Bf16})
    for (const auto& [rows, columns] : cuda::kConvolutionShapes)
      for (const int parts : {1, 2, 4, 8})
        if (rows * columns <= 128 * 128 || precision == cuda::Precision::Bf16)
          result.push_back({precision, {rows, columns, parts}});
  return result;
}
std::string tile_name(const testing::TestParamInfo<TileCase>& info) {
  const char* const precisions[] = {"Float32", "Tf32", "Bf16"};
  const auto [precision, tile] = info.param;
  return fmt::format("{}By{}In{}{}", tile.rows, tile.columns, tile.parts,
                     precisions[static_cast<int>(precision)]);
}
INSTANTIATE_TEST_SUITE_P(CudaConvolution, EveryConvolutionTile, testing::ValuesIn(all_tiles()),
                         tile_name);

// Fewer numbers than the largest GPU has multiprocessors would leave most of it idle.
TEST(ConvolutionTiles, FillAGpuWithFewPixels) {
  const auto blocks = [](const cuda::ConvolutionTile& tile, std::int64_t rows,
                         std::int64_t columns) {
    return (rows + tile.rows - 1) / tile.rows * ((columns + tile.columns - 1) / tile.columns) *
           tile.parts;
  };
  // The last stage of ResNet-18 has 49 pixels and 512 filters of 72 tiles of depth.
  EXPECT_GE(blocks(cuda::choose_tile(49, 512, 72, 132, true), 49, 512), 64);
  EXPECT_EQ(cuda::choose_tile(49, 512, 72, 108, false).parts, 1);
}
TEST(ConvolutionTiles, AreLargeWherePixelsAreMany) {
  const cuda::ConvolutionTile tile = cuda::choose_tile(128 * 28 * 28, 128, 18, 132, true);
  EXPECT_EQ(tile.rows, 128);
  EXPECT_EQ(tile.columns, 128);
  EXPECT_EQ(tile.parts, 1);
}

// A block of a residual network: norms become part of the filters, and additions and activations
// part of the convolutions.
constexpr std::string_view kBlock = R"(
  x = input() : f32[B,3,16,16]
  w0 = state() : f32[16,3,7,7]
  g0 = state() : f32[16]
  s0 = state() : f32[16]
  m0 = state() : f32[16]
  v0 = state() : f32[16]
  c0 = conv2d(x, w0) {strides=[2,2], pads=[3,3,3,3]}
  n0 = batch_norm(c0, g0, s0, m0, v0)
  r0 = relu(n0)
  p0 = max_pool2d(r0) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1]}
  w1 = state() : f32[16,16,3,3]
  b1 = state() : f32[16]
  c1 = conv2d(p0, w1, b1) {pads=[1,1,1,1]}
  r1 = relu(c1)
  w2 = state() : f32[16,16,3,3]
  g2 = state() : f32[16]
  s2 = state() : f32[16]
  m2 = state() : f32[16]
  v2 = state() : f32[16]
  c2 = conv2d(r1, w2) {pads=[1,1,1,1]}
  n2 = batch_norm(c2, g2, s2, m2, v2)
  a2 = add(n2, p0)
  r2 = relu(a2)
  w3 = state() : f32[32,16,3,3]
  c3 = conv2d(r2, w3) {strides=[2,2], pads=[1,1,1,1]}
  r3 = relu(c3)
  w4 = state() : f32[32,32,3,3]
  b4 = state() : f32[32]
  c4 = conv2d(r3, w4, b4) {pads=[1,1,1,1]}
  w5 = state() : f32[32,16,1,1]
  g5 = state() : f32[32]
  s5 = state() : f32[32]
  m5 = state() : f32[32]
  v5 = state() : f32[32]
  c5 = conv2d(r2, w5) {strides=[2,2]}
  n5 = batch_norm(c5, g5, s5, m5, v5)
  a5 = add(c4, n5)
  r5 = relu(a5)
  y = mean(r5) {axes=[2,3]}
  output y <- y
)";

// Variances are positive, and weights small enough for results near 1.
State settled_state(const Graph& graph, unsigned seed) {
  State state = random_state(graph, seed);
  for (auto& [name, tensor] : state)
    for (float& value : tensor.mutable_data<float>()) {
      if (name[0] == 'v') value = 1.5f + 0.5f * value;
      if (name[0] == 'w') value *= 0.25f;
    }
  return state;
}

TEST(CudaConvolution, TakesNormsAdditionsAndActivationsIn) {
  const CudaPlan plan = make_cuda_plan(lower(parse_graph(kBlock), find_backend("cuda")));
  std::vector<std::string> ops;
  for (const CudaPlanStep& step : plan.steps) ops.push_back(plan.graph.op(step.node).name);
  EXPECT_EQ(ops,
            (std::vector<std::string>{"image_pooled_conv2d", "image_conv2d", "image_conv2d",
                                      "image_conv2d", "image_summed_conv2d", "image_avg_pool2d"}));
}

TEST(CudaConvolution, OfAResidualBlockAgreesWithTheReference) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(kBlock);
  const State state = settled_state(graph, 1);
  for (const std::int64_t batch : {1, 3, 16}) {
    SCOPED_TRACE(batch);
    const Feed feed = random_feed(graph, {{"B", batch}}, 2);
    expect_same_on_gpu(graph, state, feed);
    const Feed expected = make_executor(graph, state, {.device = "reference"})->run(feed);
    for (const auto& [precision, tolerance] :
         {std::pair{Precision::Tf32, 5e-3}, {Precision::Bf16, 4e-2}}) {
      SCOPED_TRACE(static_cast<int>(precision));
      const auto executor = make_executor(graph, state, {.device = "cuda", .precision = precision});
      const Feed first = executor->run(feed);
      expect_near(first, expected, tolerance);
      for (int again = 0; again < 2; ++again) expect_identical(executor->run(feed), first);
    }
  }
}

TEST(CudaConvolution, FollowsStatesThatAreSetAnew) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(kBlock);
  const Feed feed = random_feed(graph, {{"B", 2}}, 2);
  const auto executor = make_executor(graph, settled_state(graph, 1), {.device = "cuda"});
  executor->run(feed);
  const State other = settled_state(graph, 7);
  executor->set_state(other);
  expect_near(executor->run(feed), make_executor(graph, other, {.device = "reference"})->run(feed),
              1e-4);
}

// What training computes of two convolutions with a norm, an activation and a pool between them.
constexpr std::string_view kTraining = R"(
  x = input() : f32[B,3,10,10]
  w = state() : f32[16,3,3,3]
  g = state() : f32[16]
  s = state() : f32[16]
  c = conv2d(x, w) {pads=[1,1,1,1]}
  n = normalize_batch(c, g, s)
  r = relu(n)
  p = max_pool2d(r) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1]}
  w2 = state() : f32[24,16,3,3]
  c2 = conv2d(p, w2) {strides=[2,2], pads=[1,1,1,1]}
  a = avg_pool2d(c2) {kernel=[3,3]}
  da = input() : f32[B,24,1,1]
  dc2 = avg_pool2d_gradient(da) {kernel=[3,3]} : f32[B,24,3,3]
  dw2 = conv2d_weight_gradient(dc2, p) {strides=[2,2], pads=[1,1,1,1]} : f32[24,16,3,3]
  dp = conv2d_input_gradient(dc2, w2) {strides=[2,2], pads=[1,1,1,1]} : f32[B,16,5,5]
  dr = max_pool2d_gradient(dp, r) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1]}
  dn = map_gradient(dr, n) {function="relu"}
  dc = normalize_batch_gradient(dn, c, g, n#1, n#2)
  dw = conv2d_weight_gradient(dc, x) {pads=[1,1,1,1]} : f32[16,3,3,3]
  output a <- a
  output mean <- n#1
  output variance <- n#2
  output dw2 <- dw2
  output dw <- dw
  output dg <- dc#1
  output ds <- dc#2
)";

TEST(CudaConvolution, TrainsWithChannelsLast) {
  const CudaPlan plan = make_cuda_plan(lower(parse_graph(kTraining), find_backend("cuda")));
  std::map<std::string, int> counts;
  for (const CudaPlanStep& step : plan.steps) ++counts[plan.graph.op(step.node).name];
  EXPECT_EQ(counts["normalize_channels"], 1);
  EXPECT_EQ(counts["normalize_channels_gradient"], 1);
  EXPECT_EQ(counts["image_max_pool2d_gradient"], 1);
  EXPECT_EQ(counts["transpose"], 1) << "of the output alone:\n" << print(plan.graph);
}

// Multiples of 2^-6, which all precisions multiply exactly: of two numbers of a window that are
// nearly equal, none becomes the larger one by rounding.
void round_to_sixths(std::map<std::string, Tensor, std::less<>>& tensors) {
  for (auto& [name, tensor] : tensors)
    for (float& value : tensor.mutable_data<float>()) value = std::round(value * 64) / 64;
}

TEST(CudaConvolution, TrainsAsTheReferenceDoes) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(kTraining);
  State state = settled_state(graph, 1);
  round_to_sixths(state);
  for (const std::int64_t batch : {1, 4, 32}) {
    SCOPED_TRACE(batch);
    Feed feed = random_feed(graph, {{"B", batch}}, 2);
    round_to_sixths(feed);
    expect_same_on_gpu(graph, state, feed, 5e-4);
    const Feed expected = make_executor(graph, state, {.device = "reference"})->run(feed);
    // bfloat16 rounds what the pool reads, which then may choose others.
    for (const auto& [precision, tolerance] :
         {std::pair{Precision::Tf32, 0.005}, {Precision::Bf16, 0.2}}) {
      const auto executor = make_executor(graph, state, {.device = "cuda", .precision = precision});
      const Feed first = executor->run(feed);
      expect_identical(executor->run(feed), first);
      for (const auto& [name, tensor] : expected) {
        double distance = 0, size = 0;
        for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
          distance += std::pow(first.at(name).at(i) - tensor.at(i), 2);
          size += std::pow(tensor.at(i), 2);
        }
        EXPECT_LT(std::sqrt(distance), tolerance * std::sqrt(size)) << name;
      }
    }
  }
}

// Each is one op whose operands may be states or inputs.
class EveryCudaConvolution : public testing::TestWithParam<const char*> {};

TEST_P(EveryCudaConvolution, AgreesWithTheReference) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(GetParam());
  const State state = settled_state(graph, 1);
  const Feed feed = random_feed(graph, {{"B", 5}}, 2);
  expect_same_on_gpu(graph, state, feed, 2e-4);
  const Feed expected = make_executor(graph, state, {.device = "reference"})->run(feed);
  for (const auto& [precision, tolerance] :
       {std::pair{Precision::Tf32, 2e-2}, {Precision::Bf16, 1e-1}})
    expect_near(make_executor(graph, state, {.device = "cuda", .precision = precision})->run(feed),
                expected, tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    CudaConvolution, EveryCudaConvolution,
    testing::Values(
        "x = input() : f32[B,3,12,14]\nw = state() : f32[8,3,7,7]\n"
        "y = conv2d(x, w) {strides=[2,2], pads=[3,3,3,3]}\noutput y <- y",
        "x = input() : f32[B,3,64,60]\nw = state() : f32[64,3,7,7]\nb = state() : f32[64]\n"
        "c = conv2d(x, w, b) {strides=[2,2], pads=[3,3,3,3]}\nr = relu(c)\n"
        "p = max_pool2d(r) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1]}\n"
        "w2 = state() : f32[8,64,1,1]\ny = conv2d(p, w2)\noutput y <- y",
        "x = input() : f32[B,3,34,38]\nw = state() : f32[64,3,5,7]\n"
        "c = conv2d(x, w) {strides=[2,2], pads=[2,3,2,3]}\n"
        "p = max_pool2d(c) {kernel=[3,3], strides=[2,2]}\noutput p <- p",
        "x = input() : f32[B,4,9,12]\nw = state() : f32[8,4,3,3]\n"
        "y = conv2d(x, w) {strides=[1,2], pads=[0,1,0,2]}\noutput y <- y",
        "x = input() : f32[B,20,9,9]\nw = state() : f32[24,20,3,3]\nb = state() : f32[24]\n"
        "y = conv2d(x, w, b) {dilations=[2,1], pads=[2,1,2,1]}\noutput y <- y",
        "x = input() : f32[B,16,9,9]\nw = state() : f32[16,1,3,3]\n"
        "y = conv2d(x, w) {groups=16, pads=[1,1,1,1], strides=[2,2]}\noutput y <- y",
        "x = input() : f32[B,12,9,9]\nw = state() : f32[18,4,3,3]\n"
        "c = conv2d(x, w) {groups=3}\ny = gelu(c)\noutput y <- y",
        "x = input() : f32[B,1,28,28]\nw = state() : f32[32,1,5,5]\nb = state() : f32[32]\n"
        "c = conv2d(x, w, b)\nr = relu(c)\np = max_pool2d(r) {kernel=[2,2]}\n"
        "w2 = state() : f32[48,32,5,5]\nc2 = conv2d(p, w2)\ny = sigmoid(c2)\noutput y <- y",
        "x = input() : f32[B,64,8,8]\nw = state() : f32[64,64,1,1]\n"
        "c = conv2d(x, w)\na = avg_pool2d(c) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1]}\n"
        "w2 = state() : f32[128,64,3,3]\ny = conv2d(a, w2) {strides=[2,2], pads=[1,1,1,1]}\n"
        "output y <- y",
        "dy = input() : f32[B,24,5,5]\nw = state() : f32[24,20,3,3]\n"
        "y = conv2d_input_gradient(dy, w) {strides=[2,2], pads=[1,1,1,1]} : f32[B,20,9,9]\n"
        "output y <- y",
        "dy = input() : f32[B,24,9,9]\nw = state() : f32[24,5,3,3]\n"
        "y = conv2d_input_gradient(dy, w) {groups=4, pads=[1,1,1,1]} : f32[B,20,9,9]\n"
        "output y <- y",
        "dy = input() : f32[B,24,5,5]\nx = input() : f32[B,16,9,9]\n"
        "y = conv2d_weight_gradient(dy, x) {strides=[2,2], pads=[1,1,1,1]} : f32[24,16,3,3]\n"
        "output y <- y",
        "dy = input() : f32[B,24,9,9]\nx = input() : f32[B,20,9,9]\n"
        "y = conv2d_weight_gradient(dy, x) {groups=4, pads=[1,1,1,1]} : f32[24,5,3,3]\n"
        "output y <- y",
        "dy = input() : f32[B,70,14,14]\nx = input() : f32[B,96,14,14]\n"
        "y = conv2d_weight_gradient(dy, x) {pads=[1,1,1,1]} : f32[70,96,3,3]\noutput y <- y",
        "dy = input() : f32[B,72,14,14]\nx = input() : f32[B,96,14,14]\n"
        "y = conv2d_weight_gradient(dy, x) {pads=[1,1,1,1]} : f32[72,96,3,3]\noutput y <- y",
        "dy = input() : f32[B,6,4,4]\nx = input() : f32[B,6,9,9]\n"
        "y = max_pool2d_gradient(dy, x) {kernel=[3,3], strides=[2,2]}\noutput y <- y",
        "dy = input() : f32[B,6,5,5]\n"
        "y = avg_pool2d_gradient(dy) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1], "
        "count_include_pad=false} : f32[B,6,9,9]\noutput y <- y"));

}  // namespace
}  // namespace lathe::engine

#include "lathe/engine/cpu/winograd.h"

#include <cmath>
#include <cstring>

#include "lathe/core/graph_text.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/testing/executor_cases.h"
#include "lathe/engine/testing/window_layer.h"

namespace lathe::engine {
namespace {

using Layer = WindowLayer;

// relu(conv2d(x) + bias + residual) in double.
std::vector<double> definition(const Layer& layer, const std::vector<float>& x,
                               const std::vector<float>& weight, const std::vector<float>& bias,
                               const std::vector<float>& residual) {
  const Convolution c = layer.convolution();
  std::vector<double> y;
  for (std::int64_t n = 0; n < layer.count; ++n)
    for (std::int64_t i = 0; i < c.y.height; ++i)
      for (std::int64_t j = 0; j < c.y.width; ++j)
        for (std::int64_t f = 0; f < layer.filters; ++f) {
          double sum = bias[static_cast<std::size_t>(f)] + residual[y.size()];
          for (std::int64_t p = 0; p < 3; ++p)
            for (std::int64_t q = 0; q < 3; ++q) {
              const std::int64_t row = i + p - layer.pad, column = j + q - layer.pad;
              if (row < 0 || row >= layer.height || column < 0 || column >= layer.width) continue;
              for (std::int64_t ch = 0; ch < layer.channels; ++ch)
                sum +=
                    static_cast<double>(x[static_cast<std::size_t>(
                        ((n * layer.height + row) * layer.width + column) * layer.channels + ch)]) *
                    weight[static_cast<std::size_t>(((f * layer.channels + ch) * 3 + p) * 3 + q)];
            }
          y.push_back(std::max(0.0, sum));
        }
  return y;
}

class Winograd : public EveryIsa {
 protected:
  std::vector<float> multiply(const Layer& layer, int tile, const std::vector<float>& x,
                              const std::vector<float>& weight, const std::vector<float>& bias,
                              const std::vector<float>& residual, int threads) const {
    const Convolution c = layer.convolution();
    WinogradFilters filters;
    filters.pack(table(), tile, layer.filters, layer.channels, weight.data());
    std::vector<float> y(static_cast<std::size_t>(c.y.count * c.y.size()), NAN);
    std::vector<AlignedBuffer> scratch(static_cast<std::size_t>(threads));
    ThreadPool pool(threads);
    KnownCut cut;
    multiply_winograd(
        table(), c, filters, {x.data(), bias.data(), residual.data(), y.data(), Unary::Relu},
        scratch,
        [&](std::int64_t tasks, const std::function<void(std::int64_t, int)>& task) {
          pool.run(tasks, task);
        },
        cut);
    return y;
  }
};

// Numbers of at most 1. Along one axis, the absolute values of the transforms' rows add up to at
// most 10 for images and 1 for filters with tiles of 4, and through the way back to 48 for its
// worst result: so what is rounded is at most 48^2 a channel, a dozen operations deep. Of tiles of
// 2 it is 2 and 1, and 5.5.
double most_error(int tile, std::int64_t channels) {
  const double along = tile == 4 ? 48 : 5.5;
  return along * along * static_cast<double>(channels) * 16 * kUnit;
}

TEST_P(Winograd, IsRightForOddShapes) {
  for (const int tile : {2, 4})
    for (const Layer& layer :
         {Layer{1, 16, 16, 4, 4, 1}, Layer{2, 17, 33, 7, 7, 1}, Layer{1, 3, 40, 9, 14, 0},
          Layer{3, 20, 5, 5, 8, 2}, Layer{1, 32, 70, 3, 3, 1}, Layer{2, 1, 1, 6, 1, 1},
          Layer{1, 16, 16, 33, 38, 1}, Layer{2, 16, 11, 14, 29, 2}}) {
      SCOPED_TRACE(testing::Message()
                   << "tiles of " << tile << ", " << layer.channels << " to " << layer.filters);
      const Convolution c = layer.convolution();
      const std::vector<float> x = random_floats(c.x.count * c.x.size(), 1);
      const std::vector<float> weight = random_floats(c.num_weights(), 2);
      const std::vector<float> bias = random_floats(layer.filters, 3);
      const std::vector<float> residual = random_floats(c.y.count * c.y.size(), 4);
      const std::vector<double> expected = definition(layer, x, weight, bias, residual);
      const std::vector<float> alone = multiply(layer, tile, x, weight, bias, residual, 1);
      for (std::size_t i = 0; i < alone.size(); ++i)
        ASSERT_NEAR(alone[i], expected[i], most_error(tile, layer.channels)) << i;
      EXPECT_EQ(multiply(layer, tile, x, weight, bias, residual, 3), alone);
    }
}

// The rule by which tiles may be used: what they round away is no more than three bits beyond what
// windows do, and of tiles of 2 nothing. (Their sums are a ninth as long.)
TEST_P(Winograd, LosesAtMostThreeBitsToWindows) {
  for (const Layer& layer : {Layer{1, 64, 64, 14, 14, 1}, Layer{1, 256, 32, 8, 8, 1}}) {
    const Convolution c = layer.convolution();
    const std::vector<float> x = random_floats(c.x.count * c.x.size(), 1);
    const std::vector<float> weight = random_floats(c.num_weights(), 2);
    const std::vector<float> bias = random_floats(layer.filters, 3);
    const std::vector<float> residual = random_floats(c.y.count * c.y.size(), 4);
    const std::vector<double> expected = definition(layer, x, weight, bias, residual);
    const auto error_of = [&](const std::vector<float>& y) {
      double error = 0;
      for (std::size_t i = 0; i < y.size(); ++i) error += std::pow(y[i] - expected[i], 2);
      return std::sqrt(error);
    };
    PackedFilters filters;
    filters.pack(table(), forward_product(c), weight.data(), forward_places(c));
    std::vector<float> y(expected.size());
    std::vector<AlignedBuffer> scratch(1);
    KnownCut cut;
    multiply_images(
        table(), forward_product(c), filters,
        {x.data(), bias.data(), residual.data(), y.data(), Unary::Relu}, scratch,
        [&](std::int64_t tasks, const std::function<void(std::int64_t, int)>& task) {
          for (std::int64_t i = 0; i < tasks; ++i) task(i, 0);
        },
        cut);
    const double windows = error_of(y);
    EXPECT_LT(error_of(multiply(layer, 2, x, weight, bias, residual, 1)), windows);
    EXPECT_LT(error_of(multiply(layer, 4, x, weight, bias, residual, 1)), 8 * windows);
  }
}

TEST_P(Winograd, GivesAnImageTheSameBitsWhateverIsBesideIt) {
  const Layer three{3, 16, 16, 7, 7, 1}, one{1, 16, 16, 7, 7, 1};
  const Convolution c = three.convolution();
  const std::vector<float> x = random_floats(c.x.count * c.x.size(), 1);
  const std::vector<float> weight = random_floats(c.num_weights(), 2);
  const std::vector<float> bias = random_floats(16, 3);
  const std::vector<float> residual = random_floats(c.y.count * c.y.size(), 4);
  for (const int tile : {2, 4}) {
    const std::vector<float> all = multiply(three, tile, x, weight, bias, residual, 2);
    const auto last = [](const std::vector<float>& values) {
      return std::vector<float>(values.end() - std::ssize(values) / 3, values.end());
    };
    EXPECT_EQ(multiply(one, tile, last(x), weight, bias, last(residual), 1), last(all));
  }
}

// As if what is in front had been applied before, zeros around the image not among it.
TEST_P(Winograd, ReadsThroughANormAndReluToTheSameBits) {
  for (const int tile : {2, 4})
    for (const Layer& layer : {Layer{2, 17, 33, 7, 7, 1}, Layer{1, 16, 16, 33, 38, 1}}) {
      const Convolution c = layer.convolution();
      const std::vector<float> x = random_floats(c.x.count * c.x.size(), 1);
      const std::vector<float> weight = random_floats(c.num_weights(), 2);
      const std::vector<float> center = random_floats(layer.channels, 3);
      const std::vector<float> slope = random_floats(layer.channels, 4);
      const std::vector<float> bias = random_floats(layer.channels, 5);
      WinogradFilters filters;
      filters.pack(table(), tile, layer.filters, layer.channels, weight.data());
      const auto multiply_all = [&](const std::vector<float>& images, const WinogradFront& front) {
        std::vector<float> y(static_cast<std::size_t>(c.y.count * c.y.size()), NAN);
        AlignedBuffer scratch;
        multiply_winograd_images(table(), c, filters, {.x = images.data(), .y = y.data()},
                                 c.x.count, scratch, front);
        return y;
      };
      std::vector<float> made(x.size());
      table().scale_channels({.rows = c.x.count * c.x.height * c.x.width,
                              .n = layer.channels,
                              .x = x.data(),
                              .center = center.data(),
                              .slope = slope.data(),
                              .bias = bias.data(),
                              .residual = nullptr,
                              .has_relu = true,
                              .y = made.data()});
      EXPECT_EQ(multiply_all(x, {center.data(), slope.data(), bias.data()}),
                multiply_all(made, {}));
    }
}

TEST_P(Winograd, PacksTheWayBackAsFiltersTurnedAround) {
  constexpr std::int64_t kFilters = 35, kChannels = 19, kTaps = 9;
  const std::vector<float> weight = random_floats(kFilters * kChannels * kTaps, 1);
  std::vector<float> turned;
  for (std::int64_t c = 0; c < kChannels; ++c)
    for (std::int64_t f = 0; f < kFilters; ++f)
      for (std::int64_t tap = 0; tap < kTaps; ++tap)
        turned.push_back(
            weight[static_cast<std::size_t>((f * kChannels + c) * kTaps + kTaps - 1 - tap)]);
  WinogradFilters expected, packed;
  expected.pack(table(), 4, kChannels, kFilters, turned.data());
  packed.pack_backward(table(), 4, kFilters, kChannels, weight.data());
  ASSERT_EQ(packed.bytes(), expected.bytes());
  EXPECT_EQ(std::memcmp(packed.panel(0), expected.panel(0),
                        static_cast<std::size_t>(winograd_points(4) * kFilters *
                                                 table().gemm_grain().columns) *
                            sizeof(float)),
            0);
}

INSTANTIATE_TEST_SUITE_P(, Winograd, testing::ValuesIn(supported_isas()), isa_name);

std::string two_layers(std::int64_t channels, std::int64_t size, const char* attributes) {
  return fmt::format(R"(
    x = input() : f32[B,3,{1},{1}]
    w0 = state() : f32[{0},3,3,3]
    w = state() : f32[{0},{0},3,3]
    a = conv2d(x, w0) {{pads=[1,1,1,1]}}
    b = relu(a)
    y = conv2d(b, w) {2}
    z = sigmoid(y)
    m = mean(z) {{axes=[2,3]}}
    output m <- m)",
                     channels, size, attributes);
}

std::vector<std::int64_t> tiles_of(const std::string& text) {
  Graph graph = lower(parse_graph(text), find_backend("cpu"));
  use_winograd(graph);
  std::vector<std::int64_t> tiles;
  for (const NodeId id : graph.nodes_of("image_conv2d"))
    tiles.push_back(graph.attribute(id).integer("tile"));
  return tiles;
}

TEST(WinogradChoice, FollowsFromTheSizesOfALayer) {
  using Tiles = std::vector<std::int64_t>;
  // The first layer has three channels, in planes: windows.
  EXPECT_EQ(tiles_of(two_layers(64, 56, "{pads=[1,1,1,1]}")), (Tiles{0, 4}));
  EXPECT_EQ(tiles_of(two_layers(128, 28, "{pads=[1,1,1,1]}")), (Tiles{0, 4}));
  EXPECT_EQ(tiles_of(two_layers(256, 14, "{pads=[1,1,1,1]}")), (Tiles{0, 2}));
  // Weights of this size take longer to read than tiles save.
  EXPECT_EQ(tiles_of(two_layers(512, 7, "{pads=[1,1,1,1]}")), (Tiles{0, 0}));
  EXPECT_EQ(tiles_of(two_layers(64, 56, "{pads=[1,1,1,1], strides=[2,2]}")), (Tiles{0, 0}));
  EXPECT_EQ(tiles_of(two_layers(8, 56, "{pads=[1,1,1,1]}")), (Tiles{0, 0}));
}

TEST(WinogradChoice, CanBeDeclined) {
  const Graph graph = parse_graph(two_layers(32, 12, "{pads=[1,1,1,1]}"));
  const State state = random_state(graph, 3);
  const Feed feed = random_feed(graph, {{"B", 2}}, 5);
  const Feed expected = make_executor(graph, state, {.device = "reference"})->run(feed);
  for (const bool is_plain : {false, true}) {
    CpuExecutor executor(graph, state, {.plain_convolutions = is_plain});
    expect_near(executor.run(feed), expected, 1e-5);
    bool has_tiles = false;
    for (const PlannedStep& step : executor.report().steps)
      has_tiles = has_tiles || step.choice.kernel.starts_with("Winograd");
    EXPECT_NE(has_tiles, is_plain);
  }
}

}  // namespace
}  // namespace lathe::engine

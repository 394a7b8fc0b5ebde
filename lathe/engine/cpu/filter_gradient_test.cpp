#include "lathe/engine/cpu/filter_gradient.h"

#include <cmath>

#include "lathe/core/graph_text.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/testing/executor_cases.h"
#include "lathe/engine/testing/window_layer.h"

namespace lathe::engine {
namespace {

constexpr int kTile = 4;

using Layer = WindowLayer;

// The gradient [O,C,3,3] in double.
std::vector<double> definition(const Convolution& c, const std::vector<float>& x,
                               const std::vector<float>& dy) {
  std::vector<double> dw(static_cast<std::size_t>(c.num_weights()), 0.0);
  for (std::int64_t n = 0; n < c.y.count; ++n)
    for (std::int64_t i = 0; i < c.y.height; ++i)
      for (std::int64_t j = 0; j < c.y.width; ++j)
        for (std::int64_t tap = 0; tap < 9; ++tap) {
          const std::int64_t row = i + tap / 3 - c.window.pads[0];
          const std::int64_t column = j + tap % 3 - c.window.pads[1];
          if (row < 0 || row >= c.x.height || column < 0 || column >= c.x.width) continue;
          const std::int64_t to = (n * c.y.height + i) * c.y.width + j;
          const std::int64_t from = (n * c.x.height + row) * c.x.width + column;
          for (std::int64_t f = 0; f < c.y.channels; ++f)
            for (std::int64_t k = 0; k < c.x.channels; ++k)
              dw[static_cast<std::size_t>((f * c.x.channels + k) * 9 + tap)] +=
                  static_cast<double>(dy[static_cast<std::size_t>(to * c.y.channels + f)]) *
                  x[static_cast<std::size_t>(from * c.x.channels + k)];
        }
  return dw;
}

class FilterGradientByTiles : public EveryIsa {
 protected:
  std::vector<float> gradient(const Convolution& c, int tile, const std::vector<float>& x,
                              const std::vector<float>& dy, int threads) const {
    std::vector<float> dw(static_cast<std::size_t>(c.num_weights()), NAN);
    std::vector<AlignedBuffer> scratch(static_cast<std::size_t>(threads));
    AlignedBuffer sums;
    ThreadPool pool(threads);
    FilterGradient(c, table(), false, tile)
        .run(
            dw.data(), sums, scratch,
            [&](std::int64_t tasks, const std::function<void(std::int64_t, int)>& task) {
              pool.run(tasks, task);
            },
            [&](std::int64_t first, std::int64_t, int) -> FilterGradient::Some {
              return {x.data() + first * c.x.size(), dy.data() + first * c.y.size()};
            });
    return dw;
  }
};

// Numbers of at most 1. Along one axis, what a gradient goes through to the points adds up to at
// most 15 of them, what images do to 10, and the way to a tap multiplies by at most 5/12: so what
// is rounded is at most 62.5^2 a tile, a dozen operations deep and added up over tiles.
TEST_P(FilterGradientByTiles, IsRightForOddShapes) {
  for (const Layer& layer :
       {Layer{1, 16, 16, 4, 4, 1}, Layer{3, 17, 33, 7, 7, 1}, Layer{1, 3, 20, 9, 14, 0},
        Layer{5, 20, 5, 5, 8, 2}, Layer{70, 16, 16, 3, 3, 1}, Layer{2, 1, 1, 6, 1, 1},
        Layer{1, 16, 16, 33, 38, 1}, Layer{2, 16, 11, 14, 29, 2}}) {
    SCOPED_TRACE(testing::Message() << layer.channels << " to " << layer.filters);
    const Convolution c = layer.convolution();
    const std::vector<float> x = random_floats(c.x.count * c.x.size(), 1);
    const std::vector<float> dy = random_floats(c.y.count * c.y.size(), 2);
    const std::vector<double> expected = definition(c, x, dy);
    const std::vector<float> alone = gradient(c, kTile, x, dy, 1);
    const auto tiles = static_cast<double>(c.y.count * ((c.y.height + kTile - 1) / kTile) *
                                           ((c.y.width + kTile - 1) / kTile));
    for (std::size_t i = 0; i < alone.size(); ++i)
      ASSERT_NEAR(alone[i], expected[i], 62.5 * 62.5 * tiles * 16 * kUnit) << i;
    EXPECT_EQ(gradient(c, kTile, x, dy, 3), alone);
  }
}

// The rule of Winograd's tiles forward.
TEST_P(FilterGradientByTiles, LosesAtMostThreeBitsToWindows) {
  const Convolution c = Layer{4, 16, 16, 14, 14, 1}.convolution();
  const std::vector<float> x = random_floats(c.x.count * c.x.size(), 1);
  const std::vector<float> dy = random_floats(c.y.count * c.y.size(), 2);
  const std::vector<double> expected = definition(c, x, dy);
  const auto error_of = [&](const std::vector<float>& dw) {
    double error = 0;
    for (std::size_t i = 0; i < dw.size(); ++i) error += std::pow(dw[i] - expected[i], 2);
    return std::sqrt(error);
  };
  const Convolution planes = [&] {
    Convolution other = c;
    other.y.is_last = false;  // which no other way than windows does
    return other;
  }();
  std::vector<float> turned(dy.size());
  for (std::int64_t n = 0; n < c.y.count; ++n)
    for (std::int64_t pixel = 0; pixel < c.y.height * c.y.width; ++pixel)
      for (std::int64_t f = 0; f < c.y.channels; ++f)
        turned[static_cast<std::size_t>(n * c.y.size() + f * c.y.height * c.y.width + pixel)] =
            dy[static_cast<std::size_t>(n * c.y.size() + pixel * c.y.channels + f)];
  const double windows = error_of(gradient(planes, 0, x, turned, 1));
  EXPECT_LT(error_of(gradient(c, kTile, x, dy, 1)), 8 * windows);
}

INSTANTIATE_TEST_SUITE_P(, FilterGradientByTiles, testing::ValuesIn(supported_isas()), isa_name);

// Two convolutions with batch norms that are trained: the second by tiles, forward and backward.
TEST(TrainedConvolutions, GoByTilesUnlessTheyAreDeclined) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,3,9,9]
    dy = input() : f32[B,32,9,9]
    w = state() : f32[16,3,3,3]
    v = state() : f32[32,16,3,3]
    g = state() : f32[32]
    b = state() : f32[32]
    a = conv2d(x, w) {pads=[1,1,1,1]}
    r = relu(a)
    c = conv2d(r, v) {pads=[1,1,1,1]}
    n = normalize_batch(c, g, b)
    s = relu(n)
    dc = normalize_batch_gradient(dy, c, g, n#1, n#2)
    dr = conv2d_input_gradient(dc, v) {pads=[1,1,1,1]} : f32[B,16,9,9]
    dv = conv2d_weight_gradient(dc, r) {pads=[1,1,1,1]} : f32[32,16,3,3]
    u = add(v, dv)
    output s <- s
    output dr <- dr
    output dv <- dv
    state v <- u)");
  const State state = random_state(graph, 3);
  const Feed feed = random_feed(graph, {{"B", 5}}, 5);
  const Feed expected = make_executor(graph, state, {.device = "reference"})->run(feed);
  for (const Isa isa : supported_isas())
    for (const bool is_plain : {false, true}) {
      CpuExecutor executor(graph, state, {.isa = isa, .plain_convolutions = is_plain});
      const Feed results = executor.run(feed);
      expect_near(results, expected, 1e-4);
      ThreadPool pool(3);
      const ExecutionOptions options{.pool = &pool, .isa = isa, .plain_convolutions = is_plain};
      expect_identical(CpuExecutor(graph, state, options).run(feed), results);
      std::int64_t tiled = 0;
      for (const PlannedStep& step : executor.report().steps)
        tiled += step.choice.kernel.starts_with("Winograd");
      EXPECT_EQ(tiled, is_plain ? 0 : 2);
    }
}

}  // namespace
}  // namespace lathe::engine

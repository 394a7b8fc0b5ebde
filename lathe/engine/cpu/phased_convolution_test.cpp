#include "lathe/engine/cpu/phased_convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

std::vector<float> whole_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> result(static_cast<std::size_t>(count));
  for (float& value : result) value = static_cast<float>(random() % 17) - 8;
  return result;
}

// y of one image, channels side by side, by the definition.
std::vector<float> convolve(const Convolution& c, const std::vector<float>& x,
                            const std::vector<float>& weight) {
  std::vector<float> y;
  for (std::int64_t i = 0; i < c.y.height; ++i)
    for (std::int64_t j = 0; j < c.y.width; ++j)
      for (std::int64_t f = 0; f < c.y.channels; ++f) {
        float sum = 0;
        for (std::int64_t channel = 0; channel < c.x.channels; ++channel)
          for (std::int64_t tap = 0; tap < c.taps(); ++tap) {
            const std::int64_t row =
                i * c.window.strides[0] + tap / c.window.kernel[1] - c.window.pads[0];
            const std::int64_t column =
                j * c.window.strides[1] + tap % c.window.kernel[1] - c.window.pads[1];
            if (row < 0 || row >= c.x.height || column < 0 || column >= c.x.width) continue;
            const std::int64_t at = (row * c.x.width + column) * c.x.channels + channel;
            sum += x[static_cast<std::size_t>(at)] *
                   weight[static_cast<std::size_t>((f * c.x.channels + channel) * c.taps() + tap)];
          }
        y.push_back(sum);
      }
  return y;
}

Convolution strided(std::int64_t height, std::int64_t width, std::int64_t kernel,
                    std::int64_t stride, std::int64_t pad) {
  const auto places = [&](std::int64_t size) { return (size + 2 * pad - kernel) / stride + 1; };
  return {{.count = 1, .channels = 3, .height = height, .width = width, .is_last = true},
          {.count = 1,
           .channels = 2,
           .height = places(height),
           .width = places(width),
           .is_last = true},
          1,
          {.kernel = {kernel, kernel},
           .strides = {stride, stride},
           .pads = {pad, pad, pad, pad},
           .dilations = {1, 1}}};
}

TEST(PhasedConvolution, GivesTheSameResultsByWindowsOnePixelApart) {
  for (const std::int64_t stride : {2, 3})
    for (const std::int64_t kernel : {1, 2, 3, 7})
      for (const std::int64_t pad : {0, 1, 3}) {
        if (pad >= kernel) continue;
        const Convolution c = strided(9, 14, kernel, stride, pad);
        SCOPED_TRACE(testing::Message() << kernel << " taps, stride " << stride << ", pad " << pad);
        ASSERT_TRUE(PhasedConvolution::suits(c));
        const PhasedConvolution phased(c);
        EXPECT_EQ(phased.convolution().window.strides[0], 1);
        const std::vector<float> x = whole_numbers(c.x.size(), 1);
        const std::vector<float> weight = whole_numbers(c.num_weights(), 2);
        std::vector<float> made(static_cast<std::size_t>(phased.convolution().x.size()), NAN);
        phased.put_image(x.data(), made.data());
        EXPECT_EQ(convolve(phased.convolution(), made, phased.put_weight(weight.data())),
                  convolve(c, x, weight));
        std::vector<float> back(weight.size());
        phased.take_weight(phased.put_weight(weight.data()).data(), back.data());
        EXPECT_EQ(back, weight);
      }
}

// A gradient is 0 where no window has been.
TEST(PhasedConvolution, TakesBackWhatWindowsSee) {
  for (const std::int64_t kernel : {1, 2, 3}) {
    const Convolution c = strided(9, 14, kernel, 2, kernel / 2);
    const PhasedConvolution phased(c);
    const std::vector<float> x = whole_numbers(c.x.size(), 1);
    std::vector<float> made(static_cast<std::size_t>(phased.convolution().x.size()));
    phased.put_image(x.data(), made.data());
    std::vector<float> back(x.size(), NAN);
    phased.take_image(made.data(), back.data());
    for (std::int64_t row = 0; row < c.x.height; ++row)
      for (std::int64_t column = 0; column < c.x.width; ++column) {
        const auto is_seen = [&](std::int64_t at, std::int64_t pad, std::int64_t places) {
          for (std::int64_t place = 0; place < places; ++place)
            if (at + pad >= 2 * place && at + pad < 2 * place + kernel) return true;
          return false;
        };
        const bool is_inside =
            is_seen(row, kernel / 2, c.y.height) && is_seen(column, kernel / 2, c.y.width);
        const auto at = static_cast<std::size_t>((row * c.x.width + column) * c.x.channels);
        // What lies behind the last window on the same place is taken back as it was.
        const bool is_taken = back[at] == x[at];
        EXPECT_TRUE(is_taken || (!is_inside && back[at] == 0)) << row << ", " << column;
      }
  }
}

// Two convolutions with windows two pixels apart and their norms, as they are trained.
constexpr const char* kTrained = R"(
    x = input() : f32[B,3,14,14]
    dz = input() : f32[B,32,7,7]
    w0 = state() : f32[16,3,3,3]
    w1 = state() : f32[32,16,3,3]
    w2 = state() : f32[32,16,1,1]
    g0 = state() : f32[16]
    g = state() : f32[32]
    c0 = conv2d(x, w0) {pads=[1,1,1,1]}
    n0 = normalize_batch(c0, g0, g0)
    a0 = relu(n0)
    c1 = conv2d(a0, w1) {strides=[2,2], pads=[1,1,1,1]}
    n1 = normalize_batch(c1, g, g)
    c2 = conv2d(a0, w2) {strides=[2,2]}
    n2 = normalize_batch(c2, g, g)
    z = add(n1, n2)
    d1 = normalize_batch_gradient(dz, c1, g, n1#1, n1#2)
    d2 = normalize_batch_gradient(dz, c2, g, n2#1, n2#2)
    dw1 = conv2d_weight_gradient(d1, a0) {strides=[2,2], pads=[1,1,1,1]} : f32[32,16,3,3]
    dw2 = conv2d_weight_gradient(d2, a0) {strides=[2,2]} : f32[32,16,1,1]
    da1 = conv2d_input_gradient(d1, w1) {strides=[2,2], pads=[1,1,1,1]} : f32[B,16,14,14]
    da2 = conv2d_input_gradient(d2, w2) {strides=[2,2]} : f32[B,16,14,14]
    da = add(da1, da2)
    output z <- z
    output dw1 <- dw1
    output dw2 <- dw2
    output da <- da)";

// Numbers of about 1, rounded to 2^-9 of themselves, in sums of up to 245 products.
TEST(PhasedConvolution, IsTrainedInBfloat16NearTheReferenceOnAnyNumberOfThreads) {
  const Graph graph = parse_graph(kTrained);
  const State state = random_state(graph, 3);
  const Feed feed = random_feed(graph, {{"B", 5}}, 5);
  const Feed expected = make_executor(graph, state, {.device = "reference"})->run(feed);
  CpuExecutor executor(graph, state, {.precision = Precision::Bf16});
  const Feed alone = executor.run(feed);
  for (const auto& [name, tensor] : expected) {
    SCOPED_TRACE(name);
    double error = 0, magnitude = 0;
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
      error += std::abs(alone.at(name).at(i) - tensor.at(i));
      magnitude += std::abs(tensor.at(i));
    }
    EXPECT_LT(error, 0x1p-6 * magnitude);
  }
  ThreadPool pool(3);
  expect_identical(
      CpuExecutor(graph, state, {.pool = &pool, .precision = Precision::Bf16}).run(feed), alone);
}

}  // namespace
}  // namespace lathe::engine

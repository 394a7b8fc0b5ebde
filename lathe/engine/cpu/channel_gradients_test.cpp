#include "lathe/engine/cpu/channel_gradients.h"

#include <cmath>
#include <utility>

#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/testing/window_layer.h"

namespace lathe::engine {
namespace {

constexpr std::int64_t kRows = 2 * kChannelRows + 13, kChannels = 19;

class ChannelProducts : public EveryIsa {
 protected:
  struct Result {
    std::vector<float> g;
    std::vector<double> sums;
    bool operator==(const Result&) const = default;
  };
  // What relu made, or the slope and bias of what it was of.
  struct Relu {
    const float* results = nullptr;
    const float* slope = nullptr;
    const float* bias = nullptr;
  };
  Result add(const float* added, const Relu& relu) const {
    Result result{std::vector<float>(dy.size(), NAN), std::vector<double>(2 * kChannels, 0.5)};
    add_channel_products(table(),
                         {.rows = kRows,
                          .n = kChannels,
                          .dy = dy.data(),
                          .more = added,
                          .relu = relu.results,
                          .slope = relu.slope,
                          .bias = relu.bias,
                          .g = result.g.data(),
                          .x = x.data(),
                          .center = center.data(),
                          .sums = nullptr},
                         result.sums.data());
    return result;
  }

  std::vector<float> dy = random_floats(kRows * kChannels, 1);
  std::vector<float> more = random_floats(kRows * kChannels, 2);
  std::vector<float> x = random_floats(kRows * kChannels, 3);
  std::vector<float> center = random_floats(kChannels, 4);
};

TEST_P(ChannelProducts, AddWhatComesBackThroughReluRowByRow) {
  const std::vector<float> relu = random_floats(kRows * kChannels, 5);
  const Result result = add(more.data(), {.results = relu.data()});
  std::vector<double> expected(2 * kChannels, 0.5);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const std::size_t c = i % kChannels;
    const float g = relu[i] > 0 ? dy[i] + more[i] : 0.0f;
    EXPECT_EQ(result.g[i], g) << i;
    expected[c] += g;
    expected[kChannels + c] += static_cast<double>(g) * (static_cast<double>(x[i]) - center[c]);
  }
  // Of sums of kChannelRows numbers of at most 4.
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(result.sums[i], expected[i], kRows * 4 * kChannelRows * kUnit) << i;
}

TEST_P(ChannelProducts, SeeWhatTheNormInFrontMadeToTheSameBits) {
  const std::vector<float> slope = random_floats(kChannels, 6), bias = random_floats(kChannels, 7);
  std::vector<float> made(x.size());
  table().scale_channels({.rows = kRows,
                          .n = kChannels,
                          .x = x.data(),
                          .center = center.data(),
                          .slope = slope.data(),
                          .bias = bias.data(),
                          .residual = nullptr,
                          .has_relu = true,
                          .y = made.data()});
  const Relu by_norm{.slope = slope.data(), .bias = bias.data()};
  for (const float* added : {static_cast<const float*>(nullptr), std::as_const(more).data()})
    EXPECT_EQ(add(added, by_norm), add(added, {.results = made.data()}));
}

INSTANTIATE_TEST_SUITE_P(, ChannelProducts, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine

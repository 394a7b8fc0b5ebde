#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "lathe/core/number_format.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/numerics/number_line.h"

namespace lathe::numerics {
namespace {

using testing::ElementsAre;

TEST(LearnedBinary, IsTheSignTimesTheScaleOfItsRow) {
  const auto format = parse_format("binary:learned");
  const float infinity = std::numeric_limits<float>::infinity();
  const std::array<float, 8> x{0.3f, -0.01f, 0, -0.0f, infinity, -infinity, 5, -5};
  const std::array<float, 2> scales{0.25f, 2};
  std::array<float, 8> y{};
  const QuantizeArgs args{
      .rows = 2, .columns = 4, .x = x.data(), .y = y.data(), .scales = scales.data()};
  format->quantize(args);
  EXPECT_THAT(y, ElementsAre(0.25f, -0.25f, 0.25f, 0.25f, 2, -2, 2, -2));
  const EncodedMatrix encoded = format->encode(args);
  EXPECT_THAT(encoded.codes, ElementsAre(0b1101, 0b0101));
  std::array<float, 8> decoded{};
  format->decode(encoded, scales.data(), nullptr, decoded.data());
  EXPECT_EQ(decoded, y);
  EXPECT_THAT(representable_numbers(*format), ElementsAre(-1, 1));
}

TEST(LearnedBinary, CostsABitAndItsShareOfAScale) {
  EXPECT_EQ(parse_format("binary:learned")->bits_per_element(4, 64), 1.5);
  EXPECT_EQ(parse_format("binary:learned,tensor")->facts().granularity, Granularity::Tensor);
  EXPECT_EQ(error_text([] { parse_format("binary:tensor"); }),
            "format \"binary:tensor\": tensor needs a kind with scales: plain binary has none");
}

}  // namespace
}  // namespace lathe::numerics

#include "lathe/numerics/calibration_range.h"

#include <gtest/gtest.h>

#include <limits>

#include "lathe/numerics/error_measures.h"

namespace lathe::numerics {
namespace {

ScaleAndZero range_of(const char* format, double low, double high) {
  return scale_for_range(*parse_format(format), low, high);
}

TEST(ScaleForRange, CoversTheLargerEndOfASymmetricFormat) {
  EXPECT_EQ(range_of("int:8", -254, 127), (ScaleAndZero{2, 0}));
  EXPECT_EQ(range_of("int:8", 0, 12.7), (ScaleAndZero{0.1f, 0}));
}

TEST(ScaleForRange, UsesAllCodesWithAZeroPoint) {
  EXPECT_EQ(range_of("int:8,asymmetric", -55, 200), (ScaleAndZero{1, 55}));
  EXPECT_EQ(range_of("int:8,asymmetric", 100, 510), (ScaleAndZero{2, 0})) << "0 stays a number";
}

TEST(ScaleForRange, IsTheLeastPowerOfTwoThatDoesNotClip) {
  EXPECT_EQ(range_of("fixed:8,auto", -1, 0.5), (ScaleAndZero{0x1p-7f, 0})) << "-128 * 2^-7";
  EXPECT_EQ(range_of("fixed:8,auto", -0.5, 1), (ScaleAndZero{0x1p-6f, 0})) << "127 * 2^-7 < 1";
  EXPECT_EQ(range_of("fixed:8,auto,unsigned", 0, 255), (ScaleAndZero{1, 0}));
  EXPECT_EQ(range_of("minifloat:e2m1,bias=auto", -12, 3), (ScaleAndZero{2, 0}));
}

TEST(ScaleForRange, IsOneForNothing) {
  EXPECT_EQ(range_of("int:8", 0, 0), (ScaleAndZero{1, 0}));
  EXPECT_EQ(range_of("int:8,asymmetric", 0, 0), (ScaleAndZero{1, 0}));
  EXPECT_EQ(range_of("fixed:8,auto", 0, 0), (ScaleAndZero{1, 0}));
}

TEST(ScalesByRange, AreOneForEachRowOrBlockAndIgnoreWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {1, -7, 3, infinity, 14, 0, 0, 0};
  EXPECT_EQ(scales_by_range(*parse_format("int:4,channel"), {values, 2, 4}),
            (std::vector<ScaleAndZero>{{1, 0}, {2, 0}}));
  EXPECT_EQ(scales_by_range(*parse_format("int:4,group=2"), {values, 2, 4}),
            (std::vector<ScaleAndZero>{{1, 0}, {3 / 7.0f, 0}, {2, 0}, {1, 0}}));
}

TEST(ScalesByPercentile, LeaveOutOutliers) {
  std::vector<float> values(100, 7.0f);
  values[50] = 700;
  EXPECT_EQ(scales_by_percentile(*parse_format("int:4"), {values, 1, 100}, 0.98),
            (std::vector<ScaleAndZero>{{1, 0}}));
  EXPECT_EQ(scales_by_percentile(*parse_format("int:4"), {values, 1, 100}, 1),
            (std::vector<ScaleAndZero>{{100, 0}}));
}

TEST(ScalesByError, ClipAnOutlierWhenTheRestGains) {
  // 999 values on a grid of 0.1 and one of 3.5: at the full range's step of 0.5 all are wrong.
  std::vector<float> values;
  for (int i = 0; i < 999; ++i) values.push_back(0.1f * static_cast<float>(i % 15 - 7));
  values.push_back(3.5f);
  const auto format = parse_format("int:4");
  const auto by_error = scales_by_error(*format, {values, 1, 1000});
  const auto by_range = scales_by_range(*format, {values, 1, 1000});
  const auto error_with = [&](const ScaleAndZero& chosen) {
    std::vector<float> quantized(values.size());
    format->quantize({.rows = 1,
                      .columns = 1000,
                      .x = values.data(),
                      .y = quantized.data(),
                      .scales = &chosen.scale});
    return measure_error(values, quantized).mean_squared_error;
  };
  EXPECT_LT(by_error[0].scale, by_range[0].scale / 2);
  EXPECT_LT(error_with(by_error[0]), error_with(by_range[0]));
}

TEST(MeasureError, IsTheUsualRatioInDecibels) {
  const std::vector<float> values = {3, -4, 0, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<float> quantized = {3.3f, -4, -0.4f, 0};
  const ErrorMeasures measures = measure_error(values, quantized);
  EXPECT_EQ(measures.count, 3);
  EXPECT_EQ(measures.num_non_finite, 1);
  EXPECT_NEAR(measures.signal_power, 25.0 / 3, 1e-12);
  EXPECT_NEAR(measures.mean_squared_error, 0.25 / 3, 1e-7);
  EXPECT_NEAR(measures.largest_error, 0.4, 1e-7);
  EXPECT_NEAR(measures.mean_error, -0.1 / 3, 1e-7);
  EXPECT_NEAR(measures.sqnr(), 20, 1e-5);
  EXPECT_EQ(measure_error({}, {}).sqnr(), std::numeric_limits<double>::infinity());
}

// 1/7 is 0x1.249249..p-3; bfloat16 has seven bits behind the point.
TEST(ScaleForRange, RoundsShortScalesUp) {
  const auto format = parse_format("int:4,group=32,short");
  EXPECT_EQ(format->facts().scale_bits, kShortScaleBits);
  EXPECT_EQ(scale_for_range(*format, -1, 0.5).scale, 0x1.26p-3f);
  EXPECT_EQ(scale_for_range(*format, 0, 7 * 0x1.26p-3).scale, 0x1.26p-3f);
}

}  // namespace
}  // namespace lathe::numerics

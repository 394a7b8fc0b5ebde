#include "lathe/core/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

template <typename T>
Tensor list(std::initializer_list<T> values) {
  return Tensor::from<T>({static_cast<std::int64_t>(values.size())}, values);
}

// Every 16-bit pattern in order, as f16 or bf16.
Tensor every_pattern(DType dtype) {
  Tensor tensor(dtype, {65536});
  std::byte* bytes = tensor.mutable_bytes();
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    std::memcpy(bytes + 2 * pattern, &bits, 2);
  }
  return tensor;
}

std::uint16_t pattern_at(const Tensor& tensor, std::size_t index) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, tensor.bytes() + 2 * index, 2);
  return bits;
}

std::uint16_t rounded(double value, DType dtype) {
  return pattern_at(list<double>({value}).converted(dtype), 0);
}

// What a pattern of `mantissa` mantissa bits and an exponent of `15 - mantissa` bits stands for, by
// the definition of IEEE 754.
double defined_value(std::uint32_t pattern, int mantissa) {
  const int bias = (1 << (14 - mantissa)) - 1;
  const int exponent = static_cast<int>((pattern & 0x7fff) >> mantissa);
  const double fraction = std::ldexp(pattern & ((1u << mantissa) - 1), -mantissa);
  const double sign = (pattern & 0x8000) != 0 ? -1 : 1;
  if (exponent == 2 * bias + 1)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

class HalfPrecision : public testing::TestWithParam<std::pair<DType, int>> {};

TEST_P(HalfPrecision, HasTheValueOfItsDefinitionForEveryPattern) {
  const auto [dtype, mantissa] = GetParam();
  const Tensor patterns = every_pattern(dtype);
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const double expected = defined_value(pattern, mantissa), actual = patterns.at(pattern);
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(actual)) << pattern;
    else
      ASSERT_EQ(std::bit_cast<std::uint64_t>(actual), std::bit_cast<std::uint64_t>(expected))
          << pattern;
  }
}

TEST_P(HalfPrecision, ComesBackFromEveryWiderTypeAsTheSamePattern) {
  const auto [dtype, mantissa] = GetParam();
  const Tensor patterns = every_pattern(dtype);
  for (const DType wider : {DType::F32, DType::F64}) {
    const Tensor back = patterns.converted(wider).converted(dtype);
    for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
      if (std::isnan(patterns.at(pattern)))
        ASSERT_TRUE(std::isnan(back.at(pattern))) << pattern;
      else
        ASSERT_EQ(pattern_at(back, pattern), pattern);
    }
  }
}

TEST_P(HalfPrecision, RoundsBetweenNeighboursToTheNearerAndTiesToEven) {
  const auto [dtype, mantissa] = GetParam();
  const std::uint32_t infinity = 0x8000u - (1u << mantissa);
  for (std::uint32_t pattern = 0; pattern + 1 < infinity; ++pattern) {
    const double low = defined_value(pattern, mantissa),
                 high = defined_value(pattern + 1, mantissa);
    const double middle = (low + high) / 2;
    const double nudge = (high - low) * 0x1p-30;  // far below what a float could carry
    ASSERT_EQ(rounded(middle, dtype), pattern + pattern % 2) << pattern;
    ASSERT_EQ(rounded(middle - nudge, dtype), pattern) << pattern;
    ASSERT_EQ(rounded(middle + nudge, dtype), pattern + 1) << pattern;
    ASSERT_EQ(rounded(-middle, dtype), 0x8000u + pattern + pattern % 2) << pattern;
  }
}

INSTANTIATE_TEST_SUITE_P(Both, HalfPrecision,
                         testing::Values(std::pair{DType::F16, 10}, std::pair{DType::BF16, 7}),
                         [](const auto& test) { return std::string(name(test.param.first)); });

TEST(Tensor, RoundsToInfinityOnlyFromHalfAStepBeyondTheLargestNumber) {
  EXPECT_EQ(rounded(65504, DType::F16), 0x7bff);
  EXPECT_EQ(rounded(65519.99, DType::F16), 0x7bff);
  EXPECT_EQ(rounded(65520, DType::F16), 0x7c00);
  EXPECT_EQ(rounded(-1e300, DType::F16), 0xfc00);
  EXPECT_EQ(rounded(1e300, DType::BF16), 0x7f80);
  EXPECT_EQ(rounded(-0.0, DType::F16), 0x8000);
}

TEST(Tensor, CastsToIntegersTowardsZeroAndSaturates) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor values = list<double>({1.9, -1.9, 300, -300, 1e30, -1e30, inf, -inf, nan});
  const auto cast = [&](DType dtype) {
    std::vector<double> result;
    const Tensor converted = values.converted(dtype);
    for (std::int64_t i = 0; i < converted.num_elements(); ++i) result.push_back(converted.at(i));
    return result;
  };
  EXPECT_EQ(cast(DType::I8), (std::vector<double>{1, -1, 127, -128, 127, -128, 127, -128, 0}));
  EXPECT_EQ(cast(DType::U8), (std::vector<double>{1, 0, 255, 0, 255, 0, 255, 0, 0}));
  EXPECT_EQ(cast(DType::I16),
            (std::vector<double>{1, -1, 300, -300, 32767, -32768, 32767, -32768, 0}));
  EXPECT_EQ(cast(DType::I32), (std::vector<double>{1, -1, 300, -300, 2147483647, -2147483648.0,
                                                   2147483647, -2147483648.0, 0}));
  EXPECT_EQ(cast(DType::Bool), (std::vector<double>{1, 1, 1, 1, 1, 1, 1, 1, 1}));
  const Tensor wide = values.converted(DType::I64);
  EXPECT_EQ(wide.data<std::int64_t>()[4], std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(wide.data<std::int64_t>()[5], std::numeric_limits<std::int64_t>::min());
}

TEST(Tensor, SaturatesWideIntegersExactly) {
  const Tensor values = list<std::int64_t>({2147483648, -2147483649, 2147483647, 7});
  const Tensor narrow = values.converted(DType::I32);
  EXPECT_EQ(std::vector(narrow.data<std::int32_t>().begin(), narrow.data<std::int32_t>().end()),
            (std::vector<std::int32_t>{2147483647, -2147483647 - 1, 2147483647, 7}));
}

TEST(Tensor, SharesBytesUntilACopyWrites) {
  Tensor first = list<float>({1, 2, 3});
  Tensor second = first;
  EXPECT_EQ(first.bytes(), second.bytes());

  second.mutable_data<float>()[0] = 9;

  EXPECT_NE(first.bytes(), second.bytes());
  EXPECT_EQ(first.at(0), 1);
  EXPECT_EQ(second.at(0), 9);
  const std::byte* own = second.bytes();
  second.mutable_data<float>()[1] = 8;
  EXPECT_EQ(second.bytes(), own);  // alone now: no further copy
}

TEST(Tensor, NeverWritesThroughAView) {
  const float values[] = {1, 2};
  auto owner = std::make_shared<int>(0);
  Tensor view = Tensor::view(DType::F32, {2}, reinterpret_cast<const std::byte*>(values), owner);
  EXPECT_EQ(owner.use_count(), 2);

  view.mutable_data<float>()[0] = 5;

  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(view.at(0), 5);
  EXPECT_EQ(view.at(1), 2);
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(Tensor, KeepsItsBytesUnderAnotherShape) {
  const Tensor tensor = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor reshaped = tensor.reshaped({3, 2});
  EXPECT_EQ(reshaped.bytes(), tensor.bytes());
  EXPECT_EQ(reshaped.dims(), (std::vector<std::int64_t>{3, 2}));
  EXPECT_THROW((void)tensor.reshaped({4}), InternalError);
}

TEST(Tensor, ComparesDtypeShapeAndBits) {
  const Tensor tensor = list<float>({0, 1});
  EXPECT_TRUE(identical(tensor, list<float>({0, 1})));
  EXPECT_FALSE(identical(tensor, list<float>({-0.0f, 1})));
  EXPECT_FALSE(identical(tensor, tensor.reshaped({1, 2})));
  EXPECT_FALSE(identical(list<std::int32_t>({0}), list<float>({0})));
}

TEST(Tensor, StartsAtZeroAndMayBeEmpty) {
  const Tensor tensor(DType::I64, {2, 2});
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(tensor.at(i), 0);
  EXPECT_EQ(Tensor(DType::F32, {3, 0}).num_elements(), 0);
  EXPECT_EQ(Tensor(DType::F32, {}).num_elements(), 1);
  EXPECT_THROW((void)tensor.at(4), InternalError);
  EXPECT_THROW((void)tensor.data<float>(), InternalError);
}

TEST(Tensor, RefusesShapesThatNoMemoryCanHold) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  EXPECT_EQ(error_text([&] {
              Tensor(DType::U8, {kHuge, kHuge});
            }),
            "shape [1099511627776,1099511627776] has more elements than 64 bits can count");
  EXPECT_EQ(error_text([] { Tensor(DType::F64, {std::int64_t{1} << 61}); }),
            "a tensor of shape [2305843009213693952] does not fit in memory");
#ifndef __SANITIZE_ADDRESS__  // which stops the program at such a request
  EXPECT_EQ(error_text([] { Tensor(DType::U8, {std::int64_t{1} << 62}); }),
            "a tensor of shape [4611686018427387904] does not fit in memory");
#endif
}

}  // namespace
}  // namespace lathe

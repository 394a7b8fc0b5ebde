// Element formats and MX blocks against definitions written down a second time: a list of numbers
// made by std::ldexp, and a search in it for the nearest with the arithmetic of double, which is
// exact for everything that is compared here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lathe/core/number_format.h"
#include "lathe/numerics/testing/matrix.h"
#include "lathe/numerics/testing/probes.h"

namespace lathe::numerics {
namespace {

// The magnitudes of a format by their codes, from 0 up.
struct Magnitudes {
  std::vector<double> numbers;
  bool saturates = true;
  bool has_infinity = false;

  // Ties go to the even code, as the codes of neighbours differ by one. Infinity or NaN follow the
  // last number as if they were the next one.
  double nearest(double magnitude) const {
    if (std::isnan(magnitude)) return magnitude;
    const double last = numbers.back();
    const double next = last + (last - numbers[numbers.size() - 2]);
    const bool last_is_even = numbers.size() % 2 == 1;
    const double limit = (last + next) / 2;
    if (magnitude > limit || (magnitude == limit && !last_is_even)) {
      if (saturates) return last;
      return has_infinity ? INFINITY : NAN;
    }
    const auto above = std::lower_bound(numbers.begin(), numbers.end(), magnitude);
    if (above == numbers.end()) return last;
    if (above == numbers.begin()) return numbers.front();
    const double high = *above;
    const double low = *(above - 1);
    const double to_low = magnitude - low;
    const double to_high = high - magnitude;
    const bool high_is_even = (above - numbers.begin()) % 2 == 0;
    return to_high < to_low || (to_high == to_low && high_is_even) ? high : low;
  }
};

// 2^bits exponents above the subnormal numbers, without the `left_out` last codes.
Magnitudes minifloat(int exponent_bits, int mantissa_bits, int bias, int left_out) {
  Magnitudes magnitudes;
  const int mantissas = 1 << mantissa_bits;
  for (int exponent = 0; exponent < 1 << exponent_bits; ++exponent)
    for (int mantissa = 0; mantissa < mantissas; ++mantissa) {
      const double significand = exponent == 0 ? mantissa : mantissas + mantissa;
      magnitudes.numbers.push_back(
          std::ldexp(significand, std::max(exponent, 1) - bias - mantissa_bits));
    }
  magnitudes.numbers.resize(magnitudes.numbers.size() - static_cast<std::size_t>(left_out));
  return magnitudes;
}

Magnitudes overflowing(Magnitudes magnitudes, bool has_infinity) {
  magnitudes.saturates = false;
  magnitudes.has_infinity = has_infinity;
  return magnitudes;
}

const std::map<std::string, Magnitudes>& elements() {
  static const std::map<std::string, Magnitudes> all = {
      {"minifloat:e4m3", minifloat(4, 3, 7, 1)},
      {"minifloat:e5m2", minifloat(5, 2, 15, 4)},
      {"minifloat:e3m2", minifloat(3, 2, 3, 0)},
      {"minifloat:e2m3", minifloat(2, 3, 1, 0)},
      {"minifloat:e2m1", minifloat(2, 1, 1, 0)},
      {"minifloat:e4m3,overflow", overflowing(minifloat(4, 3, 7, 1), false)},
      {"minifloat:e5m2,overflow", overflowing(minifloat(5, 2, 15, 4), true)},
      {"minifloat:8,4,bias=7", minifloat(4, 3, 7, 0)},
      {"minifloat:16,5,bias=15,inf", minifloat(5, 10, 15, 1024)},
      {"minifloat:16,5,bias=15,inf,overflow", overflowing(minifloat(5, 10, 15, 1024), true)},
      {"minifloat:16,8,bias=127,inf", minifloat(8, 7, 127, 128)},
      {"minifloat:16,8,bias=127,inf,overflow", overflowing(minifloat(8, 7, 127, 128), true)},
      {"minifloat:7,2,bias=-3,nan", minifloat(2, 4, -3, 1)},
  };
  return all;
}

class ElementOracle : public testing::TestWithParam<std::string> {};

TEST_P(ElementOracle, AgreesOnEveryProbeAndPath) {
  const Magnitudes& magnitudes = elements().at(GetParam());
  const auto format = parse_format(GetParam());
  Matrix matrix{1, 0, probes(magnitudes.numbers)};
  matrix.columns = std::ssize(matrix.values);
  std::vector<float> expected;
  for (const float x : matrix.values)
    expected.push_back(
        std::copysign(static_cast<float>(magnitudes.nearest(std::fabs(double{x}))), x));

  const auto expect_same = [&](const std::vector<float>& y, std::string_view where) {
    int shown = 0;
    for (std::size_t i = 0; i < y.size() && shown < 3; ++i)
      if (!is_same(y[i], expected[i])) {
        ADD_FAILURE() << where << ": " << matrix.values[i] << " became " << y[i] << " instead of "
                      << expected[i];
        ++shown;
      }
  };
  for (const Isa isa : supported_isas()) expect_same(quantized(*format, matrix, isa), name(isa));
  std::vector<float> decoded = recoded(*format, matrix);
  // A format without NaN stores it as 0.
  for (std::size_t i = 0; i < decoded.size(); ++i)
    if (std::isnan(matrix.values[i])) decoded[i] = expected[i];
  expect_same(decoded, "encode");
}

std::vector<std::string> element_names() {
  std::vector<std::string> names;
  for (const auto& [name, magnitudes] : elements()) names.push_back(name);
  return names;
}
std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(, ElementOracle, testing::ValuesIn(element_names()), test_name);

TEST(IntegerOracle, RoundsTiesToEvenAndSaturates) {
  const auto format = parse_format("fixed:8,4");
  std::vector<double> numbers;
  for (int code = -128; code < 128; ++code) numbers.push_back(code / 16.0);
  Matrix matrix{1, 0, probes(numbers)};
  matrix.columns = std::ssize(matrix.values);
  for (const Isa isa : supported_isas()) {
    const std::vector<float> y = quantized(*format, matrix, isa);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double x = matrix.values[i];
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(y[i]));
        continue;
      }
      const double bounded = std::clamp(x, -8.0, 127 / 16.0);
      const double low = std::floor(bounded * 16);
      const double rest = bounded * 16 - low;
      const bool is_odd = std::fmod(low, 2) != 0;
      const double code = rest > 0.5 || (rest == 0.5 && is_odd) ? low + 1 : low;
      ASSERT_EQ(y[i], static_cast<float>(code / 16)) << x << " on " << name(isa);
      ASSERT_FALSE(y[i] == 0 && std::signbit(y[i])) << x << ": two's complement has no -0";
    }
  }
}

// A block of MX values as the specification says it: the scale is a power of two by floor(log2),
// found by std::frexp, and every element the nearest number after dividing by it.
std::vector<float> mx_block(const std::vector<float>& block, const Magnitudes& magnitudes,
                            int largest_exponent) {
  double largest = 0;
  bool is_finite = true;
  for (const float value : block) {
    is_finite = is_finite && std::isfinite(value);
    largest = std::max(largest, std::fabs(double{value}));
  }
  std::vector<float> result;
  int exponent = -127;
  if (largest > 0 && is_finite) {
    std::frexp(largest, &exponent);  // largest = f 2^exponent, f in [0.5, 1)
    exponent = std::max(exponent - 1 - largest_exponent, -127);
  }
  for (const float value : block) {
    const double element = magnitudes.nearest(std::ldexp(std::fabs(double{value}), -exponent));
    const double magnitude = std::ldexp(element, exponent);
    result.push_back(is_finite ? std::copysign(static_cast<float>(magnitude), value) : NAN);
  }
  return result;
}

struct MxCase {
  std::string format;
  Magnitudes magnitudes;
  int largest_exponent = 0;
  bool has_minus_zero = true;
};

std::vector<MxCase> mx_cases() {
  Magnitudes int8;
  for (int code = 0; code < 128; ++code) int8.numbers.push_back(code / 64.0);
  Magnitudes int4;
  for (int code = 0; code < 8; ++code) int4.numbers.push_back(code / 4.0);
  return {{"mxfp:e4m3", minifloat(4, 3, 7, 1), 8},
          {"mxfp:e5m2", minifloat(5, 2, 15, 4), 15},
          {"mxfp:e3m2", minifloat(3, 2, 3, 0), 4},
          {"mxfp:e2m3", minifloat(2, 3, 1, 0), 2},
          {"mxfp:e2m1", minifloat(2, 1, 1, 0), 2},
          {"mxint:8", int8, 0, false},
          {"mxint:4", int4, 0, false}};
}

TEST(MxOracle, AgreesOnBlocksOfEveryKindAndPath) {
  std::vector<Matrix> matrices = {random_matrix(41, 96, 1), tied_matrix(24, 96, 2),
                                  wild_matrix(60, 96, false, 3), wild_matrix(60, 96, true, 4)};
  // Maxima at every power of two and next to it, and a short last block.
  Matrix edges{0, 70, {}};
  for (int exponent = -149; exponent < 128; ++exponent) {
    const auto power = static_cast<float>(std::ldexp(1.0, exponent));
    for (const float top : {power, std::nextafter(power, 0.0f), std::nextafter(power, INFINITY)}) {
      for (int i = 0; i < 70; ++i)
        edges.values.push_back(
            top * (i == 3 || i == 35 || i == 69 ? -1.0f : 0.021f * static_cast<float>(i % 32)));
      ++edges.rows;
    }
  }
  matrices.push_back(edges);
  for (const MxCase& test : mx_cases()) {
    const auto format = parse_format(test.format);
    for (const Matrix& matrix : matrices) {
      std::vector<float> expected;
      for (std::int64_t r = 0; r < matrix.rows; ++r)
        for (std::int64_t c = 0; c < matrix.columns; c += 32) {
          const auto start = matrix.values.begin() + r * matrix.columns + c;
          const std::vector<float> block =
              mx_block({start, start + std::min<std::int64_t>(32, matrix.columns - c)},
                       test.magnitudes, test.largest_exponent);
          expected.insert(expected.end(), block.begin(), block.end());
        }
      for (const Isa isa : supported_isas()) {
        const std::vector<float> y = quantized(*format, matrix, isa);
        int shown = 0;
        for (std::size_t i = 0; i < y.size() && shown < 2; ++i) {
          const float wanted = !test.has_minus_zero && expected[i] == 0 ? 0.0f : expected[i];
          if (is_same(y[i], wanted)) continue;
          ADD_FAILURE() << test.format << " on " << name(isa) << ": element " << i << ", "
                        << matrix.values[i] << ", became " << y[i] << " instead of " << wanted;
          ++shown;
        }
      }
    }
  }
}

TEST(MxOracle, StoresZeroBlocksAsScaleZeroAndNanBlocksAs255) {
  for (const char* text : {"mxint:8", "mxfp:e4m3", "mxfp:e2m1"}) {
    Matrix matrix{3, 32, std::vector<float>(96, 0.0f)};
    matrix.values[40] = NAN;
    matrix.values[70] = -INFINITY;
    const auto format = parse_format(text);
    const EncodedMatrix encoded = format->encode(arguments(matrix, {}, nullptr, best_isa()));
    EXPECT_EQ(encoded.scales, (std::vector<std::uint8_t>{0, 255, 255})) << text;
    const std::vector<float> y = quantized(*format, matrix, best_isa());
    for (std::size_t i = 0; i < 96; ++i)
      EXPECT_TRUE(i < 32 ? y[i] == 0 : std::isnan(y[i])) << text << ", element " << i;
  }
}

TEST(MxOracle, TakesTheSpecificationsExampleOfClipping) {
  // 957 in E4M3: the floor rule's scale is 2, where 448 is the largest; "rceil" takes 4.
  Matrix matrix{1, 1, {957}};
  EXPECT_EQ(quantized(*parse_format("mxfp:e4m3"), matrix, best_isa())[0], 896);
  EXPECT_EQ(quantized(*parse_format("mxfp:e4m3,scale=rceil"), matrix, best_isa())[0], 960);
  EXPECT_EQ(quantized(*parse_format("mxfp:e4m3,scale=ceil"), matrix, best_isa())[0], 960);
  // 7 in E2M1 is halfway between 6 and the 8 that there is not.
  matrix.values = {7};
  EXPECT_EQ(quantized(*parse_format("mxfp:e2m1"), matrix, best_isa())[0], 6);
  EXPECT_EQ(quantized(*parse_format("mxfp:e2m1,scale=even"), matrix, best_isa())[0], 8);
}

}  // namespace
}  // namespace lathe::numerics

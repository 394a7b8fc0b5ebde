// What holds for every format: the tests run over the examples of the registry, so that a new file
// is covered from the day it is added.
#include <gtest/gtest.h>

#include <algorithm>

#include "lathe/core/number_format.h"
#include "lathe/numerics/testing/matrix.h"

namespace lathe::numerics {
namespace {

std::vector<std::string> every_example() {
  std::vector<std::string> all;
  for (const auto& [name, family] : FormatRegistry::instance().all())
    all.insert(all.end(), family.examples.begin(), family.examples.end());
  return all;
}

class EveryFormat : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const NumberFormat> format = parse_format(GetParam());

  // Every path against decode(encode(x)), where NaN stays NaN.
  void expect_same_on_every_path(const Matrix& matrix) {
    const std::vector<float> expected = recoded(*format, matrix);
    for (const Isa isa : supported_isas()) {
      const std::vector<float> y = quantized(*format, matrix, isa);
      int shown = 0;
      for (std::size_t i = 0; i < y.size() && shown < 3; ++i) {
        const float x = matrix.values[i];
        if (std::isnan(x) ? std::isnan(y[i]) : is_same(y[i], expected[i])) continue;
        ADD_FAILURE() << name(isa) << " " << matrix.rows << "x" << matrix.columns << ": element "
                      << i << ", x " << x << ": " << y[i] << " instead of " << expected[i];
        ++shown;
      }
    }
  }
};

TEST_P(EveryFormat, WritesItsOwnNameBack) {
  const std::string text = format->facts().text;
  EXPECT_EQ(parse_format(text)->facts().text, text);
  EXPECT_EQ(text.substr(0, text.find(':')), format->facts().family);
}

TEST_P(EveryFormat, QuantizesAsItEncodesOnEveryPath) {
  for (const std::int64_t columns : {1, 7, 16, 31, 64, 67, 96, 130, 384}) {
    expect_same_on_every_path(random_matrix(9, columns, 1));
    expect_same_on_every_path(tied_matrix(12, columns, 2));
  }
}

TEST_P(EveryFormat, TreatsSubnormalsAndHugeNumbersAlikeOnEveryPath) {
  expect_same_on_every_path(wild_matrix(24, 64, false, 3));
  expect_same_on_every_path(wild_matrix(24, 51, false, 4));
}

TEST_P(EveryFormat, TreatsInfinitiesAndNanAlikeOnEveryPath) {
  expect_same_on_every_path(wild_matrix(24, 64, true, 5));
  expect_same_on_every_path(wild_matrix(24, 51, true, 6));
}

TEST_P(EveryFormat, CanWriteOverItsInput) {
  Matrix matrix = random_matrix(5, 67, 7);
  const std::vector<float> expected = quantized(*format, matrix, best_isa());
  const Given given = given_scales(*format, 5, 67);
  format->quantize(arguments(matrix, given, matrix.values.data(), best_isa()));
  EXPECT_TRUE(are_same(matrix.values.data(), expected.data(), 5 * 67));
}

TEST_P(EveryFormat, StreamsLargeOutputsUnchanged) {
  // Larger than the limit of should_stream, at an address that suits no vector.
  const Matrix matrix = random_matrix(1100, 4096, 8);
  const Given given = given_scales(*format, matrix.rows, matrix.columns);
  std::vector<float> all(matrix.values.size() + 1);
  for (const std::int64_t offset : {0, 1}) {
    QuantizeArgs args = arguments(matrix, given, all.data() + offset, best_isa());
    format->quantize(args);
    if (!format->facts().is_row_local) continue;
    // The same in pieces that stay in a cache.
    std::vector<float> row(static_cast<std::size_t>(matrix.columns));
    for (std::int64_t r = 0; r < matrix.rows; r += 137) {
      QuantizeArgs one = args;
      one.rows = 1;
      one.x = args.x + r * matrix.columns;
      one.y = row.data();
      const std::int64_t per_row = format->facts().granularity == Granularity::Tensor
                                       ? 0
                                       : format->num_given_scales(1, matrix.columns);
      if (one.scales != nullptr) one.scales += r * per_row;
      if (one.zeros != nullptr) one.zeros += r * per_row;
      format->quantize(one);
      ASSERT_TRUE(are_same(row.data(), args.y + r * matrix.columns, matrix.columns)) << "row " << r;
    }
  }
}

TEST_P(EveryFormat, KeepsRowsApartUnlessItSaysOtherwise) {
  const Matrix matrix = random_matrix(6, 50, 9);
  if (format->facts().granularity == Granularity::Tensor &&
      format->facts().scale_source == ScaleSource::Local) {
    EXPECT_FALSE(format->facts().is_row_local);
  }
  // Given scales are tested row by row in StreamsLargeOutputsUnchanged.
  if (!format->facts().is_row_local || format->facts().scale_source == ScaleSource::Given) return;
  const std::vector<float> all = quantized(*format, matrix, best_isa());
  for (std::int64_t r = 0; r < 6; ++r) {
    const Matrix row{1, 50, {matrix.values.begin() + r * 50, matrix.values.begin() + r * 50 + 50}};
    const std::vector<float> alone = quantized(*format, row, best_isa());
    EXPECT_TRUE(are_same(alone.data(), all.data() + r * 50, 50)) << "row " << r;
  }
}

TEST_P(EveryFormat, StoresAsManyBytesAsItSays) {
  const Matrix matrix = random_matrix(3, 45, 10);
  const Given given = given_scales(*format, 3, 45);
  const EncodedMatrix encoded = format->encode(arguments(matrix, given, nullptr, best_isa()));
  EXPECT_EQ(std::ssize(encoded.codes), 3 * format->code_bytes(45));
  if (format->facts().is_row_local) {
    EXPECT_EQ(std::ssize(encoded.scales), 3 * format->scale_bytes(45));
  }
}

TEST_P(EveryFormat, AcceptsAnEmptyMatrix) {
  for (const Matrix& matrix : {Matrix{0, 8}, Matrix{4, 0}}) {
    EXPECT_TRUE(quantized(*format, matrix, best_isa()).empty());
    EXPECT_TRUE(recoded(*format, matrix).empty());
  }
}

TEST_P(EveryFormat, RoundsDownwardsWithFloor) {
  const Matrix matrix = random_matrix(4, 64, 11);
  const std::vector<float> y = quantized(*format, matrix, best_isa(), Rounding::Floor);
  EXPECT_TRUE(are_same(y.data(), recoded(*format, matrix, Rounding::Floor).data(), 4 * 64));
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(, EveryFormat, testing::ValuesIn(every_example()), test_name);

}  // namespace
}  // namespace lathe::numerics

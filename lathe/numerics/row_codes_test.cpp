#include "lathe/numerics/row_codes.h"

#include <gtest/gtest.h>

namespace lathe::numerics {
namespace {

// Codes read as whole numbers are worth what `decode` makes of them, for every format that has
// them.
TEST(RowCodes, AreWorthWhatTheFormatDecodes) {
  int formats = 0;
  for (const auto& [name, family] : FormatRegistry::instance().all())
    for (const std::string& text : family.examples) {
      SCOPED_TRACE(text);
      const std::shared_ptr<const NumberFormat> format = parse_format(text);
      if (!has_row_codes(*format)) continue;
      ++formats;
      constexpr std::int64_t kRows = 3, kColumns = 72;
      std::vector<float> x(kRows * kColumns);
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<float>((i * 37 % 101) * 0.043 - 1.7);
      const auto num_scales = static_cast<std::size_t>(format->num_given_scales(kRows, kColumns));
      const std::vector<float> scales(num_scales, 0.03f), zeros(num_scales, 3.0f);
      const EncodedMatrix encoded = format->encode({.rows = kRows,
                                                    .columns = kColumns,
                                                    .x = x.data(),
                                                    .scales = scales.data(),
                                                    .zeros = zeros.data()});
      std::vector<float> decoded(x.size());
      format->decode(encoded, scales.data(), zeros.data(), decoded.data());
      const RowCodes codes = read_codes(*format, encoded, scales.data(), zeros.data());
      ASSERT_EQ(codes.scales.size(), static_cast<std::size_t>(kRows * codes.blocks));
      for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
        const std::int64_t width = codes.blocks > 1 ? format->facts().block_columns : kColumns;
        const auto at =
            static_cast<std::size_t>(i / kColumns * codes.blocks + i % kColumns / width);
        const auto element = static_cast<std::size_t>(i);
        EXPECT_EQ(static_cast<float>(codes.numbers[element] - codes.zeros[at]) * codes.scales[at],
                  decoded[element])
            << "element " << i;
      }
    }
  EXPECT_GT(formats, 10);
}

TEST(RowCodes, AreOfSingleTermsAndNarrowIntegersAlone) {
  for (const char* text : {"int:8,channel", "int:4,group=32", "mxint:8", "fixed:8,4", "ternary",
                           "binary:scaled", "int:8,asymmetric,dynamic"})
    EXPECT_TRUE(has_row_codes(*parse_format(text))) << text;
  for (const char* text : {"int:9", "fixed:16,8", "binary:residual,2", "mxfp:e2m1", "nf4"})
    EXPECT_FALSE(has_row_codes(*parse_format(text))) << text;
}

}  // namespace
}  // namespace lathe::numerics

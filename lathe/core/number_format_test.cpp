#include "lathe/core/number_format.h"

#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

// A format with facts and nothing else.
class FactsOnly final : public NumberFormat {
 public:
  explicit FactsOnly(FormatFacts facts) : facts_(std::move(facts)) {}
  const FormatFacts& facts() const override { return facts_; }
  void quantize(const QuantizeArgs&) const override {}
  EncodedMatrix encode(const QuantizeArgs&) const override { return {}; }
  void decode(const EncodedMatrix&, const float*, const float*, float*) const override {}
  std::int64_t code_bytes(std::int64_t) const override { return 0; }
  std::int64_t scale_bytes(std::int64_t) const override { return 0; }

 private:
  FormatFacts facts_;
};

TEST(NumberFormat, CountsGivenScalesByGranularity) {
  FormatFacts facts{.text = {},
                    .family = {},
                    .element_bits = 4,
                    .scale_source = ScaleSource::Given,
                    .scale_bits = 32};
  EXPECT_EQ(FactsOnly(facts).num_given_scales(3, 100), 1);
  facts.granularity = Granularity::Row;
  EXPECT_EQ(FactsOnly(facts).num_given_scales(3, 100), 3);
  facts.granularity = Granularity::Block;
  facts.block_columns = 32;
  EXPECT_EQ(FactsOnly(facts).num_given_scales(3, 100), 12) << "four blocks a row, the last short";
  facts.scale_source = ScaleSource::Local;
  EXPECT_EQ(FactsOnly(facts).num_given_scales(3, 100), 0);
}

TEST(NumberFormat, CountsTheBitsOfScales) {
  const FactsOnly format({.text = {},
                          .family = {},
                          .element_bits = 8,
                          .scale_source = ScaleSource::Local,
                          .granularity = Granularity::Block,
                          .block_columns = 32,
                          .scale_bits = 8});
  EXPECT_EQ(format.bits_per_element(7, 64), 8.25);
  EXPECT_EQ(format.bits_per_element(1, 40), 8 + 16.0 / 40);
}

TEST(NumberFormat, IsNothingForFloat) {
  EXPECT_EQ(parse_format("float"), nullptr);
  EXPECT_EQ(error_text([] { parse_format("float:8"); }),
            "format \"float:8\": float takes no arguments");
}

}  // namespace
}  // namespace lathe

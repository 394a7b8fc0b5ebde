#include "lathe/experiment/quantize_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/compress/packed_weights.h"
#include "lathe/experiment/rounding_levels.h"
#include "lathe/experiment/testing/opinions.h"
#include "lathe/io/model_size.h"

namespace lathe::experiment {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class QuantizeSummaryTest : public testing::Test {
 protected:
  io::ScratchDirectory scratch_;
  io::Model model_ = io::load_model(io::write_tiny_bert(scratch_, "m"));
};

TEST_F(QuantizeSummaryTest, NamesWhatStaysFloatAndTheOptionThatRoundsIt) {
  const Quantized quantized = quantize(model_, {.weights = "int:4,channel"}, nullptr, {});
  const std::vector<FloatPart> parts = float_parts(quantized);
  ASSERT_GE(parts.size(), 3u);
  double shares = 0;
  for (const FloatPart& part : parts) {
    EXPECT_NE(part.what, "weights");
    shares += part.share;
  }
  EXPECT_GT(shares, 0);
  EXPECT_LT(shares, 1);
  EXPECT_EQ(parts[0].what, "embeddings");
  EXPECT_EQ(parts[0].remedy, "embeddings int:8");
  io::Model packed = quantized.model;
  compress::pack_model(packed, false);
  const QuantizeSummary summary = summarize(model_, quantized, packed, io::Storage::Sparse, {}, {});
  EXPECT_EQ(summary.bytes_before, io::checkpoint_size(model_).bytes());
  EXPECT_EQ(summary.bytes_after, io::checkpoint_size(packed).bytes());
  EXPECT_THAT(summary_facts(summary)[1].second,
              HasSubstr("of the parameters' bytes and stay float: --embeddings int:8"));
}

TEST_F(QuantizeSummaryTest, LeavesOutWhatIsRounded) {
  const Quantized quantized =
      quantize(model_, {.weights = "int:8", .bias = "int:8", .embeddings = "int:8"}, nullptr, {});
  for (const FloatPart& part : float_parts(quantized)) EXPECT_EQ(part.what, "other parameters");
}

TEST(QuantizeSummary, NamesATableThatIsReadInTwoFormats) {
  const io::Model model = io::load_model(
      "gpt2-tiny", {.config = {{"vocab_size", std::int64_t{40}}, {"n_embd", std::int64_t{8}}}});
  const auto kinds = [&](const QuantizeOptions& options) {
    std::vector<std::string> names;
    for (const FloatPart& part : float_parts(quantize(model, options, nullptr, {})))
      names.push_back(part.what);
    return names;
  };
  const char* const twice = "tables that layers multiply with too";
  EXPECT_THAT(kinds({.weights = "mxint:8"}), Contains(twice));
  EXPECT_THAT(kinds({.weights = "mxint:8", .embeddings = "int:8,channel"}), Contains(twice));
  EXPECT_THAT(kinds({.weights = "mxint:8", .embeddings = "mxint:8"}), Not(Contains(twice)));
}

// The numbers of int:4 are -7 to 7 times the scale, and minmax chooses one that clips nothing.
TEST_F(QuantizeSummaryTest, SaysWhereValuesAreRoundedTo) {
  const Quantized quantized =
      quantize(model_, {.weights = "int:4", .weight_range = "minmax"}, nullptr, {});
  const Graph& graph = quantized.model.graph;
  const compress::Quantizer first = compress::find_quantizers(graph).front();
  const Tensor value = compress::parameter_value(graph, quantized.model.state, first);
  const std::span<const float> floats = value.data<float>();
  const std::vector<double> values(floats.begin(), floats.end());
  const auto levels = levels_of(first, graph, quantized.model.state, values);
  ASSERT_TRUE(levels.has_value());
  EXPECT_EQ(levels->count, 15);
  ASSERT_EQ(levels->levels.size(), 15u);
  EXPECT_EQ(levels->levels.front(), *levels->low);
  EXPECT_EQ(levels->clipped, 0) << "minmax clips nothing";
  const double step = levels->levels[1] - levels->levels[0];
  EXPECT_NEAR(levels->levels[7], 0, 1e-12);
  EXPECT_NEAR(levels->levels[8], step, 1e-9 * step);
}

}  // namespace
}  // namespace lathe::experiment

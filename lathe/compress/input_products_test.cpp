#include "lathe/compress/input_products.h"

#include <gtest/gtest.h>

#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/testing/two_layers.h"

namespace lathe::compress {
namespace {

TEST(MeasureInputProducts, AveragesTheProductsOfWhatALinearReads) {
  const io::Model model = two_layers();
  const InputProducts products = measure_input_products(model, texts(), 256, {});
  ASSERT_EQ(products.size(), 2u);
  const std::span<const float> table = model.state.at("table").data<float>();
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (const std::int32_t id : text_ids()) {
        const float* const row = table.data() + static_cast<std::size_t>(id) * 3;
        sum += double{row[i]} * double{row[j]};
      }
      EXPECT_NEAR(products.at("h")[i * 3 + j], sum / 8, 1e-12);
    }
  EXPECT_EQ(products.at("y").size(), 16u);
}

TEST(MeasureInputProducts, LooksAtFloatsWhereInputsAreRounded) {
  const io::Model model = two_layers();
  io::Model rounded = model;
  insert_quantizers(
      rounded.graph, rounded.state,
      {{.formats = {{TensorRole::Weights, "fixed:3,1"}, {TensorRole::Inputs, "fixed:4,2"}}}});
  EXPECT_EQ(measure_input_products(rounded, texts(), 256, {}),
            measure_input_products(model, texts(), 256, {}));
}

}  // namespace
}  // namespace lathe::compress

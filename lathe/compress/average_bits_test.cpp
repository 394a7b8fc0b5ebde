#include "lathe/compress/average_bits.h"

#include <gtest/gtest.h>

#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"

namespace lathe::compress {
namespace {

struct TwoLayers {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,8]
    w = state() : f32[4,8]
    up = linear(x, w)
    v = state() : f32[2,4]
    down = linear(up, v)
    output y <- down
  )");
  State state{{"w", Tensor(DType::F32, {4, 8})}, {"v", Tensor(DType::F32, {2, 4})}};
};

TEST(AverageBits, CountsFloatsAs32) {
  const AverageBits bits = average_bits(TwoLayers().graph);
  EXPECT_EQ(bits.weights, 32);
  EXPECT_EQ(bits.data, 32);
  EXPECT_EQ(bits.rounded_weights, 0);
}

TEST(AverageBits, CountsScalesAndWhatStaysFloat) {
  TwoLayers model;
  insert_quantizers(model.graph, model.state,
                    {{.by = MatchBy::Name,
                      .match = "up",
                      .formats = {{TensorRole::Weights, "int:4,channel"},
                                  {TensorRole::Inputs, "int:8,dynamic"}}}});
  const std::vector<LayerBits> layers = layer_bits(model.graph);
  ASSERT_EQ(layers.size(), 2U);
  // A scale of 32 bits for each row of 8 weights, and for each row of 8 values.
  EXPECT_EQ(layers[0].weight_bits(), 4 + 32 / 8.0);
  EXPECT_EQ(layers[0].data_bits(), 8 + 32 / 8.0);
  EXPECT_EQ(layers[1].weight_bits(), 32);
  // 32 weights of 8 bits and 8 of 32; 8 values of 12 bits a row and 4 of 32.
  const AverageBits bits = average_bits(model.graph);
  EXPECT_DOUBLE_EQ(bits.weights, (32 * 8 + 8 * 32) / 40.0);
  EXPECT_DOUBLE_EQ(bits.data, (8 * 12 + 4 * 32) / 12.0);
  EXPECT_DOUBLE_EQ(bits.rounded_weights, 0.8);
  EXPECT_DOUBLE_EQ(bits.rounded_data, 8 / 12.0);
}

TEST(AverageBits, IsTheSameOncePacked) {
  TwoLayers model;
  insert_quantizers(model.graph, model.state,
                    {{.formats = {{TensorRole::Weights, "int:4,channel"}}}});
  const double before = average_bits(model.graph).weights;
  EXPECT_EQ(pack_weights(model.graph, model.state), 2);
  EXPECT_EQ(average_bits(model.graph).weights, before);
}

TEST(AverageBits, IsAPassThatSaysWhatItCounted) {
  TwoLayers model;
  insert_quantizers(model.graph, model.state, {{.formats = {{TensorRole::Weights, "binary"}}}});
  PassContext context;
  EXPECT_EQ(run_pass("average-bits", model.graph, context).report,
            "weights 1 bits, 100.0 % rounded; data 32 bits, 0.0 % rounded");
}

}  // namespace
}  // namespace lathe::compress

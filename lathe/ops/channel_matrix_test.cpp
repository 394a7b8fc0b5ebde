#include "lathe/ops/channel_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;

TEST(ChannelMatrix, HasARowForEachElementOfItsAxis) {
  const Tensor x =
      Tensor::from<float>({2, 3, 2}, {0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121});
  const Tensor matrix = to_matrix(x, 1);
  EXPECT_EQ(matrix.dims(), (std::vector<std::int64_t>{3, 4}));
  EXPECT_THAT(matrix.data<float>(),
              ElementsAre(0, 1, 100, 101, 10, 11, 110, 111, 20, 21, 120, 121));
  EXPECT_EQ(to_matrix(x, 0).dims(), (std::vector<std::int64_t>{2, 6}));
  for (const std::int64_t axis : {-1, 0, 1, 2})
    EXPECT_TRUE(identical(from_matrix(to_matrix(x, axis), x.dims(), axis), x)) << axis;
}

TEST(Quantize, HasAScaleForEachElementOfItsAxis) {
  // Column 0 in steps of 1, column 1 in steps of 2.
  EXPECT_THAT(result_of(R"(quantize(f32[2,2], f32[2]) {axis=1, format="int:4,channel"})",
                        {f32({2, 2}, {1.2f, 3.2f, -2.7f, 99}), f32({2}, {1, 2})}),
              ElementsAre(1, 4, -3, 14));
  EXPECT_EQ(
      refusal_of(R"(quantize(f32[2,3], f32[2]) {axis=1, format="int:4,channel"})"),
      "node \"y\": quantize: operand 1 is f32[2], but int:4,channel of f32[2,3] needs f32[3]");
  EXPECT_EQ(refusal_of(R"(quantize(f32[2,3]) {axis=2, format="mxint:8"})"),
            "node \"y\": quantize: axis 2 is none of f32[2,3]");
  EXPECT_EQ(refusal_of(R"(quantize(f32[B,3]) {axis=0, format="mxint:8"})"),
            "node \"y\": quantize: axis=0 needs a constant size, but x is f32[B,3]");
}

TEST(LearnedStepGradient, GoesByTheAxis) {
  // The columns of one are the rows of the other.
  const std::vector<Tensor> rows = evaluate(
      R"(learned_step_gradient(f32[2,2], f32[2,2], f32[2,2], f32[2]) {format="int:4,channel"})",
      {f32({2, 2}, {1, 2, 3, 1}), f32({2, 2}, {0.6f, 10, -0.4f, -7}),
       f32({2, 2}, {0.5f, 3.5f, 0, -7}), f32({2}, {0.5f, 1})});
  const std::vector<Tensor> columns = evaluate(
      R"(learned_step_gradient(f32[2,2], f32[2,2], f32[2,2], f32[2])
         {axis=1, format="int:4,channel"})",
      {f32({2, 2}, {1, 3, 2, 1}), f32({2, 2}, {0.6f, -0.4f, 10, -7}),
       f32({2, 2}, {0.5f, 0, 3.5f, -7}), f32({2}, {0.5f, 1})});
  EXPECT_THAT(columns[0].data<float>(), ElementsAre(1, 3, 0, 1));
  EXPECT_TRUE(identical(columns[1], rows[1]));
}

}  // namespace
}  // namespace lathe::ops

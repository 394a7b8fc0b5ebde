#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;

TEST(Linear, MultipliesByTheTransposedWeightAndAddsTheBias) {
  EXPECT_THAT(
      result_of("linear(f32[2,2], f32[3,2], f32[3])",
                {f32({2, 2}, {1, 2, 3, 4}), f32({3, 2}, {1, 0, 0, 1, 1, 1}), f32({3}, {0, 0, 10})}),
      ElementsAre(1, 2, 13, 3, 4, 17));
}

TEST(Linear, RefusesInnerSizesThatDiffer) {
  EXPECT_EQ(refusal_of("linear(f32[8,128], f32[64,256])"),
            "node \"y\": cannot multiply f32[8,128] by weight f32[64,256]: inner sizes 128 and 256 "
            "differ");
  EXPECT_EQ(refusal_of("linear(f32[T,8], f32[16,8], f32[8])"),
            "node \"y\": linear needs bias of shape [16], not f32[8]");
  EXPECT_EQ(refusal_of("linear(i64[T,8], f32[16,8])"),
            "node \"y\": linear works on floating-point numbers, not i64[T,8]");
}

TEST(Linear, CostsTwoOperationsForEachProduct) {
  const Example example = parse_example("linear(f32[B,L,8], f32[16,8])");
  EXPECT_EQ(example.graph.op(example.node).flops(example.graph.call(example.node)).text(),
            "256*B*L");
}

TEST(Matmul, ReadsOperandsTransposedWhenTold) {
  const Tensor a = f32({2, 2}, {1, 2, 3, 4});
  const Tensor b = f32({2, 2}, {1, 1, 0, 1});
  EXPECT_THAT(result_of("matmul(f32[2,2], f32[2,2])", {a, b}), ElementsAre(1, 3, 3, 7));
  EXPECT_THAT(result_of("matmul(f32[2,2], f32[2,2]) {transpose_a=true}", {a, b}),
              ElementsAre(1, 4, 2, 6));
  EXPECT_THAT(result_of("matmul(f32[2,2], f32[2,2]) {transpose_b=true}", {a, b}),
              ElementsAre(3, 2, 7, 4));
}

TEST(Matmul, BroadcastsLeadingAxes) {
  EXPECT_THAT(
      result_of("matmul(f32[2,1,1], f32[1,2])", {f32({2, 1, 1}, {2, 3}), f32({1, 2}, {5, 7})}),
      ElementsAre(10, 14, 15, 21));
  EXPECT_EQ(type_of("matmul(f32[B,1,L,4], f32[8,4,L])"), "f32[B,8,L,L]");
}

TEST(Matmul, RefusesInnerSizesThatDiffer) {
  EXPECT_EQ(refusal_of("matmul(f32[2,3], f32[2,3])"),
            "node \"y\": cannot multiply f32[2,3] by f32[2,3]: inner sizes 3 and 2 differ");
  EXPECT_EQ(refusal_of("matmul(f32[2,2,3], f32[4,3,2])"),
            "node \"y\": cannot multiply f32[2,2,3] and f32[4,3,2]: sizes 2 and 4 differ");
}

TEST(Embedding, CopiesTheRowOfEachId) {
  EXPECT_THAT(
      result_of("embedding(i64[2], f32[3,2])", {i64({2}, {2, 0}), f32({3, 2}, {1, 2, 3, 4, 5, 6})}),
      ElementsAre(5, 6, 1, 2));
}

TEST(Embedding, RefusesAnIdOutsideTheTable) {
  EXPECT_EQ(
      message_of([] {
        evaluate("embedding(i32[3], f32[3,1])", {i32({3}, {0, 3, 1}), f32({3, 1}, {1, 2, 3})});
      }),
      "node \"y\": id 3 at position 1 is outside the table, which has 3 rows");
  EXPECT_EQ(refusal_of("embedding(f32[T], f32[3,1])"),
            "node \"y\": embedding needs integer ids, not f32[T]");
}

}  // namespace
}  // namespace lathe::ops

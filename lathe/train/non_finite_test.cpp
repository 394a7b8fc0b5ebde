#include "lathe/train/non_finite.h"

#include <gtest/gtest.h>

#include <limits>

#include "lathe/core/graph_text.h"

namespace lathe::train {
namespace {

class ExplainNonFinite : public testing::Test {
 protected:
  Graph graph_ = parse_graph(R"(
    x = input() : f32[2]
    w = state() : f32[2]
    y = mul(x, w) : f32[2]
    e = exp(y) : f32[2]
    z = sub(e, e) : f32[2]
    output z <- z
  )");
  std::string explain(float x, float w) {
    return explain_non_finite(graph_, {{"w", Tensor::from<float>({2}, {1.0f, w})}},
                              {{"x", Tensor::from<float>({2}, {1.0f, x})}});
  }
};

TEST_F(ExplainNonFinite, NamesTheFirstNode) {
  EXPECT_EQ(explain(100, 2), "first in node \"e\" (exp), whose operands are finite");
  EXPECT_EQ(explain(3e38f, 3e38f), "first in node \"y\" (mul), whose operands are finite");
}

TEST_F(ExplainNonFinite, NamesAStateOrInputThatWasBadBefore) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(explain(1, infinity), "it is in the state \"w\"");
  EXPECT_EQ(explain(infinity, 1), "it is in the input \"x\"");
}

TEST_F(ExplainNonFinite, SaysWhenItDoesNotHappenAgain) {
  EXPECT_EQ(explain(1, 1), "the reference executor, which rounds less, finds every value finite");
}

}  // namespace
}  // namespace lathe::train

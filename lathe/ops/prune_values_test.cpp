#include <gtest/gtest.h>

#include <limits>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/ops/run_reference.h"

namespace lathe::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor pruned(const char* sparsity, const Tensor& x) {
  const Graph graph = parse_graph(fmt::format(
      "x = input() : f32[2,4]\ny = prune_values(x) {{sparsity={}}}\noutput y <- y\n", sparsity));
  const Tensor* const operands[] = {&x};
  return run_reference(graph, graph.at("y"), operands, {}).front();
}

TEST(PruneValues, SetsTheSmallestMagnitudesOfEachRowToZero) {
  const Tensor x = Tensor::from<float>({2, 4}, {1, -4, 3, -2, 10, 20, -30, 5});
  EXPECT_TRUE(
      identical(pruned("0.5", x), Tensor::from<float>({2, 4}, {0, -4, 3, 0, 0, 20, -30, 0})));
  EXPECT_TRUE(identical(pruned("0", x), x));
}

TEST(PruneValues, TakesTheFirstOfEqualOnesAndKeepsWhatIsNoNumber) {
  const Tensor x = Tensor::from<float>({2, 4}, {1, -1, 1, 1, 0, kInfinity, 0, -kInfinity});
  EXPECT_TRUE(
      identical(pruned("0.75", x), Tensor::from<float>({2, 4}, {0, 0, 0, 1, 0, 0, 0, -kInfinity})));
}

TEST(PruneValues, RefusesToTakeEverything) {
  EXPECT_EQ(error_text([] {
              pruned("1", Tensor(DType::F32, {2, 4}));
            }),
            "line 2: node \"y\": prune_values: sparsity=1: expected 0 or more and below 1");
}

}  // namespace
}  // namespace lathe::ops

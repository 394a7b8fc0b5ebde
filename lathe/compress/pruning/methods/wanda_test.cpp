#include <gtest/gtest.h>

#include <cmath>

#include "lathe/compress/pruning/method.h"
#include "lathe/core/graph_text.h"

namespace lathe::compress {
namespace {

TEST(WandaScores, AreMagnitudesTimesTheNormOfAFeature) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,2]
    w = state() : f32[3,2]
    b = state() : f32[3]
    h = linear(x, w, b)
    a = relu(h)
    v = state() : f32[3,1]
    y = matmul(a, v)
    output y <- y
  )");
  const std::vector<PruningUnit> units =
      make_units(graph, find_prunable(graph), parse_granularity("neuron"));
  const State values{{"w", Tensor::from<float>({3, 2}, {1, -2, 3, 4, -5, 6})},
                     {"b", Tensor::from<float>({3}, {-1, 2, 0})},
                     {"v", Tensor::from<float>({3, 1}, {1, -1, 2})}};
  // Means of x x^T: the squared norms of the features are on the diagonal.
  const std::map<std::string, std::vector<double>> products{{"w", {4, 1, 1, 9}},
                                                            {"v", {1, 0, 0, 0, 16, 0, 0, 0, 25}}};
  const State scores =
      find_pruning_method("wanda").score({.units = units, .values = values, .products = &products});
  EXPECT_TRUE(identical(scores.at("w"), Tensor::from<float>({3, 2}, {2, 6, 6, 12, 10, 18})));
  EXPECT_TRUE(identical(scores.at("b"), Tensor::from<float>({3}, {1, 2, 0})));
  EXPECT_TRUE(identical(scores.at("v"), Tensor::from<float>({3, 1}, {1, 4, 10})));
}

TEST(Wanda, ComparesWithinRowsUnlessAsked) {
  EXPECT_EQ(find_pruning_method("wanda").scope, PruningScope::Row);
}

}  // namespace
}  // namespace lathe::compress

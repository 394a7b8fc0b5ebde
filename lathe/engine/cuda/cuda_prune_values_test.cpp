#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/engine/testing/cuda_gpu.h"

namespace lathe::engine {
namespace {

// Many ties, on both sides of a warp's width, infinities and what is no number.
TEST(CudaPruneValues, TakesOutTiesByIndex) {
  LATHE_NEEDS_GPU();
  for (const double sparsity : {0.0, 0.1, 0.5, 0.97}) {
    SCOPED_TRACE(sparsity);
    const Graph graph = parse_graph(fmt::format(R"(
      x = input() : f32[T,77]
      dy = input() : f32[T,77]
      y = prune_values(x) {{sparsity={0}}}
      dx = prune_values_gradient(dy, x) {{sparsity={0}}}
      output y <- y
      output dx <- dx)",
                                                sparsity));
    Feed feed = random_feed(graph, {{"T", 13}}, 3);
    const std::span<float> x = feed["x"].mutable_data<float>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i % 77 / 7 % 2 == 0) x[i] = (i % 2 == 0 ? 1.0f : -1.0f) * static_cast<float>(i % 3);
      if (i % 50 == 0) x[i] = std::numeric_limits<float>::infinity();
    }
    // Where values are kept a NaN is copied: the gradient shows that it is.
    x[80] = std::numeric_limits<float>::quiet_NaN();
    const Feed expected = make_executor(graph, {}, {.device = "reference"})->run(feed);
    const Feed actual = make_executor(graph, {}, {.device = "cuda"})->run(feed);
    for (std::int64_t i = 0; i < 13 * 77; ++i) {
      EXPECT_EQ(actual.at("dx").at(i), expected.at("dx").at(i)) << i;
      EXPECT_EQ(std::isnan(actual.at("y").at(i)), std::isnan(expected.at("y").at(i))) << i;
      if (std::isnan(expected.at("y").at(i))) continue;
      EXPECT_EQ(actual.at("y").at(i), expected.at("y").at(i)) << i;
    }
  }
}

}  // namespace
}  // namespace lathe::engine

#include "lathe/engine/packed_chain.h"

#include <gtest/gtest.h>

#include "lathe/engine/executor.h"
#include "lathe/engine/reference_executor.h"

namespace lathe::engine {
namespace {

TEST(PackedChain, IsTheSameProductsInEveryFormat) {
  const Feed feed{{"x0", packed_chain_input(3, 64)}};
  for (const char* const weight : {"", "mxint:8", "int:8,channel", "int:4,group=32", "ternary"})
    for (const char* const x : {"", "int:8,dynamic"}) {
      if (*weight == 0 && *x != 0) continue;
      const PackedChain chain =
          make_packed_chain({.weight = weight, .x = x, .size = 64, .layers = 2});
      const Tensor expected = run_reference(chain.graph, chain.state, feed).at("y");
      const auto fast = make_executor(chain.graph, chain.state, {.uses_integers = *weight != 0});
      const Tensor y = fast->run(feed).at("y");
      for (std::size_t i = 0; i < y.data<float>().size(); ++i)
        ASSERT_NEAR(y.data<float>()[i], expected.data<float>()[i], 1e-4)
            << weight << " by " << x << ", element " << i;
    }
}

TEST(PackedChain, CountsTheBytesOfALayer) {
  EXPECT_EQ(make_packed_chain({.size = 64, .layers = 3}).layer_bytes, 64 * 64 * 4);
  // A byte for each number and one for each block of 32.
  EXPECT_EQ(make_packed_chain({.weight = "mxint:8", .size = 64, .layers = 3}).layer_bytes,
            64 * 64 + 64 * 2);
}

}  // namespace
}  // namespace lathe::engine

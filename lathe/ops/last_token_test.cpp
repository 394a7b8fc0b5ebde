#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;

TEST(LastToken, TakesTheLastTokenThatTheMaskMarks) {
  EXPECT_THAT(result_of("last_token(f32[3,2,2], i32[3,2])",
                        {f32({3, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
                         i32({3, 2}, {1, 1, 1, 0, 0, 0})}),
              ElementsAre(3, 4, 5, 6, 9, 10));
}

TEST(LastToken, RefusesAMaskOfAnotherShape) {
  EXPECT_EQ(refusal_of("last_token(f32[B,L,4], i32[B,4])"),
            "node \"y\": last_token: mask i32[B,4] does not fit f32[B,L,4]");
}

TEST(LastToken, IsTheEndOfEachSequenceWhenPacked) {
  Graph graph = parse_graph(R"(
    symbols B, L
    x = input() : f32[B,L,4]
    attention_mask = input() : i32[B,L]
    y = last_token(x, attention_mask) : f32[B,4]
    output y <- y
  )");
  run_pass("pack-sequences", graph);
  EXPECT_EQ(print(graph, "y"), "y = select_in_sequence(x, offsets) {index=-1} : f32[S,4]");
  EXPECT_FALSE(graph.find("attention_mask"));
}

TEST(LastTokenGradient, PutsEachRowAtItsLastToken) {
  EXPECT_THAT(result_of("last_token_gradient(f32[2,1], i32[2,3]) : f32[2,3,1]",
                        {f32({2, 1}, {5, 7}), i32({2, 3}, {1, 1, 0, 1, 1, 1})}),
              ElementsAre(0, 5, 0, 0, 0, 7));
}

}  // namespace
}  // namespace lathe::ops

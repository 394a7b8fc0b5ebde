#include "lathe/engine/fusion_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/engine/lower.h"

namespace lathe::engine {
namespace {

TEST(FusionNotes, SayWhyAPairStayedApart) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,8]
    c = input() : f32[B,1]
    w = state() : f32[8,8]
    fused = linear(x, w)
    a = relu(fused)
    twice = linear(a, w)
    b = relu(twice)
    d = mul(twice, b)
    other = linear(d, w)
    e = add(other, c)
    strange = linear(e, w)
    f = sin(strange)
    output y <- f)");
  EXPECT_THAT(explain_unfused(lower(graph, find_backend("cpu"))),
              testing::ElementsAre(
                  FusionNote{"twice", "b", "linear results are read 2 times"},
                  FusionNote{"other", "e", "the other operand is f32[B,1]"},
                  FusionNote{"strange", "f", "the device has no linear that takes sin in"}));
}

}  // namespace
}  // namespace lathe::engine

#include "lathe/engine/lower.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/engine/origin.h"

namespace lathe::engine {
namespace {

TEST(LowerForInference, FusesActivationAndResidualIntoALinear) {
  const Graph lowered = lower(parse_graph(R"(
    x = input() : f32[T,8]
    w = state() : f32[8,8]
    b = state() : f32[8]
    h = linear(x, w, b)
    d = dropout(h) {rate=0.1}
    a = gelu(d) {approximate="tanh"}
    y = add(x, a)
    output y <- y
  )"),
                              find_backend("cpu"));
  EXPECT_EQ(print(lowered), R"(lathe-ir 2
symbols T
x = input() : f32[T,8]
w = state() : f32[8,8]
b = state() : f32[8]
y/fused = fused_linear(x, w, b, x) {activation="gelu_tanh"} : f32[T,8]
output y <- y/fused
)");
  EXPECT_EQ(to_text(*lowered.find_annotation<Origin>(lowered.at("y/fused"))), "h + a + y");
}

TEST(LowerForInference, LeavesAValueThatSomebodyElseReads) {
  const Graph lowered = lower(parse_graph(R"(
    x = input() : f32[T,8]
    w = state() : f32[8,8]
    h = linear(x, w)
    a = relu(h)
    output y <- a
    output hidden <- h
  )"),
                              find_backend("cpu"));
  EXPECT_EQ(print(lowered, "a"), "a = relu(h) : f32[T,8]");
}

TEST(LowerForInference, FusesASumIntoALayerNormAndSumsOfEmbeddings) {
  const Graph lowered = lower(parse_graph(R"(
    i = input() : i32[T]
    t = state() : f32[9,8]
    u = state() : f32[5,8]
    g = state() : f32[8]
    e = embedding(i, t)
    f = embedding(i, u)
    s = add(e, f)
    r = relu(s)
    q = add(r, s)
    n = layer_norm(q, g, g)
    output y <- n
  )"),
                              find_backend("cpu"));
  EXPECT_EQ(print(lowered, "s/fused"), "s/fused = embedding_sum(i, t, i, u) : f32[T,8]");
  EXPECT_EQ(print(lowered, "n/fused"), "n/fused = fused_layer_norm(r, s/fused, g, g) : f32[T,8]");
}

// A lowered op has no definition to fall back on, so nothing may be fused that no kernel can do.
TEST(LowerForInference, LeavesWhatTheKernelsCannotDo) {
  const char* const graphs[] = {
      R"(
    x = input() : f64[T,8]
    w = input() : f64[8,8]
    h = linear(x, w)
    y = relu(h)
    output y <- y)",
      R"(
    x = input() : f64[T,8]
    w = state() : f64[8,8]
    h = linear(x, w)
    y = add(h, x)
    output y <- y)",
      R"(
    i = input() : i64[T]
    t = state() : f32[9,8]
    e = embedding(i, t)
    f = embedding(i, t) {}
    u = state() : f32[9,8]
    k = embedding(i, u)
    y = add(e, k)
    output y <- y)",
      R"(
    x = input() : f64[T,8]
    g = state() : f64[8]
    s = add(x, x)
    y = layer_norm(s, g, g)
    output y <- y)"};
  for (const char* text : graphs) {
    const Graph lowered = lower(parse_graph(text), find_backend("cpu"));
    EXPECT_EQ(print(lowered).find("fused"), std::string::npos) << print(lowered);
    EXPECT_EQ(print(lowered).find("embedding_sum"), std::string::npos) << print(lowered);
  }
}

}  // namespace
}  // namespace lathe::engine

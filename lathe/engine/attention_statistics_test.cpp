#include "lathe/engine/attention_statistics.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/engine/lower.h"

namespace lathe::engine {
namespace {

constexpr const char* kTraining = R"(
  dout = input() : f32[T,8]
  q = input() : f32[T,8]
  k = input() : f32[T,8]
  offsets = input() : i32[S+1]
  y = attention(q, k, k, none, offsets) {heads=2}
  d = attention_gradient(dout, q, k, k, none, offsets) {heads=2}
  output y <- y
  output dq <- d)";

TEST(ShareAttentionStatistics, LetsTheGradientReadTheForwardPass) {
  Graph graph = parse_graph(kTraining);
  EXPECT_EQ(share_attention_statistics(graph, find_backend("cuda")), 1);
  verify(graph);
  EXPECT_EQ(print(graph, "y/shared"),
            "y/shared = attention_with_statistics(q, k, k, none, offsets) {heads=2} : "
            "f32[T,8], f32[T,4]");
  EXPECT_EQ(print(graph, "d/shared"),
            "d/shared = attention_gradient_with_statistics(dout, y/shared#0, y/shared#1, q, k, k, "
            "none, offsets) {heads=2} : f32[T,8], f32[T,8], f32[T,8]");
  EXPECT_EQ(graph.find("d"), std::nullopt);
}

TEST(ShareAttentionStatistics, LeavesAGradientAlone) {
  Graph graph = parse_graph(R"(
    dout = input() : f32[T,8]
    q = input() : f32[T,8]
    k = input() : f32[T,8]
    offsets = input() : i32[S+1]
    other = attention(q, k, k, none, offsets) {heads=4}
    d = attention_gradient(dout, q, k, k, none, offsets) {heads=2}
    output y <- other
    output dq <- d)");
  EXPECT_EQ(share_attention_statistics(graph, find_backend("cuda")), 0);
}

TEST(ShareAttentionStatistics, AsksTheBackend) {
  Graph graph = parse_graph(kTraining);
  EXPECT_EQ(share_attention_statistics(graph, find_backend("cpu")), 0);
  EXPECT_EQ(graph.nodes_of("attention_with_statistics").size(), 0u);
}

}  // namespace
}  // namespace lathe::engine

// What a decoder does with a single token: which launches become one, and that they compute the
// same as apart.

#include "lathe/engine/cuda/cuda_single_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/testing/cuda_gpu.h"

namespace lathe::engine {
namespace {

constexpr const char* kFeedForward = R"(
    x = input() : f32[T,96]
    r = input() : f32[T,96]
    gamma = state() : f32[96]
    wg = state() : f32[160,96]
    wu = state() : f32[160,96]
    wd = state() : f32[96,160]
    s = add(x, r)
    n = rms_norm(s, gamma)
    g = linear(n, wg)
    a = silu(g)
    u = linear(n, wu)
    m = mul(a, u)
    d = linear(m, wd)
    y = add(d, s)
    output y <- y)";

std::vector<std::string> runs_of(const CudaPlan& plan) {
  std::vector<std::string> result;
  for (const CudaSingleRow& run : plan.single_rows) {
    std::string ops;
    for (int launch = run.first; launch <= run.last; ++launch)
      for (const std::size_t step : plan.launches[static_cast<std::size_t>(launch)].steps)
        ops += (ops.empty() ? "" : " ") + plan.graph.op(plan.steps[step].node).name;
    result.push_back(ops);
  }
  return result;
}

TEST(CudaSingleRow, IsANormTheProductsBehindItAndTheirGate) {
  const CudaPlan plan = make_cuda_plan(lower(parse_graph(kFeedForward), find_backend("cuda")));
  EXPECT_THAT(runs_of(plan),
              testing::ElementsAre("add rms_norm fused_linear linear mul", "linear"));
  // They run at the same time: nobody's memory may be given to another.
  const CudaSlot& sum = plan.slots[plan.slot({plan.graph.at("s"), 0})];
  const CudaSlot& gated = plan.slots[plan.slot({plan.graph.at("m"), 0})];
  EXPECT_EQ(sum.first, gated.first);
}

TEST(CudaSingleRow, IsAttentionWithItsRotations) {
  const CudaPlan plan = make_cuda_plan(lower(parse_graph(R"(
    q = input() : f32[T,64]
    k = input() : f32[T,64]
    v = input() : f32[T,64]
    positions = input() : i32[T]
    offsets = input() : i32[S+1]
    starts = input() : i32[S]
    lengths = input() : i32[S]
    k_cache = state() {role="cache"} : f32[9,64]
    v_cache = state() {role="cache"} : f32[9,64]
    q_turned = rope(q, positions) {heads=2}
    k_turned = rope(k, positions) {heads=2}
    y = cached_attention(q_turned, k_turned, v, k_cache, v_cache, offsets, starts, lengths) {heads=2}
    output y <- y#0
    state k_cache <- y#1
    state v_cache <- y#2)"),
                                             find_backend("cuda")));
  EXPECT_THAT(runs_of(plan), testing::ElementsAre("rope rope cached_attention"));
}

// A value between them that others read stays one that is made.
TEST(CudaSingleRow, LeavesAGateWhoseFactorsAreRead) {
  const CudaPlan plan = make_cuda_plan(
      lower(parse_graph(std::string(kFeedForward) + "\n    output u <- u"), find_backend("cuda")));
  EXPECT_THAT(runs_of(plan), testing::ElementsAre("add rms_norm fused_linear linear", "linear"));
}

TEST(CudaSingleRow, IsNothingInTraining) {
  const CudaPlan plan = make_cuda_plan(lower(parse_graph(R"(
    x = input() : f32[T,8]
    w = state() : f32[8,8]
    h = linear(x, w)
    dw = linear_weight_gradient(h, x)
    u = add(w, dw)
    output h <- h
    state w <- u)"),
                                             find_backend("cuda")));
  EXPECT_TRUE(plan.single_rows.empty());
}

// Rows of 96 and 160 floats, which are less than a slice, and of 4200, which are more than a block
// takes at once. Sums of so many products of size 1, one of them squared.
TEST(CudaSingleRow, ComputesTheSameAsByReference) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(kFeedForward);
  for (const std::int64_t rows : {1, 2, 1})
    expect_same_on_gpu(graph, random_state(graph, 3), random_feed(graph, {{"T", rows}}, 4), 1e-3);
  const Graph wide = parse_graph(R"(
    x = input() : f32[T,4200]
    b = state() : f32[50]
    w = state() : f32[50,4200]
    y = linear(x, w, b)
    output y <- y)");
  expect_same_on_gpu(wide, random_state(wide, 3), random_feed(wide, {{"T", 1}}, 4), 1e-3);
}

}  // namespace
}  // namespace lathe::engine

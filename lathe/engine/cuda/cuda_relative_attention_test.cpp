// Attention that tells distances, on a GPU: padded and packed, with tables for keys, for queries
// and for both, against its definition.

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/engine/testing/cuda_gpu.h"

namespace lathe::engine {
namespace {

constexpr std::int64_t kTableRows = 16;

// Two heads; the tables come from states, as those of a model do. Beyond 4, distances share rows.
Graph graph_of(std::int64_t d, bool is_packed, const std::string& tables,
               const std::string& attributes) {
  const std::int64_t width = 2 * d;
  const std::string rows = is_packed ? "T" : "B,L";
  return parse_graph(fmt::format(
      R"(
    q = input() : f32[{0},{1}]
    k = input() : f32[{0},{1}]
    v = input() : f32[{0},{1}]
    {2}
    positions = state() : f32[{3},{1}]
    w = state() : f32[{1},{1}]
    keys = linear(positions, w)
    queries = mul(positions, positions)
    y = relative_attention(q, k, v, {4}, {5}) {{heads=2, {6}}}
    output y <- y)",
      rows, width, is_packed ? "offsets = input() : i32[S+1]" : "mask = input() : i32[B,L]",
      kTableRows, is_packed ? "none, offsets" : "mask, none", tables, attributes));
}

Tensor integers(std::vector<std::int64_t> dims, const std::vector<std::int32_t>& values) {
  return Tensor::from<std::int32_t>(std::move(dims), std::span<const std::int32_t>(values));
}

void expect_definition(const Graph& graph, const Feed& feed) {
  State state = random_state(graph, 3);
  for (float& value : state.at("w").mutable_data<float>()) value *= 0.2f;
  // Scores are sums of up to three dot products of some dozens of numbers of size 1.
  expect_same_on_gpu(graph, state, feed, 2e-4);
}

class CudaRelativeAttention : public testing::TestWithParam<std::int64_t> {};

TEST_P(CudaRelativeAttention, OfPaddedRowsIsItsDefinition) {
  LATHE_NEEDS_GPU();
  constexpr std::int32_t kRows = 3, kLength = 70;  // more than two tiles of queries
  for (const char* const tables : {"keys, queries", "keys", "none, queries"}) {
    SCOPED_TRACE(tables);
    const Graph graph = graph_of(GetParam(), false, tables, "buckets=8, max_distance=64");
    Feed feed = random_feed(graph, {{"B", kRows}, {"L", kLength}}, 5);
    std::vector<std::int32_t> mask;  // whole, with holes, and a row that keeps nothing
    for (std::int32_t i = 0; i < kRows * kLength; ++i)
      mask.push_back(i < kLength ? 1 : i < 2 * kLength ? (i % 3 == 0 ? 0 : 1) : 0);
    feed["mask"] = integers({kRows, kLength}, mask);
    expect_definition(graph, feed);
  }
}

TEST_P(CudaRelativeAttention, OfPackedSequencesIsItsDefinition) {
  LATHE_NEEDS_GPU();
  for (const char* const attributes : {"buckets=8, max_distance=64", "scale=0.1"}) {
    SCOPED_TRACE(attributes);
    const Graph graph = graph_of(GetParam(), true, "keys, queries", attributes);
    // A sequence of one token, an empty one, a long one; 13 and 109 tokens leave padding.
    for (const std::vector<std::int32_t>& offsets :
         {std::vector<std::int32_t>{0, 13}, {0, 1, 1, 97, 109}}) {
      const auto sequences = static_cast<std::int64_t>(offsets.size()) - 1;
      Feed feed = random_feed(graph, {{"T", offsets.back()}, {"S", sequences}}, 6);
      feed["offsets"] = integers({sequences + 1}, offsets);
      expect_definition(graph, feed);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HeadSizes, CudaRelativeAttention, testing::Values(8, 32, 64, 80));

}  // namespace
}  // namespace lathe::engine

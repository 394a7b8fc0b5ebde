// Attention with distances by products, against its definition on every instruction set.

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/executor.h"

namespace lathe::engine {
namespace {

// Three heads of 8, and 16 rows of distances that lie by logarithms beyond 4.
const char* const kPadded = R"(
  q = input() : f32[B,L,24]
  k = input() : f32[B,L,24]
  v = input() : f32[B,L,24]
  mask = input() : i32[B,L]
  keys = input() : f32[16,24]
  queries = input() : f32[16,24]
  both = relative_attention(q, k, v, mask, none, keys, queries) {heads=3, buckets=8, max_distance=64}
  one = relative_attention(q, k, v, none, none, none, queries) {heads=3, scale=0.5}
  output both <- both
  output one <- one
)";
const char* const kPacked = R"(
  q = input() : f32[T,24]
  k = input() : f32[T,24]
  v = input() : f32[T,24]
  offsets = input() : i32[S+1]
  keys = input() : f32[16,24]
  queries = input() : f32[16,24]
  both = relative_attention(q, k, v, none, offsets, keys, queries) {heads=3, buckets=8, max_distance=64}
  one = relative_attention(q, k, v, none, offsets, keys) {heads=3}
  output both <- both
  output one <- one
)";

Tensor random(std::vector<std::int64_t> dims, std::uint32_t seed) {
  Tensor tensor(DType::F32, std::move(dims));
  for (float& value : tensor.mutable_data<float>())
    value = static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1.0f;
  return tensor;
}

Feed tensors(std::vector<std::int64_t> dims) {
  return {{"q", random(dims, 1)},
          {"k", random(dims, 2)},
          {"v", random(dims, 3)},
          {"keys", random({16, 24}, 4)},
          {"queries", random({16, 24}, 5)}};
}

// Scores are sums of 24 products below 1, values below 1 are averaged: a few roundings of size 1.
void expect_definition(const char* graph, const Feed& feed, Isa isa) {
  const Feed expected = make_executor(parse_graph(graph), {}, {.device = "reference"})->run(feed);
  const Feed found = make_executor(parse_graph(graph), {}, {.isa = isa})->run(feed);
  for (const auto& [name, y] : expected)
    for (std::int64_t i = 0; i < y.num_elements(); ++i)
      ASSERT_NEAR(found.at(name).at(i), y.at(i), 2e-6) << name << ", element " << i;
}

class RelativeAttentionOf : public EveryIsa {};

TEST_P(RelativeAttentionOf, RowsWithAMaskIsItsDefinition) {
  Feed feed = tensors({3, 70, 24});  // more than one range of queries
  Tensor mask(DType::I32, {3, 70});
  const auto values = mask.mutable_data<std::int32_t>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i < 70 ? 1 : i < 140 ? i % 3 != 0 : 0;
  feed["mask"] = mask;
  expect_definition(kPadded, feed, GetParam());
}

TEST_P(RelativeAttentionOf, PackedSequencesIsItsDefinition) {
  Feed feed = tensors({90, 24});
  feed["offsets"] = Tensor::from<std::int32_t>({5}, {0, 1, 1, 78, 90});
  expect_definition(kPacked, feed, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Isas, RelativeAttentionOf, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine

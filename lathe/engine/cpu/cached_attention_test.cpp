// Attention to caches: in parts it is what it is at once, on every instruction set, and the caches
// are written where they lie.

#include <gtest/gtest.h>

#include <cstring>

#include "lathe/core/graph_text.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/cpu/cpu_plan.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/executor.h"
#include "lathe/engine/lower.h"

namespace lathe::engine {
namespace {

constexpr std::int64_t kWidth = 72, kKeyWidth = 24, kRows = 150;

// Six query heads of 12 on two heads of keys.
const char* const kCached = R"(
  q = input() : f32[T,72]
  k = input() : f32[T,24]
  v = input() : f32[T,24]
  offsets = input() : i32[S+1]
  starts = input() : i32[S]
  lengths = input() : i32[S]
  k_cache = state() {role="cache"} : f32[150,24]
  v_cache = state() {role="cache"} : f32[150,24]
  y = cached_attention(q, k, v, k_cache, v_cache, offsets, starts, lengths) {heads=6, kv_heads=2}
  output y <- y#0
  state k_cache <- y#1
  state v_cache <- y#2
)";
const char* const kWhole = R"(
  q = input() : f32[T,72]
  k = input() : f32[T,24]
  v = input() : f32[T,24]
  offsets = input() : i32[S+1]
  y = attention(q, k, v, none, offsets) {heads=6, kv_heads=2, causal=true}
  output y <- y
)";

Tensor integers(std::vector<std::int32_t> values) {
  return Tensor::from<std::int32_t>({std::ssize(values)}, std::span<const std::int32_t>(values));
}

Tensor random_rows(std::int64_t rows, std::int64_t width, std::uint32_t seed) {
  Tensor tensor(DType::F32, {rows, width});
  for (float& value : tensor.mutable_data<float>())
    value = static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1.0f;
  return tensor;
}

Tensor rows_of(const Tensor& tensor, std::int64_t begin, std::int64_t count) {
  const auto width = static_cast<std::size_t>(tensor.dim(1));
  const auto part = tensor.data<float>().subspan(static_cast<std::size_t>(begin) * width,
                                                 static_cast<std::size_t>(count) * width);
  return Tensor::from<float>({count, tensor.dim(1)}, part);
}

State empty_caches() {
  return {{"k_cache", Tensor(DType::F32, {kRows, kKeyWidth})},
          {"v_cache", Tensor(DType::F32, {kRows, kKeyWidth})}};
}

TEST(CachedAttention, WritesNewRowsIntoItsStates) {
  const CpuPlan plan = make_cpu_plan(lower(parse_graph(kCached), find_backend("cpu")));
  EXPECT_TRUE(plan.late_updates.empty());
}

class CachedAttentionOf : public EveryIsa {};

// Scores are sums of 12 products below 1, values below 1 are averaged: a few roundings of size 1.
TEST_P(CachedAttentionOf, PartsIsThatOfTheWhole) {
  constexpr std::int64_t kLength = 61, kStart = 80;
  const Tensor q = random_rows(kLength, kWidth, 1), k = random_rows(kLength, kKeyWidth, 2),
               v = random_rows(kLength, kKeyWidth, 3);
  const Tensor whole = make_executor(parse_graph(kWhole), {}, {.isa = GetParam()})
                           ->run({{"q", q}, {"k", k}, {"v", v}, {"offsets", integers({0, 61})}})
                           .at("y");
  const auto executor = make_executor(parse_graph(kCached), empty_caches(), {.isa = GetParam()});
  std::int32_t done = 0;
  for (const std::int32_t count : {37, 1, 2, 1, 5, 4, 11}) {
    const Tensor y = executor
                         ->run({{"q", rows_of(q, done, count)},
                                {"k", rows_of(k, done, count)},
                                {"v", rows_of(v, done, count)},
                                {"offsets", integers({0, count})},
                                {"starts", integers({kStart})},
                                {"lengths", integers({done})}})
                         .at("y");
    for (std::int64_t i = 0; i < y.num_elements(); ++i)
      ASSERT_NEAR(y.at(i), whole.at(done * kWidth + i), 32 * kUnit)
          << count << " tokens behind " << done << ", element " << i;
    done += count;
  }
  // The rows of other sequences are as they were.
  const Tensor keys = executor->state().at("k_cache");
  for (std::int64_t i = 0; i < keys.num_elements(); ++i) {
    const std::int64_t row = i / kKeyWidth - kStart;
    ASSERT_EQ(keys.at(i), row >= 0 && row < kLength ? k.at(i - kStart * kKeyWidth) : 0.0);
  }
}

// The graph with caches that hold rows as a type of so many elements: "bf16[150,24]".
Graph with_caches(const std::string& type) {
  std::string text = kCached;
  const std::string whole = "f32[150,24]";
  for (std::size_t at; (at = text.find(whole)) != std::string::npos;)
    text.replace(at, whole.size(), type);
  return parse_graph(text);
}

// What is rounded has the reference's bits; what attends to it is as near as above.
TEST_P(CachedAttentionOf, RoundedRowsIsTheReferences) {
  for (const char* const type : {"bf16[150,24]", "i8[150,32]"}) {
    SCOPED_TRACE(type);
    const Graph graph = with_caches(type);
    State caches;
    for (const NodeId id : graph.nodes_of("state"))
      caches.emplace(graph.name(id), Tensor(graph.types(id)[0].dtype, graph.types(id)[0].dims({})));
    const auto executor = make_executor(graph, caches, {.isa = GetParam()});
    const auto reference = make_executor(graph, caches, {.device = "reference"});
    std::int32_t done = 0;
    for (const std::int32_t count : {37, 1, 2, 1, 5, 4, 11}) {
      const auto seed = static_cast<std::uint32_t>(done);
      const Feed feed{{"q", random_rows(count, kWidth, seed)},
                      {"k", random_rows(count, kKeyWidth, seed + 1)},
                      {"v", random_rows(count, kKeyWidth, seed + 2)},
                      {"offsets", integers({0, count})},
                      {"starts", integers({80})},
                      {"lengths", integers({done})}};
      const Tensor y = executor->run(feed).at("y"), expected = reference->run(feed).at("y");
      for (std::int64_t i = 0; i < y.num_elements(); ++i)
        ASSERT_NEAR(y.at(i), expected.at(i), 32 * kUnit)
            << count << " tokens behind " << done << ", element " << i;
      done += count;
    }
    for (const char* const cache : {"k_cache", "v_cache"}) {
      const Tensor found = executor->state().at(cache), expected = reference->state().at(cache);
      EXPECT_EQ(
          std::memcmp(found.bytes(), expected.bytes(), static_cast<std::size_t>(found.num_bytes())),
          0)
          << cache;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, CachedAttentionOf, testing::ValuesIn(supported_isas()), isa_name);

TEST(CachedAttention, RefusesRowsThatTheCacheDoesNotHave) {
  const auto executor = make_executor(parse_graph(kCached), empty_caches());
  try {
    executor->run({{"q", random_rows(2, kWidth, 1)},
                   {"k", random_rows(2, kKeyWidth, 1)},
                   {"v", random_rows(2, kKeyWidth, 1)},
                   {"offsets", integers({0, 2})},
                   {"starts", integers({140})},
                   {"lengths", integers({9})}});
    FAIL();
  } catch (const UserError& wrong) {
    EXPECT_STREQ(
        wrong.what(),
        "node \"y\": cached_attention: sequence 0 needs rows 140 to 151, but the cache has "
        "150");
  }
}

}  // namespace
}  // namespace lathe::engine

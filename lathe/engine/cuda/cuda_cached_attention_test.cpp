// Attention to caches on a GPU: in heads of every kind of size it is what the reference gives, and
// the caches are written where they lie.

#include <gtest/gtest.h>

#include <cstring>

#include "lathe/core/graph_text.h"
#include "lathe/engine/testing/cuda_gpu.h"
#include "lathe/ops/cache_rows.h"

namespace lathe::engine {
namespace {

constexpr std::int32_t kHeads = 4, kCacheHeads = 2;
constexpr std::int64_t kRows = 700;

Tensor row_of_integers(std::vector<std::int32_t> values) {
  return Tensor::from<std::int32_t>({std::ssize(values)}, std::span<const std::int32_t>(values));
}

// Heads of so many features, in caches of a dtype.
class CudaCachedAttention : public testing::TestWithParam<std::tuple<std::int64_t, DType>> {
 protected:
  std::int64_t d() const { return std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
  std::int64_t cache_width() const { return ops::CacheLayout{dtype(), kCacheHeads, d()}.width(); }
  Tensor empty_cache() const { return Tensor(dtype(), {kRows, cache_width()}); }
};

// Scores are of size 1 and weights sum to 1: a hundred roundings of values below 1. What the caches
// hold has the reference's bits.
TEST_P(CudaCachedAttention, IsWhatTheReferenceGives) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(fmt::format(R"(
    symbols T, S
    q = input() : f32[T,{0}]
    k = input() : f32[T,{1}]
    v = input() : f32[T,{1}]
    offsets = input() : i32[S+1]
    starts = input() : i32[S]
    lengths = input() : i32[S]
    k_cache = state() {{role="cache"}} : {5}[{2},{6}]
    v_cache = state() {{role="cache"}} : {5}[{2},{6}]
    y = cached_attention(q, k, v, k_cache, v_cache, offsets, starts, lengths) {{heads={3}, kv_heads={4}}}
    output y <- y#0
    state k_cache <- y#1
    state v_cache <- y#2
  )",
                                              kHeads * d(), kCacheHeads * d(), kRows, kHeads,
                                              kCacheHeads, name(dtype()), cache_width()));
  const State caches{{"k_cache", empty_cache()}, {"v_cache", empty_cache()}};
  const auto reference = make_executor(graph, caches, {.device = "reference"});
  const auto cuda = make_executor(graph, caches, {.device = "cuda"});
  // Two sequences side by side: prompts, single tokens and a few.
  std::vector<std::int32_t> lengths = {0, 0};
  unsigned seed = 1;
  for (const std::vector<std::int32_t>& counts :
       {std::vector<std::int32_t>{130, 3}, {1, 1}, {170, 1}, {1, 0}, {1, 9}, {1, 1}}) {
    Feed feed = random_feed(graph, {{"T", counts[0] + counts[1]}, {"S", 2}}, seed++);
    feed["offsets"] = row_of_integers({0, counts[0], counts[0] + counts[1]});
    feed["starts"] = row_of_integers({20, 400});
    feed["lengths"] = row_of_integers(lengths);
    const Tensor expected = reference->run(feed).at("y"), y = cuda->run(feed).at("y");
    for (std::int64_t i = 0; i < y.num_elements(); ++i)
      ASSERT_NEAR(y.at(i), expected.at(i), 2e-5) << "behind " << lengths[0] << ", element " << i;
    for (std::size_t s = 0; s < 2; ++s) lengths[s] += counts[s];
  }
  const State left = reference->state(), right = cuda->state();
  for (const char* cache : {"k_cache", "v_cache"})
    EXPECT_EQ(std::memcmp(left.at(cache).bytes(), right.at(cache).bytes(),
                          static_cast<std::size_t>(left.at(cache).num_bytes())),
              0)
        << cache;
}

// A prompt and tokens one by one, turned by their positions on the way: a kernel of its own. The
// caches hold what the reference's do, but that a key which lies between two numbers may be rounded
// to either: at most 2^-8 of it, or a 127th of its head's largest, of size 1.
TEST_P(CudaCachedAttention, TurnsASingleTokenOnItsWay) {
  LATHE_NEEDS_GPU();
  const double step = dtype() == DType::F32 ? 1e-5 : dtype() == DType::BF16 ? 0.008 : 0.016;
  const double tolerance = dtype() == DType::F32 ? 1e-4 : 2e-3;
  for (const bool is_interleaved : {false, true}) {
    SCOPED_TRACE(is_interleaved ? "neighbours" : "halves");
    const Graph graph = parse_graph(fmt::format(
        R"(
    symbols T, S
    x = input() : f32[T,{0}]
    k = input() : f32[T,{1}]
    v = input() : f32[T,{1}]
    w = state() : f32[{0},{0}]
    positions = input() : i32[T]
    offsets = input() : i32[S+1]
    starts = input() : i32[S]
    lengths = input() : i32[S]
    k_cache = state() {{role="cache"}} : {6}[{2},{7}]
    v_cache = state() {{role="cache"}} : {6}[{2},{7}]
    q = linear(x, w)
    q_turned = rope(q, positions) {{heads={3}, interleaved={5}}}
    k_turned = rope(k, positions) {{heads={4}, interleaved={5}}}
    y = cached_attention(q_turned, k_turned, v, k_cache, v_cache, offsets, starts, lengths) {{heads={3}, kv_heads={4}}}
    output y <- y#0
    state k_cache <- y#1
    state v_cache <- y#2
  )",
        kHeads * d(), kCacheHeads * d(), kRows, kHeads, kCacheHeads, is_interleaved, name(dtype()),
        cache_width()));
    State state = random_state(graph, 5);
    state["k_cache"] = state["v_cache"] = empty_cache();
    for (float& weight : state["w"].mutable_data<float>()) weight /= 16;
    const auto reference = make_executor(graph, state, {.device = "reference"});
    const auto cuda = make_executor(graph, state, {.device = "cuda"});
    std::int32_t length = 0;
    for (const std::int32_t count : {140, 1, 1, 1, 130, 1, 1, 1}) {
      Feed feed = random_feed(graph, {{"T", count}, {"S", 1}}, static_cast<unsigned>(length + 7));
      std::vector<std::int32_t> positions;
      for (std::int32_t i = 0; i < count; ++i) positions.push_back(length + i);
      feed["positions"] = row_of_integers(positions);
      feed["offsets"] = row_of_integers({0, count});
      feed["starts"] = row_of_integers({20});
      feed["lengths"] = row_of_integers({length});
      const Tensor expected = reference->run(feed).at("y"), y = cuda->run(feed).at("y");
      for (std::int64_t i = 0; i < y.num_elements(); ++i)
        ASSERT_NEAR(y.at(i), expected.at(i), tolerance) << "behind " << length << ", element " << i;
      length += count;
    }
    for (const char* cache : {"k_cache", "v_cache"}) {
      const ops::CacheLayout layout{dtype(), kCacheHeads, d()};
      const std::vector<double> expected = ops::read_cache(reference->state().at(cache), layout);
      const std::vector<double> found = ops::read_cache(cuda->state().at(cache), layout);
      for (std::size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], expected[i], step) << cache << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HeadSizes, CudaCachedAttention,
                         testing::Combine(testing::Values(12, 20, 32, 64, 128, 192),
                                          testing::Values(DType::F32, DType::BF16, DType::I8)));

}  // namespace
}  // namespace lathe::engine

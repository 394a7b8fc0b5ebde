#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/engine/testing/cuda_gpu.h"

// Attention and its gradient on a GPU, in each precision, against the reference in float.
namespace lathe::engine {
namespace {

Tensor integers(std::vector<std::int32_t> values) {
  return Tensor::from<std::int32_t>({static_cast<std::int64_t>(values.size())},
                                    std::span<const std::int32_t>(values));
}

// Sequences of these lengths: a feed of everything but ids and offsets at random.
Feed packed_feed(const Graph& graph, const std::vector<std::int32_t>& lengths, unsigned seed) {
  std::vector<std::int32_t> offsets{0}, examples;
  for (const std::int32_t length : lengths) {
    offsets.push_back(offsets.back() + length);
    examples.push_back(static_cast<std::int32_t>(3 + 7 * examples.size()));
  }
  const SymbolValues sizes{{"T", offsets.back()}, {"S", static_cast<std::int64_t>(lengths.size())}};
  Feed feed = random_feed(graph, sizes, seed);
  feed["offsets"] = integers(offsets);
  if (graph.find("examples")) feed["examples"] = integers(examples);
  if (graph.find("random")) feed["random"] = integers({5, 0, 3});
  return feed;
}

struct AttentionCase {
  std::string name, attributes;
  int width, keys;
  bool has_dropout = false;
  std::string queries = "T";  ///< or S: the first token of each sequence asks alone
  /// The last have the bucket of the first: replays with fewer real rows.
  std::vector<std::vector<std::int32_t>> lengths = {
      {65, 1, 130, 64}, {60, 3, 130, 66}, {1, 1, 200, 58}};
};

// So many sequences that a block has 128 queries, and what it does for few is not done.
std::vector<std::int32_t> many_lengths() {
  std::vector<std::int32_t> lengths(20, 33);
  lengths[3] = 130;
  lengths[7] = 1;
  lengths[11] = 200;
  return lengths;
}

// What a graph has: with both, the gradient reads the forward pass's statistics.
enum class Asked { Forward, Gradient, Both };

class CudaAttention : public testing::TestWithParam<AttentionCase> {
 protected:
  // Operands are numbers of bfloat16, which all precisions have.
  Graph graph(Asked asked) const {
    const AttentionCase& c = GetParam();
    const std::string operands =
        fmt::format("q, k, v, none, offsets{}", c.has_dropout ? ", random, examples" : "");
    std::string text = fmt::format(R"(
      offsets = input() : i32[S+1]
      one = state() : f32[]
      next = neg(one)
      state one <- next)");
    for (const auto& [name, rows, width] : {std::tuple{"dout", c.queries, c.width},
                                            {"q", c.queries, c.width},
                                            {"k", std::string("T"), c.keys},
                                            {"v", std::string("T"), c.keys}})
      text += fmt::format(
          "\n f{0} = input() : f32[{1},{2}]\n h{0} = cast(f{0}) : bf16[{1},{2}]"
          "\n {0} = cast(h{0}) : f32[{1},{2}]",
          name, rows, width);
    text += "\n output dout <- dout";
    // Dropout stays only in graphs that update a state.
    if (c.has_dropout) text += "\n random = input() : i32[3]\n examples = input() : i32[S]";
    if (asked != Asked::Gradient)
      text += fmt::format("\n a = attention({}) {{{}}}\n output y <- a", operands, c.attributes);
    if (asked != Asked::Forward)
      text += fmt::format(
          "\n d = attention_gradient(dout, {}) {{{}}}\n output dq <- d\n"
          " output dk <- d#1\n output dv <- d#2",
          operands, c.attributes);
    return parse_graph(text);
  }

  void expect_near_reference(Precision precision, double tolerance) const {
    for (const Asked asked : {Asked::Forward, Asked::Gradient, Asked::Both}) {
      SCOPED_TRACE(static_cast<int>(asked));
      const Graph g = graph(asked);
      const State state = random_state(g, 1);
      const ExecutionOptions options{.device = "cuda", .precision = precision};
      const std::unique_ptr<Executor> gpu = make_executor(g, state, options);
      for (const std::vector<std::int32_t>& lengths : GetParam().lengths) {
        SCOPED_TRACE(lengths[0]);
        const Feed feed = packed_feed(g, lengths, 4);
        const Feed actual = gpu->run(feed);
        expect_near(actual, make_executor(g, state, {.device = "reference"})->run(feed), tolerance);
        expect_identical(make_executor(g, state, options)->run(feed), actual);
        expect_identical(gpu->run(feed), actual);
      }
    }
  }
};

TEST_P(CudaAttention, AgreesWithTheReferenceAtAnyLength) {
  LATHE_NEEDS_GPU();
  expect_near_reference(Precision::Float32, 1e-4);
}

// Of the largest number of a result: a weight or a gradient of a score is rounded once, the result
// once, and what the gradient takes from y once more; each by 2^-9 at most, of sums whose terms
// cancel by half.
TEST_P(CudaAttention, AgreesInBfloat16) {
  LATHE_NEEDS_GPU();
  expect_near_reference(Precision::Bf16, 0x1p-6);
}

// The same with two more bits.
TEST_P(CudaAttention, AgreesInTf32) {
  LATHE_NEEDS_GPU();
  expect_near_reference(Precision::Tf32, 0x1p-8);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, CudaAttention,
    testing::Values(
        AttentionCase{"TwoHeadsOf64", "heads=2", 128, 128},
        AttentionCase{"Causal", "heads=2, causal=true", 128, 128},
        AttentionCase{"HeadsOf20", "heads=3", 60, 60},
        AttentionCase{"HeadsOfOddSize", "heads=2", 66, 66},
        AttentionCase{"HeadsOf128", "heads=1, causal=true", 128, 128},
        AttentionCase{"SharedKeys", "heads=4, kv_heads=2", 128, 64},
        AttentionCase{"Dropout", "heads=2, dropout=0.1, site=3", 128, 128, true},
        // Small enough for a tool that watches every access.
        AttentionCase{
            "WatchedDropout", "heads=2, dropout=0.1, site=3", 128, 128, true, "T", {{66, 3}}},
        AttentionCase{"CausalDropout", "heads=2, causal=true, dropout=0.5, site=9", 64, 64, true},
        AttentionCase{"ManySequences", "heads=8", 512, 512, false, "T", {many_lengths()}},
        AttentionCase{"ManySharedDropout",
                      "heads=8, kv_heads=4, causal=true, dropout=0.1, site=3",
                      512,
                      256,
                      true,
                      "T",
                      {many_lengths()}},
        AttentionCase{"LongSequences", "heads=2", 128, 128, false, "T", {{530, 3}}},
        AttentionCase{"WideHeads", "heads=2", 384, 384},
        AttentionCase{"WideHeadsOfOddSize", "heads=1", 131, 131},
        AttentionCase{"WideSharedCausalDropout",
                      "heads=2, kv_heads=1, causal=true, dropout=0.1, site=3", 512, 256, true},
        AttentionCase{"WideFirstTokens", "heads=2, dropout=0.1, site=3", 512, 512, true, "S"},
        AttentionCase{"FirstTokens", "heads=2", 128, 128, false, "S"},
        AttentionCase{"FirstTokensOfLong", "heads=2", 128, 128, false, "S", {{700, 33, 1}}},
        AttentionCase{"FirstTokensOfOddSize", "heads=2", 66, 66, false, "S"},
        AttentionCase{"FirstTokensSharedDropout", "heads=4, kv_heads=2, dropout=0.1, site=3", 384,
                      192, true, "S"}),
    [](const auto& c) { return c.param.name; });

TEST(CudaAttentionMask, HidesPaddedKeys) {
  LATHE_NEEDS_GPU();
  for (const auto& [attributes, width] :
       {std::pair{"heads=2", 128}, {"heads=2, causal=true", 128}, {"heads=2, causal=true", 384}}) {
    SCOPED_TRACE(fmt::format("{} {}", attributes, width));
    const Graph graph = parse_graph(fmt::format(R"(
      q = input() : f32[B,70,{1}]
      k = input() : f32[B,70,{1}]
      v = input() : f32[B,70,{1}]
      mask = input() : i32[B,70]
      a = attention(q, k, v, mask) {{{0}}}
      output y <- a)",
                                                attributes, width));
    Feed feed = random_feed(graph, {{"B", 3}}, 2);
    // One row that keeps nothing at all: it weighs all keys alike.
    for (std::int64_t i = 0; i < 70; ++i)
      feed["mask"].mutable_data<std::int32_t>()[static_cast<std::size_t>(i)] = 0;
    expect_same_on_gpu(graph, {}, feed);
    // Operands are rounded by 2^-9 at most, which moves scores of up to 8 by 2^-5 and each weight
    // by that share: their average by twice as much.
    const Feed expected = make_executor(graph, {}, {.device = "reference"})->run(feed);
    const ExecutionOptions options{.device = "cuda", .precision = Precision::Bf16};
    expect_near(make_executor(graph, {}, options)->run(feed), expected, 0x1p-4);
  }
}

}  // namespace
}  // namespace lathe::engine

#include "lathe/engine/cuda/cuda_row_chain.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/engine/testing/cuda_gpu.h"

// Which programs are chains is decided without a GPU. That both compute the same is seen by the
// tests of ops, of which a single one is a chain and several with other steps between are not, and
// at widths that take different amounts of registers and shared memory.
namespace lathe::engine {
namespace {

using cuda::RowInstruction;
using Kind = RowInstruction::Kind;
using Stage = cuda::RowChainArgs::Stage;

const float kMemory[4] = {};
float results[4];

std::optional<cuda::RowChainArgs> chain_of(const std::vector<RowInstruction>& instructions,
                                           std::int64_t width = 128) {
  return find_row_chain(width, {.capacity = 8}, instructions, {kMemory, kMemory + 1},
                        {cuda::QuantizeArgs()}, {cuda::LearnedStepArgs()});
}

RowInstruction load(int to, Kind kind = Kind::Load) {
  return {.kind = kind, .to = to, .memory = kMemory};
}
RowInstruction add(int to, int a, int b) {
  return {.kind = Kind::Pair, .to = to, .a = a, .b = b};
}
RowInstruction store(int a, void* result = results) {
  return {.kind = Kind::Store, .a = a, .result = result};
}

TEST(RowChain, IsDropoutAResidualAndANorm) {
  const std::optional<cuda::RowChainArgs> chain =
      chain_of({load(0, Kind::LoadHalf),
                {.kind = Kind::Widen, .to = 1, .a = 0},
                {.kind = Kind::Dropout, .to = 2, .a = 1, .threshold = 6554},
                load(3),
                add(4, 2, 3),
                store(4, results),
                {.kind = Kind::Normalize,
                 .to = 5,
                 .a = 4,
                 .b = cuda::kFirstVector,
                 .c = cuda::kFirstVector + 1,
                 .low = 1e-12f},
                store(5, results + 1)});
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->num_sources, 2);
  EXPECT_EQ(chain->sources[0].kind, cuda::RowSource::Kind::Half);
  EXPECT_EQ(chain->sources[1].kind, cuda::RowSource::Kind::Float);
  EXPECT_TRUE(chain->first_dropout.is_there);
  EXPECT_EQ(chain->first_dropout.threshold, 6554u);
  EXPECT_EQ(chain->stage, Stage::Normalize);
  EXPECT_EQ(chain->gamma, kMemory);
  EXPECT_EQ(chain->beta, kMemory + 1);
  EXPECT_EQ(chain->eps, 1e-12f);
  EXPECT_EQ(chain->sum.y, results);
  EXPECT_EQ(chain->staged.y, results + 1);
  EXPECT_EQ(chain->dropped.y, nullptr);
}

TEST(RowChain, IsTheGradientOfANormThenDropoutAndASum) {
  float parts[4];
  const std::optional<cuda::RowChainArgs> chain =
      chain_of({load(0),
                load(1),
                add(2, 0, 1),
                load(3),
                {.kind = Kind::NormalizeGradient,
                 .to = 4,
                 .a = 2,
                 .b = 3,
                 .c = cuda::kFirstVector,
                 .sums = parts,
                 .more_sums = parts + 1},
                store(4, results),
                {.kind = Kind::Dropout, .to = 5, .a = 4},
                store(5, results + 1),
                {.kind = Kind::Sum, .a = 5, .sums = parts + 2}});
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->stage, Stage::NormalizeGradient);
  EXPECT_EQ(chain->gamma_sums, parts);
  EXPECT_EQ(chain->beta_sums, parts + 1);
  EXPECT_EQ(chain->staged.y, results);
  EXPECT_TRUE(chain->last_dropout.is_there);
  EXPECT_EQ(chain->dropped.y, results + 1);
  EXPECT_EQ(chain->dropped.sums, parts + 2);
}

TEST(RowChain, TakesALearnedStepOfTheFirstTerms) {
  float parts[4];
  const std::optional<cuda::RowChainArgs> chain =
      chain_of({load(0),
                load(1),
                add(2, 0, 1),
                load(3),
                load(4),
                {.kind = Kind::LearnedStep, .to = 5, .a = 2, .b = 3, .c = 4, .sums = parts},
                load(6),
                add(7, 6, 5),
                store(7)});
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->num_sources, 3);
  EXPECT_EQ(chain->num_rounded, 2);
  EXPECT_FALSE(chain->is_gate);
  EXPECT_EQ(chain->learned_sums, parts);
  EXPECT_EQ(chain->sum.y, results);
}

TEST(RowChain, GatesAGradientBeforeMoreTerms) {
  const std::optional<cuda::RowChainArgs> chain =
      chain_of({load(0),
                load(1),
                {.kind = Kind::Gate, .to = 2, .a = 0, .b = 1, .low = -8, .high = 7},
                store(2, results + 1),
                load(3),
                add(4, 2, 3),
                store(4)});
  ASSERT_TRUE(chain);
  EXPECT_TRUE(chain->is_gate);
  EXPECT_EQ(chain->low, -8);
  EXPECT_EQ(chain->num_rounded, 1);
  EXPECT_EQ(chain->unrounded.y, results + 1);
  EXPECT_EQ(chain->sum.y, results);
}

TEST(RowChain, DropsASumBeforeAStageButNotBetweenItsTerms) {
  EXPECT_TRUE(chain_of({load(0),
                        load(1),
                        add(2, 0, 1),
                        {.kind = Kind::Dropout, .to = 3, .a = 2},
                        {.kind = Kind::Map, .to = 4, .a = 3, .map = cuda::Map::Relu},
                        store(4)})
                  ->sum_dropout.is_there);
  EXPECT_FALSE(chain_of({load(0),
                         load(1),
                         add(2, 0, 1),
                         {.kind = Kind::Dropout, .to = 3, .a = 2},
                         load(4),
                         add(5, 3, 4),
                         store(5)}));
}

TEST(RowChain, IsNoneOfAnythingElse) {
  EXPECT_TRUE(chain_of({load(0), load(1), add(2, 0, 1), store(2)}));
  // Another order of terms, another pair, a row that is read twice or never, two sums.
  EXPECT_FALSE(chain_of(
      {load(0), load(1), add(2, 0, 1), load(3), load(4), add(5, 3, 4), add(6, 2, 5), store(6)}));
  RowInstruction product = add(2, 0, 1);
  product.pair = cuda::Pair::Multiply;
  EXPECT_FALSE(chain_of({load(0), load(1), product, store(2)}));
  EXPECT_FALSE(chain_of({load(0), add(1, 0, 0), store(1)}));
  EXPECT_FALSE(chain_of({load(0), load(1), store(0)}));
  EXPECT_FALSE(chain_of({load(0), {.kind = Kind::Sum, .a = 0}, {.kind = Kind::Sum, .a = 0}}));
  // A sum that is left cannot grow any more.
  EXPECT_FALSE(chain_of({load(0), load(1), add(2, 0, 1), store(2), load(3), add(4, 2, 3)}));
  // A norm has its whole row in registers, other stages a piece of it.
  const RowInstruction norm{.kind = Kind::Normalize, .to = 1, .a = 0, .b = cuda::kFirstVector};
  EXPECT_TRUE(chain_of({load(0), norm, store(1)}, cuda::kWidestChain));
  EXPECT_FALSE(chain_of({load(0), norm, store(1)}, cuda::kWidestChain + 4));
  const RowInstruction map{.kind = Kind::Map, .to = 1, .a = 0, .map = cuda::Map::GeluErf};
  EXPECT_TRUE(chain_of({load(0), map, store(1)}, 4096));
  RowInstruction other = map;
  other.map = cuda::Map::Sin;
  EXPECT_FALSE(chain_of({load(0), other, store(1)}));
}

class CudaRowChainOfWidth : public testing::TestWithParam<int> {};

// The gradients that sum over rows: of norms and of maps, with what formats add in front.
TEST_P(CudaRowChainOfWidth, SumsOverRows) {
  LATHE_NEEDS_GPU();
  for (const char* first :
       {"a = add(dy, x)", "a = gate_gradient(dy, x) {minimum=-0.5,maximum=0.75}",
        "a = learned_step_gradient(dy, x, q, s) {format=\"int:4\"}"})
    for (const char* stage : {"b = layer_norm_gradient(a, h, g)",
                              "b = map_gradient(a, h) {function=\"gelu\"}", "b = add(a, h)"}) {
      SCOPED_TRACE(fmt::format("{}; {}", first, stage));
      const bool is_learned = std::string_view(first).find("learned") != std::string_view::npos;
      const bool is_norm = std::string_view(stage).find("norm") != std::string_view::npos;
      std::string text = fmt::format(R"(
        dy = input() : f32[T,{0}]
        x = input() : f32[T,{0}]
        h = input() : f32[T,{0}]
        g = state() : f32[{0}]
        s = state() : f32[]
        q = quantize(x, s) {{format="int:4"}}
        {1}
        {2}
        c = sum_rows(b)
        output b <- b
        output c <- c
        )",
                                     GetParam(), first, stage);
      if (is_learned) text += "output ds <- a#1\n";
      if (is_norm) text += "output dg <- b#1\noutput db <- b#2\n";
      const Graph graph = parse_graph(text);
      State state = random_state(graph, 3);
      state["s"] = Tensor::from<float>({}, {0.125f});
      expect_same_on_gpu(graph, state, random_feed(graph, {{"T", 139}}, 5));
    }
}

INSTANTIATE_TEST_SUITE_P(Widths, CudaRowChainOfWidth,
                         testing::Values(36, 128, 512, 768, 1024, 3072));

}  // namespace
}  // namespace lathe::engine

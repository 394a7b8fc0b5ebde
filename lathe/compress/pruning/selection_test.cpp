#include "lathe/compress/pruning/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"

namespace lathe::compress {
namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();

Graph two_linears() {
  return parse_graph(R"(
    x = input() : f32[B,8]
    w = state() : f32[6,8]
    h = linear(x, w)
    a = relu(h)
    v = state() : f32[4,6]
    y = linear(a, v)
    output y <- y
  )");
}

std::vector<PruningUnit> units_of(const Graph& graph, const char* granularity) {
  return make_units(graph, find_prunable(graph), parse_granularity(granularity));
}

// Scores that repeat, so that there are ties.
State some_scores(unsigned seed) {
  std::mt19937 random(seed);
  State scores{{"w", Tensor(DType::F32, {6, 8})}, {"v", Tensor(DType::F32, {4, 6})}};
  for (auto& [name, tensor] : scores)
    for (float& value : tensor.mutable_data<float>()) value = static_cast<float>(random() % 9);
  return scores;
}

std::vector<float> values(const Tensor& tensor) {
  return {tensor.data<float>().begin(), tensor.data<float>().end()};
}

std::int64_t zeros(const Tensor& tensor) {
  return std::ranges::count(tensor.data<float>(), 0.0f);
}

// What is pruned by sorting all of it: the slow and obvious way.
std::vector<float> mask_by_sorting(const std::vector<float>& scores, std::int64_t count) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return scores[i]; });
  std::vector<float> mask(scores.size(), 1);
  for (std::int64_t i = 0; i < count; ++i) mask[order[static_cast<std::size_t>(i)]] = 0;
  return mask;
}

TEST(SelectMasks, PrunesTheLowestElementsOfEachWeight) {
  const Graph graph = two_linears();
  const std::vector<PruningUnit> units = units_of(graph, "element");
  for (unsigned seed = 0; seed < 20; ++seed)
    for (const double sparsity : {0.0, 0.1, 0.3, 0.5, 0.77, 1.0}) {
      const State scores = some_scores(seed);
      const State masks = select_masks(units, scores, sparsity, PruningScope::Local);
      for (const char* const state : {"w", "v"})
        EXPECT_EQ(values(masks.at(state)),
                  mask_by_sorting(values(scores.at(state)),
                                  share_of(sparsity, scores.at(state).num_elements())));
    }
}

TEST(SelectMasks, RanksAllWeightsAgainstEachOther) {
  const Graph graph = two_linears();
  for (unsigned seed = 0; seed < 20; ++seed) {
    const State scores = some_scores(seed);
    const State masks = select_masks(units_of(graph, "element"), scores, 0.4, PruningScope::Global);
    std::vector<float> all = values(scores.at("w")), both = values(masks.at("w"));
    for (const float value : values(scores.at("v"))) all.push_back(value);
    for (const float value : values(masks.at("v"))) both.push_back(value);
    EXPECT_EQ(both, mask_by_sorting(all, 29));  // 0.4 of 72
  }
}

TEST(SelectMasks, GivesEachRowItsShareAndTheWeightTheExactCount) {
  const Graph graph = two_linears();
  const State scores = some_scores(1);
  // 0.3 of 8 is 2.4: rows lose 2 or 3, and all six of them 14.
  const State masks = select_masks(units_of(graph, "element"), scores, 0.3, PruningScope::Row);
  std::vector<std::int64_t> lost;
  for (std::int64_t row = 0; row < 6; ++row) {
    const std::span<const float> mask = masks.at("w").data<float>().subspan(row * 8, 8);
    const std::span<const float> score = scores.at("w").data<float>().subspan(row * 8, 8);
    lost.push_back(std::ranges::count(mask, 0.0f));
    EXPECT_EQ(std::vector(mask.begin(), mask.end()),
              mask_by_sorting({score.begin(), score.end()}, lost.back()));
  }
  EXPECT_EQ(lost, (std::vector<std::int64_t>{2, 3, 2, 3, 2, 2}));
}

TEST(SelectMasks, KeepsTwoOfFour) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,8]
    w = state() : f32[1,8]
    y = linear(x, w)
    output y <- y
  )");
  const State scores{{"w", Tensor::from<float>({1, 8}, {3, 1, 4, 1, 5, 9, 2, 6})}};
  const std::vector<PruningUnit> units = units_of(graph, "2:4");
  for (const PruningScope scope : {PruningScope::Row, PruningScope::Local, PruningScope::Global})
    EXPECT_EQ(values(select_masks(units, scores, 0.5, scope).at("w")),
              (std::vector<float>{1, 0, 1, 0, 0, 1, 0, 1}));
  // On the way there, the group that loses less is first.
  EXPECT_EQ(values(select_masks(units, scores, 0.25, PruningScope::Local).at("w")),
            (std::vector<float>{1, 0, 1, 0, 1, 1, 1, 1}));
}

TEST(SelectMasks, PrunesBlocksByTheirMeanScore) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,5]
    w = state() : f32[3,5]
    y = linear(x, w)
    output y <- y
  )");
  // Blocks of 2x2, smaller at the edges: means 2, 4, 1 and 5, 3, 6.
  const State scores{
      {"w", Tensor::from<float>({3, 5}, {2, 2, 4, 4, 0, 2, 2, 4, 4, 2, 5, 5, 2, 4, 6})}};
  EXPECT_EQ(values(select_masks(units_of(graph, "2x2"), scores, 0.5, PruningScope::Local).at("w")),
            (std::vector<float>{0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1}));
}

TEST(SelectMasks, PrunesRowsAndColumns) {
  const Graph graph = two_linears();
  const State scores{{"w", Tensor(DType::F32, {6, 8})},
                     {"v", Tensor::from<float>({4, 6}, {9, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2,
                                                        0, 0, 0, 0, 0, 1, 5, 5, 5, 5, 5, 5})}};
  const Tensor rows =
      select_masks(units_of(graph, "row"), scores, 0.5, PruningScope::Local).at("v");
  EXPECT_EQ(values(rows), (std::vector<float>{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0,
                                              0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}));
  const Tensor columns =
      select_masks(units_of(graph, "column"), scores, 0.5, PruningScope::Local).at("v");
  EXPECT_EQ(values(columns), (std::vector<float>{1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1,
                                                 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1}));
}

TEST(SelectMasks, CountsWhatIsOutAlreadyAndKeepsItOut) {
  const Graph graph = two_linears();
  const std::vector<PruningUnit> units = units_of(graph, "element");
  State scores = some_scores(7);
  State held{{"w", Tensor(DType::F32, {6, 8})}};
  for (std::size_t i = 0; i < 48; ++i) held["w"].mutable_data<float>()[i] = i < 10 ? 0 : 1;
  for (const PruningScope scope : {PruningScope::Row, PruningScope::Local, PruningScope::Global}) {
    const State masks = select_masks(units, scores, 0.5, scope, held);
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(masks.at("w").data<float>()[i], 0);
  }
  EXPECT_EQ(zeros(select_masks(units, scores, 0.5, PruningScope::Local, held).at("w")), 24);
  // What is out stays out even where less is asked for.
  EXPECT_EQ(zeros(select_masks(units, scores, 0.1, PruningScope::Local, held).at("w")), 10);
}

TEST(SelectMasks, TakesGranulesThatAreOutFirstEvenBeforeNegativeScores) {
  const Graph graph = two_linears();
  State scores = some_scores(2);
  for (float& value : scores.at("v").mutable_data<float>()) value = -100;
  for (std::size_t i = 6; i < 12; ++i) scores.at("v").mutable_data<float>()[i] = kOut;
  const Tensor mask =
      select_masks(units_of(graph, "row"), scores, 0.25, PruningScope::Local).at("v");
  EXPECT_EQ(values(mask), (std::vector<float>{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0,
                                              1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
}

// A product with b[K,N] has its outputs along axis 1: rows of the matrix are columns of b.
TEST(SelectMasks, GoesByTheOutputsOfAProduct) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,2]
    w = state() : f32[2,3]
    y = matmul(x, w)
    output y <- y
  )");
  const State scores{{"w", Tensor::from<float>({2, 3}, {4, 1, 9, 5, 1, 9})}};
  const Tensor mask =
      select_masks(units_of(graph, "row"), scores, 0.33, PruningScope::Local).at("w");
  EXPECT_EQ(values(mask), (std::vector<float>{1, 0, 1, 1, 0, 1}));
}

TEST(CheckSparsity, NamesWhatCannotBe) {
  EXPECT_EQ(error_text([] { check_sparsity(1.5, {}); }),
            "sparsity 1.5: expected a share of the weights, 0 to 1");
  EXPECT_EQ(error_text([] { check_sparsity(-0.1, {}); }),
            "sparsity -0.1: expected a share of the weights, 0 to 1");
  EXPECT_EQ(error_text([] { check_sparsity(0.7, parse_granularity("2:4")); }),
            "sparsity 0.7: 2:4 prunes 0.5 of a weight at most");
  EXPECT_NO_THROW(check_sparsity(2.0 / 3, parse_granularity("1:3")));
}

TEST(ParsePruningScope, KnowsRowLocalAndGlobal) {
  EXPECT_EQ(parse_pruning_scope("global"), PruningScope::Global);
  EXPECT_EQ(error_text([] { parse_pruning_scope("globl"); }),
            "unknown scope \"globl\"; known: row, local, global\nhint: did you mean \"global\"?");
}

}  // namespace
}  // namespace lathe::compress

// The passes that execute, on numbers small enough to check by hand.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/passes/statistics.h"

namespace lathe::engine {
namespace {

TEST(FoldConstants, CollapsesAChainAndKeepsWhatIsNotConstant) {
  Graph graph = parse_graph(R"(
    x = input() : f32[2]
    a = constant() {values=[1.0,2.0]} : f32[2]
    b = constant() {values=[3.0,-4.0]} : f32[2]
    sum = add(a, b)
    up = relu(sum)
    y = mul(x, up)
    output y <- y
    output up <- up
  )");
  EXPECT_EQ(run_pass("fold-constants", graph), 2);
  EXPECT_EQ(run_pass("remove-dead-nodes", graph), 3);
  EXPECT_EQ(print(graph), R"(lathe-ir 2
x = input() : f32[2]
up/folded = constant() {values=[4.0,0.0]} : f32[2]
y = mul(x, up/folded) : f32[2]
output y <- y
output up <- up/folded
)");
}

TEST(FoldConstants, LeavesResultsThatDoNotFitOnALine) {
  Graph graph = parse_graph(R"(
    a = constant() {values=[1.0]} : f32[65]
    b = relu(a)
    c = constant() {values=[1.0]} : f32[B]
    d = relu(c)
    output b <- b
    output d <- d
  )");
  EXPECT_EQ(run_pass("fold-constants", graph), 0);
}

Statistics measured(const std::vector<Feed>& feeds, double quantile = 0.99) {
  Graph graph = parse_graph("x = input() : f32[N]\noutput y <- x");
  State state;
  PassContext context{.options = {{"quantile", quantile}}, .state = &state, .feeds = feeds};
  run_pass("measure-statistics", graph, context);
  return *graph.find_annotation<Statistics>(graph.at("x"));
}

TEST(RandomizeDropout, DrawsTheSlopesOfRrelu) {
  Graph graph = parse_graph(R"(
    symbols B
    x = input() : f32[B,4]
    y = rrelu(x) {site=2} : f32[B,4]
    output y <- y
  )");
  EXPECT_EQ(run_pass("randomize-dropout", graph), 1);
  const NodeId y = graph.at("y");
  EXPECT_TRUE(graph.is(y, "random_rrelu"));
  EXPECT_EQ(graph.name(graph.input(y, 0)), "x");
  EXPECT_EQ(graph.name(graph.input(y, 1)), "x");
  EXPECT_EQ(graph.attribute(y).integer("site"), 2);
  EXPECT_EQ(graph.type(*graph.output("y")), (Type{DType::F32, {Size::symbol("B"), 4}}));
}

TEST(SelectRowsEarly, ComputesTheVocabularyForTheLastTokensAlone) {
  Graph graph = parse_graph(R"(
    offsets = input() : i32[S+1]
    q = input() : f32[T,4]
    k = input() : f32[T,4]
    table = state() : f32[9,4]
    a = attention(q, k, k, none, offsets) {heads=1, causal=true}
    x = relu(a)
    logits = linear(x, table)
    last = select_in_sequence(logits, offsets) {index=-1}
    output logits <- last
  )");
  EXPECT_EQ(run_pass("select-rows-early", graph), 2);
  const NodeId logits = graph.output("logits")->node;
  EXPECT_EQ(to_text(graph.types(logits)[0]), "f32[S,9]");
  // Causal attention has as many queries as keys: the choice stays behind it.
  EXPECT_EQ(to_text(graph.types(graph.at("a"))[0]), "f32[T,4]");
  EXPECT_EQ(to_text(graph.types(graph.at("x"))[0]), "f32[S,4]");
}

TEST(MeasureStatistics, TellsWhatOneCountsByHandOverAllBatches) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Statistics statistics = measured({{{"x", Tensor::from<float>({4}, {-3, 0, 1, nan})}},
                                          {{"x", Tensor::from<float>({2}, {2, 0})}}},
                                         0.5);
  // -3, 0, 1, 2, 0: the NaN counts nowhere.
  EXPECT_EQ(statistics.count, 5);
  EXPECT_EQ(statistics.minimum, -3);
  EXPECT_EQ(statistics.maximum, 2);
  EXPECT_EQ(statistics.mean, 0);
  EXPECT_DOUBLE_EQ(statistics.mean_absolute, 1.2);
  EXPECT_DOUBLE_EQ(statistics.deviation, std::sqrt(14.0 / 5));
  EXPECT_EQ(statistics.sparsity, 0.4);
  EXPECT_NEAR(statistics.quantile, 1, 0.002);  // the third smallest of 0 0 1 2 3
  EXPECT_EQ(to_text(statistics),
            fmt::format("min -3 max 2 mean 0 |mean| 1.2 std 1.67332 q0.5 {:.6g} zeros 40%",
                        statistics.quantile));
}

TEST(MeasureStatistics, FindsQuantilesWithinAFifthOfAPercent) {
  std::vector<float> values;
  for (int i = 1; i <= 1000; ++i) values.push_back((i % 2 == 0 ? 1.0f : -1.0f) * 0.37f * i);
  const Feed feed{{"x", Tensor::from<float>({1000}, std::span<const float>(values))}};
  for (const double level : {0.001, 0.25, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = 0.37 * std::ceil(level * 1000);
    EXPECT_NEAR(measured({feed}, level).quantile, exact, 0.002 * exact) << level;
  }
  EXPECT_EQ(measured({feed}, 1).quantile, 370);  // the largest there is, not the edge of its bin
}

TEST(MeasureStatistics, KnowsInfinityAndNothingAtAll) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(measured({{{"x", Tensor::from<float>({2}, {1, -inf})}}}, 1).quantile, inf);
  EXPECT_EQ(measured({{{"x", Tensor(DType::F32, {0})}}}).count, 0);
  EXPECT_EQ(measured({{{"x", Tensor(DType::F32, {3})}}}).quantile, 0);
}

TEST(MeasureStatistics, CountsAStateOnceHoweverManyBatchesPass) {
  Graph graph =
      parse_graph("x = input() : f32[2]\nw = state() : f32[2]\ny = add(x, w)\noutput y <- y");
  State state{{"w", Tensor::from<float>({2}, {1, 2})}};
  const Feed feed{{"x", Tensor(DType::F32, {2})}};
  PassContext context{.state = &state, .feeds = {feed, feed, feed}};
  const PassResult result = run_pass("measure-statistics", graph, context);
  EXPECT_EQ(graph.find_annotation<Statistics>(graph.at("w"))->count, 2);
  EXPECT_EQ(graph.find_annotation<Statistics>(graph.at("y"))->count, 6);
  EXPECT_TRUE(result.report.starts_with("x  min 0 max 0 ")) << result.report;
}

TEST(MeasureStatistics, RefusesALevelThatIsNoShare) {
  for (const double level : {0.0, 1.5, -1.0})
    EXPECT_EQ(
        error_text([&] {
          measured({{{"x", Tensor()}}}, level);
        }),
        fmt::format("pass measure-statistics: quantile={}: expected a share above 0, at most 1",
                    level));
}

}  // namespace
}  // namespace lathe::engine

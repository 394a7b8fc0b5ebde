#include "lathe/engine/cpu/cpu_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/engine/lower.h"

namespace lathe::engine {
namespace {

CpuPlan plan_of(const std::string& text) {
  return make_cpu_plan(lower(parse_graph(text), find_backend("cpu")));
}

Slot::Kind kind_of(const CpuPlan& plan, const std::string& name) {
  return plan.slots[plan.slot({plan.graph.at(name), 0})].kind;
}

TEST(CpuPlan, WalksRowsTogetherAndKeepsWhatStaysInsideInTiles) {
  const CpuPlan plan = plan_of(R"(
    x = input() : f32[B,16]
    w = state() : f32[16,16]
    g = state() : f32[16]
    h = linear(x, w)
    n = layer_norm(h, g, g)
    k = linear(n, w)
    output y <- k)");
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_EQ(plan.stages[0].kind, Stage::Kind::Rows);
  EXPECT_EQ(kind_of(plan, "x"), Slot::Kind::Input);
  EXPECT_EQ(kind_of(plan, "w"), Slot::Kind::State);
  EXPECT_EQ(kind_of(plan, "n"), Slot::Kind::Tile);
  EXPECT_EQ(kind_of(plan, "k"), Slot::Kind::Arena) << "an output is there after the last stage";
  EXPECT_GT(plan.stages[0].tile_bytes, 0);
}

TEST(CpuPlan, EndsAStageWhereAValueIsNeededWhole) {
  const CpuPlan plan = plan_of(R"(
    x = input() : f32[B,16]
    w = state() : f32[16,16]
    h = linear(x, w)
    m = softmax(h) {axis=0}
    k = linear(m, w)
    output y <- k)");
  ASSERT_EQ(plan.stages.size(), 3u);
  EXPECT_EQ(plan.stages[0].kind, Stage::Kind::Rows);
  EXPECT_EQ(plan.stages[1].kind, Stage::Kind::Whole);
  EXPECT_EQ(plan.stages[2].kind, Stage::Kind::Rows);
  EXPECT_EQ(kind_of(plan, "h"), Slot::Kind::Arena);
  EXPECT_EQ(kind_of(plan, "m"), Slot::Kind::Arena);
}

// Weights of 2.3 MB would pass through the caches for every tile.
constexpr const char* kLargeLayers = R"(
    x = input() : f32[B,768]
    w = state() : f32[768,768]
    v = state() : f32[768,768]
    g = state() : f32[768]
    n = layer_norm(x, g, g)
    q = linear(n, w)
    k = linear(n, v)
    m = layer_norm(q, g, g)
    o = linear(m, w)
    output k <- k
    output y <- o)";

TEST(CpuPlan, KnowsWhatTilesReadThatOtherStagesMade) {
  const CpuPlan plan = plan_of(R"(
    x = input() : f32[B,8,16]
    w = state() : f32[16,16]
    h = linear(x, w)
    m = softmax(h) {axis=1}
    k = linear(m, w)
    n = add(k, h)
    r = relu(n)
    output y <- r)");
  ASSERT_EQ(plan.stages.size(), 3u);
  EXPECT_TRUE(plan.stages[0].reads.empty()) << "an input and a state";
  const auto read = [&](const char* name) {
    return Stage::Read{static_cast<int>(plan.slot({plan.graph.at(name), 0})), 64};
  };
  EXPECT_THAT(plan.stages[2].reads, testing::UnorderedElementsAre(read("m"), read("h")));
}

TEST(CpuPlan, ComputesLargeProductsByThemselves) {
  const CpuPlan plan = plan_of(kLargeLayers);
  std::vector<std::pair<Stage::Kind, std::size_t>> stages;
  for (const Stage& stage : plan.stages) stages.emplace_back(stage.kind, stage.steps.size());
  using enum Stage::Kind;
  EXPECT_THAT(stages, testing::ElementsAre(std::pair(Rows, 1u), std::pair(Products, 2u),
                                           std::pair(Rows, 1u), std::pair(Products, 1u)));
  EXPECT_EQ(kind_of(plan, "n"), Slot::Kind::Arena);
}

// The names of their steps.
std::vector<std::vector<std::string>> stages_of(const CpuPlan& plan) {
  std::vector<std::vector<std::string>> stages;
  for (const Stage& stage : plan.stages) {
    stages.emplace_back();
    for (const std::size_t step : stage.steps)
      stages.back().emplace_back(plan.graph.name(plan.steps[step].node));
  }
  return stages;
}

TEST(CpuPlan, GathersLargeProductsThatDoNotNeedEachOther) {
  using testing::ElementsAre;
  EXPECT_THAT(stages_of(plan_of(R"(
    x = input() : f32[B,768]
    w = state() : f32[768,768]
    v = state() : f32[768,768]
    u = state() : f32[768,768]
    g = state() : f32[768]
    n = layer_norm(x, g, g)
    q = linear(n, w)
    p = softmax(q)
    k = linear(n, v)
    r = softmax(k)
    a = add(p, r)
    o = linear(a, w)
    s = linear(n, u)
    output y <- o
    output z <- s)")),
              ElementsAre(ElementsAre("n"), ElementsAre("q", "k"), ElementsAre("p", "r", "a"),
                          ElementsAre("o", "s")));
}

TEST(CpuPlan, LeavesALargeProductWhereOthersAreFarBeforeIt) {
  const auto first_stage = [](int between) {
    std::string text = R"(
    x = input() : f32[B,768]
    w = state() : f32[768,768]
    v = state() : f32[768,768]
    a = linear(x, w)
    m0 = softmax(a))";
    for (int i = 1; i < between; ++i) text += fmt::format("\n    m{} = softmax(m{})", i, i - 1);
    text +=
        fmt::format("\n    b = linear(x, v)\n    output y <- m{}\n    output z <- b", between - 1);
    return stages_of(plan_of(text)).front();
  };
  EXPECT_EQ(first_stage(16), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(first_stage(17), (std::vector<std::string>{"a"}));
}

TEST(CpuPlan, LetsThreadsMeetOnceForTasksThatDoNotNeedEachOther) {
  const CpuPlan plan = plan_of(R"(
    g = input() : f32[40,50]
    h = input() : f32[9]
    rate = input() : f32[]
    p = state() : f32[40,50]
    v = state() : f32[40,50]
    q = state() : f32[9]
    w = state() : f32[9]
    a = sum_squares(g)
    b = sum_squares(h)
    t = add(a, b)
    s = sum_squares(t)
    p1 = sgd(p, g, v, rate, s) : f32[40,50], f32[40,50]
    q1 = sgd(q, h, w, rate, s) : f32[9], f32[9]
    state p <- p1
    state v <- p1#1
    state q <- q1
    state w <- q1#1)");
  std::vector<std::pair<Stage::Kind, std::size_t>> stages;
  for (const Stage& stage : plan.stages) stages.emplace_back(stage.kind, stage.steps.size());
  using enum Stage::Kind;
  EXPECT_THAT(stages, testing::ElementsAre(std::pair(Tasks, 2u), std::pair(Rows, 1u),
                                           std::pair(Tasks, 1u), std::pair(Tasks, 2u)));
}

TEST(CpuPlan, GivesAnotherNameNoMemory) {
  const CpuPlan plan = plan_of(R"(
    x = input() : f32[B,16]
    r = reshape(x) : f32[B,4,4]
    s = softmax(r)
    output y <- s)");
  EXPECT_EQ(plan.slot({plan.graph.at("r"), 0}), plan.slot({plan.graph.at("x"), 0}));
  EXPECT_EQ(plan.slots.size(), 2u);
}

TEST(CpuPlan, CopiesAnUpdateWhoseStepCannotWriteInPlace) {
  const CpuPlan plan = plan_of(R"(
    x = input() : f32[4,4]
    s = state() : f32[4,4]
    n = add(s, x)
    state s <- n)");
  EXPECT_THAT(plan.late_updates,
              testing::ElementsAre(std::pair(plan.slot_of.at({plan.graph.at("n"), 0}),
                                             plan.slot_of.at({plan.graph.at("s"), 0}))));
}

TEST(CpuPlan, UpdatesAStateInPlaceUnlessItIsReadAfterwards) {
  const std::string step = R"(
    g = input() : f32[4,4]
    rate = input() : f32[]
    scale = input() : f32[]
    p = state() : f32[4,4]
    m = state() : f32[4,4]
    n = sgd(p, g, m, rate, scale) {momentum=0.9}
    state p <- n
    state m <- n#1)";
  const CpuPlan plan = plan_of(step);
  EXPECT_TRUE(plan.late_updates.empty());
  EXPECT_THAT(plan.steps.back().outputs,
              testing::ElementsAre(plan.slot_of.at({plan.graph.at("p"), 0}),
                                   plan.slot_of.at({plan.graph.at("m"), 0})));
  const CpuPlan read_later = plan_of(step + R"(
    k = mul(n, p)
    output k <- k)");
  EXPECT_FALSE(read_later.late_updates.empty());
  for (const char* at_the_end :
       {"output k <- p", "other = state() : f32[4,4]\n    state other <- p"}) {
    const CpuPlan plan_at_the_end = plan_of(step + "\n    " + at_the_end);
    EXPECT_THAT(plan_at_the_end.late_updates,
                testing::Contains(
                    std::pair(plan_at_the_end.slot_of.at({plan_at_the_end.graph.at("n"), 0}),
                              plan_at_the_end.slot_of.at({plan_at_the_end.graph.at("p"), 0}))))
        << at_the_end;
  }
}

TEST(CpuPlan, UpdatesAStateBehindTheTasksThatReadIt) {
  const CpuPlan plan = plan_of(R"(
    kept = state() : f32[16]
    first = input() : f32[16]
    second = input() : f32[16]
    scale = input() : f32[]
    a = running_average(kept, first, scale) {momentum=0.3}
    b = running_average(kept, second, scale) {momentum=0.3}
    output a <- a
    state kept <- b)");
  EXPECT_TRUE(plan.late_updates.empty());
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.stages[1].reason, "writes what a reads");
}

TEST(CpuPlan, LetsAWholeStepWriteOverAnOperandThatNobodyReadsAgain) {
  const std::string text = R"(
    x = input() : f32[B,4,4,16]
    w = input() : f32[16]
    dy = neg(x)
    g = relu_channel_gradients(dy, none, x, x, w, w, w)
    y = neg(g)
    output y <- y)";
  const auto are_together = [](const CpuPlan& plan) {
    return plan.slot({plan.graph.at("g"), 0}) == plan.slot({plan.graph.at("dy"), 0});
  };
  EXPECT_TRUE(are_together(plan_of(text)));
  EXPECT_FALSE(are_together(plan_of(text + "\n    output dy <- dy")));
  EXPECT_FALSE(are_together(plan_of(text + R"(
    z = mul(dy, y)
    output z <- z)")));
}

}  // namespace
}  // namespace lathe::engine

#include "lathe/engine/sparse_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/origin.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

constexpr const char* kAdamw = R"(
  dy = input() : f32[T,5]
  ids = input() : i32[T]
  learning_rate = input() : f32[]
  random = input() : i32[3]
  count = input() : f32[]
  table = state() : f32[1100,5]
  m = state() : f32[1100,5]
  v = state() : f32[1100,5]
  gradient = embedding_gradient(dy, ids) {rows=1100}
  squares = sum_squares(gradient)
  scale = gradient_scale(squares, count) {max_norm=1.0}
  next = adamw(table, gradient, m, v, learning_rate, scale, random) {weight_decay=0.1}
  output norm <- scale#1
  state table <- next
  state m <- next#1
  state v <- next#2)";

constexpr const char* kSgd = R"(
  dy = input() : f32[T,5]
  ids = input() : i32[T]
  learning_rate = input() : f32[]
  count = input() : f32[]
  table = state() : f32[1100,5]
  velocity = state() : f32[1100,5]
  gradient = embedding_gradient(dy, ids) {rows=1100}
  squares = sum_squares(gradient)
  scale = gradient_scale(squares, count)
  next = sgd(table, gradient, velocity, learning_rate, scale) {momentum=0.9, weight_decay=0.1}
  output norm <- scale#1
  state table <- next
  state velocity <- next#1)";

// Sums of gradients, as gradient accumulation makes them.
constexpr const char* kAccumulated = R"(
  dy = input() : f32[T,5]
  ids = input() : i32[T]
  learning_rate = input() : f32[]
  count = input() : f32[]
  table = state() : f32[1100,5]
  velocity = state() : f32[1100,5]
  earlier = state() : f32[1100,5]
  gradient = embedding_gradient(dy, ids) {rows=1100}
  total = add(earlier, gradient)
  squares = sum_squares(total)
  scale = gradient_scale(squares, count)
  next = sgd(table, total, velocity, learning_rate, scale) {momentum=0.9}
  output norm <- scale#1
  state table <- next
  state velocity <- next#1
  state earlier <- total)";

// Ids 0, 7, 14 and so on, with 3 and 1099 twice, so that rows are shared, skipped and at the end.
Feed make_feed(const Graph& graph, std::int64_t tokens) {
  Feed feed = random_feed(graph, {{"T", tokens}}, 3);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<std::int32_t>(i * 7 % 1100));
  ids[1] = ids[4] = 3;
  ids[2] = ids[5] = 1099;
  feed["ids"] = Tensor::from<std::int32_t>({tokens}, std::span<const std::int32_t>(ids));
  feed["learning_rate"] = Tensor::from<float>({}, {0.1f});
  feed["count"] = Tensor::from<float>({}, {2.0f});
  if (feed.contains("random")) feed["random"] = Tensor::from<std::int32_t>({3}, {1, 0, 3});
  return feed;
}

// Squares for what must not be negative.
State make_state(const Graph& graph) {
  State state = random_state(graph, 4);
  if (state.contains("v"))
    for (float& value : state["v"].mutable_data<float>()) value *= value;
  return state;
}

class EveryUpdate : public testing::TestWithParam<const char*> {};

TEST_P(EveryUpdate, MovesTheTableAsTheReferenceDoes) {
  const Graph graph = parse_graph(GetParam());
  const auto reference = make_executor(graph, make_state(graph), {.device = "reference"});
  const auto cpu = make_executor(graph, make_state(graph));
  for (const std::int64_t tokens : {40, 9, 3000}) {
    const Feed feed = make_feed(graph, tokens);
    expect_near(cpu->run(feed), reference->run(feed), 1e-5);
    expect_near(cpu->state(), reference->state(), 1e-5);
  }
}

TEST_P(EveryUpdate, GivesTheSameBitsForAnyNumberOfThreads) {
  const Graph graph = parse_graph(GetParam());
  for (const int threads : {2, 5, 16}) {
    ThreadPool pool(threads);
    const auto one = make_executor(graph, make_state(graph));
    const auto many = make_executor(graph, make_state(graph), {.pool = &pool});
    for (const std::int64_t tokens : {3000, 9}) {
      const Feed feed = make_feed(graph, tokens);
      expect_identical(many->run(feed), one->run(feed));
      expect_identical(many->state(), one->state());
    }
  }
}

// Each thread looks for the ids of its own rows: one that is nobody's must be missed.
TEST_P(EveryUpdate, RefusesAnIdOutsideTheTableOnAnyNumberOfThreads) {
  const Graph graph = parse_graph(GetParam());
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const auto executor = make_executor(graph, make_state(graph), {.pool = &pool});
    for (const std::int32_t id : {1100, -1}) {
      Feed feed = make_feed(graph, 9);
      feed["ids"].mutable_data<std::int32_t>()[8] = id;
      EXPECT_THAT(error_text([&] { executor->run(feed); }),
                  testing::HasSubstr(fmt::format("id {} is outside the table of 1100 rows", id)));
    }
  }
}

constexpr const char* kNames[] = {"Adamw", "Sgd", "Accumulated"};
INSTANTIATE_TEST_SUITE_P(, EveryUpdate, testing::Values(kAdamw, kSgd, kAccumulated),
                         [](const auto& update) { return kNames[update.index]; });

TEST(MakeEmbeddingGradientsSparse, KeepsTheRowsThatWereUsed) {
  const Graph lowered = lower(parse_graph(kAdamw), find_backend("cpu"));
  EXPECT_EQ(print(lowered, "gradient/rows"),
            "gradient/rows = embedding_gradient_rows(dy, ids) {rows=1100} : f32[T,5], i32[1100], "
            "i32[]");
  EXPECT_EQ(print(lowered, "squares/rows"),
            "squares/rows = sum_squares_of_rows(gradient/rows#0, gradient/rows#2) : f32[]");
  EXPECT_EQ(print(lowered, "next/rows"),
            "next/rows = adamw_of_rows(table, gradient/rows#0, m, v, learning_rate, scale#0, "
            "random, "
            "gradient/rows#1) {weight_decay=0.1} : f32[1100,5], f32[1100,5], f32[1100,5]");
  EXPECT_EQ(to_text(*lowered.find_annotation<Origin>(lowered.at("next/rows"))), "next");
}

TEST(MakeEmbeddingGradientsSparse, AddsRowsToTheOtherTermOfASum) {
  const Graph lowered = lower(parse_graph(kAccumulated), find_backend("cpu"));
  EXPECT_EQ(print(lowered, "total/fused"),
            "total/fused = add_embedding_gradient(dy, ids, earlier) : f32[1100,5]");
  EXPECT_EQ(to_text(*lowered.find_annotation<Origin>(lowered.at("total/fused"))),
            "gradient + total");
}

TEST(MakeEmbeddingGradientsSparse, LeavesAGradientThatSomebodyElseReads) {
  Graph graph = parse_graph(std::string(kSgd) + "\n  output gradient <- gradient");
  EXPECT_EQ(make_embedding_gradients_sparse(graph, find_backend("cpu")), 0);
}

TEST(MakeEmbeddingGradientsSparse, LeavesASmallTable) {
  Graph graph = parse_graph(R"(
    dy = input() : f32[T,5]
    ids = input() : i32[T]
    gradient = embedding_gradient(dy, ids) {rows=512}
    squares = sum_squares(gradient)
    output squares <- squares)");
  EXPECT_EQ(make_embedding_gradients_sparse(graph, find_backend("cpu")), 0);
}

}  // namespace
}  // namespace lathe::engine

#include <gtest/gtest.h>

#include "lathe/engine/backend.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

struct Case {
  const char* name;
  const char* text;
};

const Case kCases[] = {
    {"AnOutputIsTheValueOfBefore", R"(
      kept = state() : f32[131]
      seen = input() : f32[131]
      scale = input() : f32[]
      next = running_average(kept, seen, scale) {momentum=0.3}
      view = reshape(kept) : f32[1,131]
      output before <- kept
      output seen_as <- view
      state kept <- next)"},
    {"ATaskBesideTheUpdateReadsTheValueOfBefore", R"(
      kept = state() : f32[4000]
      first = input() : f32[4000]
      second = input() : f32[4000]
      scale = input() : f32[]
      a = running_average(kept, first, scale) {momentum=0.3}
      b = running_average(kept, second, scale) {momentum=0.3}
      output a <- a
      state kept <- b)"},
    {"StatesChangePlaces", R"(
      a = state() : f32[5]
      b = state() : f32[5]
      y = add(a, b)
      output y <- y
      state a <- b
      state b <- a)"},
    {"AStateBecomesWhatAnotherWas", R"(
      a = state() : f32[7]
      b = state() : f32[7]
      seen = input() : f32[7]
      scale = input() : f32[]
      next = running_average(b, seen, scale) {momentum=0.5}
      state a <- b
      state b <- next)"},
};

class EveryStateUpdate : public testing::TestWithParam<Case> {};

TEST_P(EveryStateUpdate, AgreesWithTheReferenceStepByStep) {
  const Graph graph = parse_graph(GetParam().text);
  ThreadPool pool(3);
  const State state = random_state(graph, 1);
  const auto executor = make_executor(graph, state, {.pool = &pool});
  const auto reference = make_executor(graph, state, {.device = "reference"});
  for (const unsigned seed : {2u, 3u}) {
    const Feed feed = random_feed(graph, {}, seed);
    expect_near(executor->run(feed), reference->run(feed), 1e-6);
    expect_near(executor->state(), reference->state(), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(CpuExecutor, EveryStateUpdate, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace lathe::engine

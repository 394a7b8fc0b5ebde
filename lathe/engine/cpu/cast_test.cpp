#include <bit>

#include "lathe/engine/testing/cpu_steps.h"

namespace lathe::engine {
namespace {

// Floats whose upper half is any bfloat16 number, infinities and NaNs among them, on and beside
// what halves the way to the next one.
Tensor floats_around_bfloat16() {
  std::vector<float> floats;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper)
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      floats.push_back(std::bit_cast<float>(upper << 16 | lower));
  return Tensor::from<float>({std::ssize(floats) / 64, 64}, floats);
}

void expect_bits_of_the_reference(const Graph& graph, const Feed& feed) {
  EXPECT_EQ(nodes_without_steps(graph), "");
  ThreadPool pool(3);
  const Feed expected = make_executor(graph, {}, {.device = "reference"})->run(feed);
  expect_identical(make_executor(graph, {})->run(feed), expected);
  expect_identical(make_executor(graph, {}, {.pool = &pool})->run(feed), expected);
}

TEST(CastStep, RoundsToBfloat16AndBackAsTheReferenceDoes) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,64]
    narrow = cast(x) : bf16[T,64]
    y = cast(narrow) : f32[T,64]
    output narrow <- narrow
    output y <- y)");
  expect_bits_of_the_reference(graph, {{"x", floats_around_bfloat16()}});
}

TEST(CastStep, TakesValuesOfAnyShape) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,L]
    s = input() : f32[]
    narrow = cast(x) : bf16[B,L]
    small = cast(s) : bf16[]
    y = cast(narrow) : f32[B,L]
    output y <- y
    output small <- small)");
  for (const std::int64_t length : {0, 1, 37})
    expect_bits_of_the_reference(graph, random_feed(graph, {{"B", 3}, {"L", length}}, 1));
}

// As in the rounding of keys and values: neither makes threads meet.
TEST(CastStep, SharesAStageWithItsNeighbours) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,64]
    h = relu(x)
    narrow = cast(h) : bf16[T,64]
    y = cast(narrow) : f32[T,64]
    output y <- y)");
  const auto executor = make_executor(graph, {});
  for (const PlannedStep& step : executor->report().steps) EXPECT_EQ(step.stage, 0) << step.op;
}

}  // namespace
}  // namespace lathe::engine

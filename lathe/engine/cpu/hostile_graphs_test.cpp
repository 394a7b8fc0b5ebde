// Graphs come from files of strangers: one that would make a plan write past its memory is refused
// in one line.
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

std::string refusal(const char* text) {
  const std::string made = error_text([&] {
    const Graph graph = parse_graph(text);
    CpuExecutor(graph, random_state(graph, 1), {});
  });
  EXPECT_EQ(error_text([&] { find_backend("cpu").plan(parse_graph(text), {}); }), made)
      << "planned without its states";
  return made;
}

// Laid out for L = 500, the arena has room for 12 columns; L = 10 would write 502 into it.
TEST(HostileGraphs, CannotShrinkASizeWhenASymbolGrows) {
  EXPECT_EQ(refusal(R"(
    x = input() : f32[B,L]
    y = input() : f32[B,-L+512]
    z = softmax(y) {axis=0}
    output z <- z)"),
            "node \"y\": size -L+512 of f32[B,-L+512] shrinks where a symbol grows: no memory can "
            "be planned for it");
  EXPECT_EQ(refusal(R"(
    x = input() : f32[B,L]
    y = slice(x) {axis=1, begin=-3, end=9}
    output y <- y)"),
            "node \"y\": size -L+12 of f32[B,-L+12] shrinks where a symbol grows: no memory can be "
            "planned for it");
}

// Two negative sizes have as many elements as two positive ones, which is all a reshape asks.
TEST(HostileGraphs, CannotHideTwoNegativeSizesInAReshape) {
  EXPECT_EQ(
      refusal(R"(
    x = input() : f32[B,L]
    y = reshape(x) : f32[-B,-L]
    z = relu(y)
    output z <- z)"),
      "node \"y\": size -B of f32[-B,-L] shrinks where a symbol grows: no memory can be planned "
      "for it");
}

TEST(HostileGraphs, AreRefusedByTheExtentsThatMakeASizeNegative) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,L]
    y = slice(x) {axis=1, begin=5}
    z = softmax(y) {axis=0}
    output z <- z)");
  CpuExecutor executor(graph, {}, {});
  EXPECT_EQ(executor.run(random_feed(graph, {{"B", 2}, {"L", 9}}, 1)).at("z").dim(1), 4);
  EXPECT_EQ(executor.run(random_feed(graph, {{"B", 2}, {"L", 5}}, 1)).at("z").dim(1), 0);
  EXPECT_EQ(error_text([&] {
              executor.run(random_feed(graph, {{"B", 2}, {"L", 2}}, 1));
            }),
            "node \"y\": size L-5 is negative: -3");
}

// Fifty doublings of eight numbers: no tensor is given that large, but a row of the result is.
TEST(HostileGraphs, CannotHaveRowsBeyondAllMemory) {
  std::string text = "x = input() : f32[T,8]\n";
  std::string last = "x";
  for (int i = 0; i < 50; ++i) {
    const std::string next = fmt::format("c{}", i);
    text += fmt::format("{} = concat({}, {}) {{axis=1}}\n", next, last, last);
    last = next;
  }
  text += fmt::format("y = relu({})\noutput y <- y\n", last);
  EXPECT_EQ(refusal(text.c_str()),
            "node \"c35\": a row of f32[T,549755813888] takes more than 1 TiB");
}

// The layout of a run that did not fit must not be taken for that of the next one.
TEST(HostileGraphs, LeaveNoTraceWhenARunDoesNotFitInMemory) {
  const Graph graph = parse_graph(R"(
    n = input() : f32[N,0]
    w = state() : f32[1024,0]
    x = input() : f32[B,4]
    y = softmax(x) {axis=0}
    z = linear(n, w)
    r = relu(z)
    output y <- y
    output z <- z
    output r <- r)");
  const auto feed = [](std::int64_t n, std::int64_t b) {
    return Feed{{"n", Tensor(DType::F32, {n, 0})}, {"x", Tensor(DType::F32, {b, 4})}};
  };
  CpuExecutor executor(graph, random_state(graph, 1), {});
  EXPECT_EQ(executor.run(feed(0, 2)).at("y").dim(0), 2);
  const SymbolValues before = executor.report().capacity;
  EXPECT_EQ(error_text([&] { executor.run(feed(std::int64_t{1} << 52, 3)); }),
            "size 4096 * 4503599627370496 does not fit in 64 bits");
  EXPECT_EQ(error_text([&] { executor.run(feed(std::int64_t{1} << 50, 3)); }),
            "the values of a run do not fit in memory");
  EXPECT_EQ(executor.report().capacity, before);
  EXPECT_EQ(executor.run(feed(0, 3)).at("y").dim(0), 3);
}

TEST(HostileGraphs, CannotBindAStateToAnotherShape) {
  EXPECT_EQ(refusal(R"(
    x = input() : f32[4,8]
    s = state() : f32[4,4]
    y = relu(x)
    state s <- y)"),
            "line 5: state \"s\" is f32[4,4] and cannot take y, which is f32[4,8]");
  EXPECT_EQ(refusal(R"(
    x = input() : f32[B,L]
    y = reshape(x) : f32[B,2*L]
    output y <- y)"),
            "node \"y\": cannot reshape f32[B,L] to f32[B,2*L]: B*L and 2*B*L elements differ");
}

}  // namespace
}  // namespace lathe::engine

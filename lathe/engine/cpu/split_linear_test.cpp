// Linear layers whose weights are large enough to be multiplied in parts, as plans run them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "lathe/core/graph_text.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/cpu/split_kernels.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

// The kernel that every linear of the graph runs by.
std::vector<std::string> kernels_of_linears(const Graph& graph, Precision precision) {
  const State state = random_state(graph, 1);
  const CpuExecutor executor(graph, state, {.isa = best_isa(), .precision = precision});
  std::vector<std::string> result;
  for (const PlannedStep& step : executor.report().steps)
    if (step.op.find("linear") != std::string::npos) result.push_back(step.choice.kernel);
  return result;
}

TEST(SplitLinear, IsForLargeWeights) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,512]
    w = state() : f32[512,512]
    v = state() : f32[64,512]
    h = linear(x, w)
    y = linear(h, v)
    output y <- y)");
  const std::string large = split_kernels(best_isa()) != nullptr ? "split_amx" : "";
  EXPECT_EQ(kernels_of_linears(graph, Precision::Float32), (std::vector<std::string>{large, ""}));
  EXPECT_NE(kernels_of_linears(graph, Precision::Bf16)[0], "split_amx");
}

constexpr const char* kTrainedLayer = R"(
    x = input() : f32[B,512]
    dy = input() : f32[B,768]
    w = state() : f32[768,512]
    y = linear(x, w)
    dx = linear_input_gradient(dy, w)
    dw = linear_weight_gradient(dy, x)
    z = sub(w, dw)
    output y <- y
    output dx <- dx
    output dw <- dw
    state w <- z)";

TEST(SplitLinear, IsForLargeWeightsThatAreTrainedToo) {
  const std::string large = split_kernels(best_isa()) != nullptr ? "split_amx" : "";
  EXPECT_EQ(kernels_of_linears(parse_graph(kTrainedLayer), Precision::Float32),
            (std::vector<std::string>(3, large)));
}

TEST(SplitLinear, TrainsToTheSameBitsOnAnyNumberOfThreads) {
  const Graph graph = parse_graph(kTrainedLayer);
  const State state = random_state(graph, 1);
  for (const std::int64_t rows : {0, 1, 75, 300}) {
    SCOPED_TRACE(rows);
    const Feed feed = random_feed(graph, {{"B", rows}}, 7);
    CpuExecutor alone(graph, state, {});
    const auto reference = make_executor(graph, state, {.device = "reference"});
    ThreadPool pool(3);
    CpuExecutor shared(graph, state, {.pool = &pool});
    for (int run = 0; run < 2; ++run) {
      // Of 768 products of a number below 1 and a weight near 10 in the second run.
      const Feed outputs = alone.run(feed);
      expect_near(outputs, reference->run(feed), 768 * 10 * kUnit);
      expect_identical(shared.run(feed), outputs);
    }
    EXPECT_TRUE(identical(alone.state().at("w"), shared.state().at("w")));
  }
}

TEST(SplitLinear, HandsOnWhatIsNotFinite) {
  const Graph graph = parse_graph(kTrainedLayer);
  Feed feed = random_feed(graph, {{"B", 40}}, 7);
  feed.at("x").mutable_data<float>()[70] = std::numeric_limits<float>::infinity();
  feed.at("dy").mutable_data<float>()[1000] = std::numeric_limits<float>::quiet_NaN();
  CpuExecutor executor(graph, random_state(graph, 1), {});
  const auto reference = make_executor(graph, random_state(graph, 1), {.device = "reference"});
  for (int run = 0; run < 2; ++run) {  // whose weights are not finite the second time
    const Feed outputs = executor.run(feed), expected = reference->run(feed);
    for (const auto& [name, tensor] : expected)
      for (std::int64_t i = 0; i < tensor.num_elements(); ++i)
        ASSERT_EQ(std::isfinite(outputs.at(name).at(i)), std::isfinite(tensor.at(i))) << name;
  }
}

// Two of them read what a thread has made of its rows, the third reads the rows themselves.
TEST(SplitLinear, HasTheSameBitsBesideOthersOfTheSameRows) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,800]
    u = state() : f32[512,800]
    v = state() : f32[96,800]
    w = state() : f32[768,800]
    a = linear(x, u)
    b = linear(x, v)
    c = linear(x, w)
    output a <- a
    output b <- b
    output c <- c)");
  const State state = random_state(graph, 1);
  const Feed feed = random_feed(graph, {{"B", 300}}, 7);
  const Feed outputs = CpuExecutor(graph, state, {}).run(feed);
  expect_near(outputs, make_executor(graph, state, {.device = "reference"})->run(feed), 3e-5);
  for (const int threads : {2, 7}) {
    ThreadPool pool(threads);
    CpuExecutor executor(graph, state, {.pool = &pool});
    for (int run = 0; run < 3; ++run) expect_identical(executor.run(feed), outputs);
    expect_identical(executor.run(random_feed(graph, {{"B", 0}}, 7)),
                     CpuExecutor(graph, state, {}).run(random_feed(graph, {{"B", 0}}, 7)));
  }
}

TEST(SplitLinear, HasTheSameBitsInAnyBatchAndOnAnyNumberOfThreads) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,800]
    w = state() : f32[512,800]
    b = state() : f32[512]
    h = linear(x, w, b)
    y = gelu(h)
    output y <- y)");
  const State state = random_state(graph, 1);
  CpuExecutor alone(graph, state, {});
  const Feed feed = random_feed(graph, {{"B", 75}}, 7);
  const Feed outputs = alone.run(feed);
  expect_near(outputs, make_executor(graph, state, {.device = "reference"})->run(feed), 1e-5);
  ThreadPool pool(3);
  expect_identical(CpuExecutor(graph, state, {.pool = &pool}).run(feed), outputs);
  const std::span<const float> rows = feed.at("x").data<float>();
  for (const std::size_t row : {0, 40, 74}) {
    Tensor one(DType::F32, {1, 800});
    std::ranges::copy(rows.subspan(row * 800, 800), one.mutable_data<float>().begin());
    const Feed single = alone.run({{"x", one}});
    const std::span<const float> expected = outputs.at("y").data<float>().subspan(row * 512, 512);
    EXPECT_TRUE(std::ranges::equal(single.at("y").data<float>(), expected)) << row;
  }
}

}  // namespace
}  // namespace lathe::engine

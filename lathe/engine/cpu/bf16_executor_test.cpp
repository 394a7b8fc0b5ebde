#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/engine/cpu/bf16_kernels.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

// Steps of every kind that multiplies, in tiles (64 wide) and in blocks, of rows that are copied
// (600 wide) and of rows that tiles can read where they lie (640).
std::string network(int width) {
  return fmt::format(R"(
    x = input() : f32[B,8,{0}]
    dy = input() : f32[B,8,{0}]
    w = state() : f32[{0},{0}]
    b = state() : f32[{0}]
    m = state() : f32[{0},{0}]
    q = linear(x, w, b)
    a = gelu(q)
    h = linear(a, w)
    r = add(h, x)
    k = matmul(r, m)
    t = attention(q, k, r) {{heads=4}}
    s = matmul(t, k) {{transpose_b=true}}
    dx = linear_input_gradient(dy, w)
    dw = linear_weight_gradient(dy, x)
    output t <- t
    output s <- s
    output r <- r
    output dx <- dx
    output dw <- dw)",
                     width);
}

TEST(Bf16Executor, HasTheSameBitsOnAnyNumberOfThreads) {
  for (const int width : {64, 600, 640}) {
    const Graph graph = parse_graph(network(width));
    const State state = random_state(graph, 1);
    for (const Isa isa : supported_isas()) {
      SCOPED_TRACE(testing::Message() << width << " " << name(isa));
      CpuExecutor alone(graph, state, {.isa = isa, .precision = Precision::Bf16});
      for (const std::int64_t rows : {9, 1}) {
        const Feed feed = random_feed(graph, {{"B", rows}}, 7);
        const Feed outputs = alone.run(feed);
        for (const int threads : {2, 5}) {
          ThreadPool pool(threads);
          CpuExecutor shared(graph, state,
                             {.pool = &pool, .isa = isa, .precision = Precision::Bf16});
          expect_identical(shared.run(feed), outputs);
        }
      }
    }
  }
}

Tensor rounded(const Tensor& tensor) {
  Tensor result(tensor.dtype(), tensor.dims());
  bf16_kernels(Isa::Plain)
      .round(tensor.data<float>().data(), tensor.num_elements(),
             result.mutable_data<float>().data());
  return result;
}

// With operands that are bfloat16 numbers already, a product differs from the reference's by the
// rounding of its result, 2^-9 of it, and by that of its sum.
TEST(Bf16Executor, RoundsWhatProductsReadAndMake) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,40]
    dy = input() : f32[B,24]
    w = state() : f32[24,40]
    h = linear(x, w)
    dx = linear_input_gradient(dy, w)
    dw = linear_weight_gradient(dy, x)
    output h <- h
    output dx <- dx
    output dw <- dw)");
  State state = random_state(graph, 1), rounded_state;
  for (const auto& [name, tensor] : state) rounded_state[name] = rounded(tensor);
  Feed feed = random_feed(graph, {{"B", 30}}, 7), rounded_feed;
  for (const auto& [name, tensor] : feed) rounded_feed[name] = rounded(tensor);
  const Feed expected =
      make_executor(graph, rounded_state, {.device = "reference"})->run(rounded_feed);
  for (const Isa isa : supported_isas()) {
    CpuExecutor executor(graph, state, {.isa = isa, .precision = Precision::Bf16});
    const Feed outputs = executor.run(feed);
    for (const auto& [name, tensor] : outputs) {
      const std::span<const float> values = tensor.data<float>();
      const std::span<const float> near = expected.find(name)->second.data<float>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool is_rounded = name != "dw";
        ASSERT_NEAR(values[i], near[i], (is_rounded ? 0x1p-8 * std::abs(near[i]) : 0) + 1e-5)
            << name;
      }
      if (name != "dw") expect_identical({{name, rounded(tensor)}}, {{name, tensor}});
    }
  }
}

}  // namespace
}  // namespace lathe::engine

// Attention on a GPU in bfloat16: one kernel beside the naive way, a product, a softmax and a
// product, each in its own launch. bench/cuda_attention_rival.py times PyTorch's the same way.
//
//   bench_cuda_attention [BATCHxHEADSxLENGTHxSIZE...]
//
// Prints a line for each size: microseconds of the fused and of the naive way, medians of repeated
// runs of the captured graph, and how many times faster the fused one is.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "lathe/core/error.h"
#include "lathe/core/graph_text.h"
#include "lathe/engine/executor.h"
#include "lathe/engine/precision.h"

namespace {

using namespace lathe;

struct Sizes {
  long long batch = 32, heads = 8, length = 128, d = 64;
};

// Operands are states, which stay on the device; a repeated run brings nothing back.
std::string fused(const Sizes& s) {
  return fmt::format(R"(
    q = state() : bf16[{0},{1},{2}]
    k = state() : bf16[{0},{1},{2}]
    v = state() : bf16[{0},{1},{2}]
    y = attention(q, k, v) {{heads={3}}}
    output y <- y)",
                     s.batch, s.length, s.heads * s.d, s.heads);
}
std::string naive(const Sizes& s) {
  return fmt::format(R"(
    q = state() : f32[{0},{1},{2},{3}]
    k = state() : f32[{0},{1},{2},{3}]
    v = state() : f32[{0},{1},{2},{3}]
    p = matmul(q, k) {{transpose_b=true}}
    w = softmax(p) {{axis=-1}}
    y = matmul(w, v)
    output y <- y)",
                     s.batch, s.heads, s.length, s.d);
}

double microseconds(const std::string& text) {
  const Graph graph = parse_graph(text);
  State state;
  for (const NodeId id : graph.nodes_of("state")) {
    const Type& type = graph.types(id)[0];
    state.emplace(graph.name(id), Tensor(type.dtype, type.dims({})));
  }
  const std::unique_ptr<engine::Executor> executor = engine::make_executor(
      graph, std::move(state), {.device = "cuda", .precision = engine::Precision::Bf16});
  for (int i = 0; i < 3; ++i) executor->run({});
  std::vector<double> times = executor->repeat(9, true);
  std::ranges::sort(times);
  return times[times.size() / 2] * 1e6;
}

int run(int argc, char** argv) {
  std::vector<Sizes> all;
  for (int i = 1; i < argc; ++i) {
    Sizes s;
    if (std::sscanf(argv[i], "%lldx%lldx%lldx%lld", &s.batch, &s.heads, &s.length, &s.d) != 4)
      fail("{}: expected BATCHxHEADSxLENGTHxSIZE", argv[i]);
    all.push_back(s);
  }
  if (all.empty()) all = {{32, 8, 128, 64}, {4, 16, 4096, 64}};
  for (const Sizes& s : all) {
    const double one = microseconds(fused(s)), several = microseconds(naive(s));
    fmt::print("{}x{}x{}x{}: fused {:.1f} us, naive {:.1f} us, {:.1f}x\n", s.batch, s.heads,
               s.length, s.d, one, several, several / one);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const UserError& error) {
    fmt::print(stderr, "error: {}\n", error.message());
    return 1;
  }
}

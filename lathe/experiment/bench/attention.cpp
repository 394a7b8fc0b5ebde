#include "lathe/experiment/bench/attention.h"

#include <cmath>

#include "lathe/core/error.h"
#include "lathe/core/graph_text.h"
#include "lathe/engine/backend.h"

namespace lathe::experiment::bench {
namespace {

Graph fused_graph(const AttentionOptions& options, const char* dtype) {
  const std::string type = fmt::format("{}[{},{},{}]", dtype, options.batch, options.length,
                                       options.heads * options.head_size);
  return parse_graph(
      fmt::format("q = input() : {0}\nk = input() : {0}\nv = input() : {0}\n"
                  "y = attention(q, k, v) {{causal={1}, heads={2}}}\noutput y <- y",
                  type, options.causal, options.heads));
}

// Scores are written and read again, twice.
Graph naive_graph(const AttentionOptions& options) {
  const std::string type = fmt::format("f32[{},{},{},{}]", options.batch, options.heads,
                                       options.length, options.head_size);
  return parse_graph(
      fmt::format("q = input() : {0}\nk = input() : {0}\nv = input() : {0}\n"
                  "scale = constant() {{values=[{1}]}} : f32[]\n"
                  "product = matmul(q, k) {{transpose_b=true}}\nscores = mul(product, scale)\n"
                  "weights = softmax(scores)\ny = matmul(weights, v)\noutput y <- y",
                  type, 1 / std::sqrt(static_cast<double>(options.head_size))));
}

}  // namespace

Graph fused_attention(const AttentionOptions& options, const engine::ExecutionOptions& execution) {
  if (execution.precision == engine::Precision::Bf16) {
    Graph graph = fused_graph(options, "bf16");
    if (engine::find_backend(execution.device).can_run(graph, graph.at("y"))) return graph;
  }
  return fused_graph(options, "f32");
}

Result time_attention(const AttentionOptions& options, const engine::ExecutionOptions& execution,
                      const Callbacks& callbacks) {
  if (options.batch < 1 || options.heads < 1 || options.length < 1 || options.head_size < 1)
    fail("sizes {}x{}x{}x{}: each must be positive", options.batch, options.heads, options.length,
         options.head_size);
  if (options.causal) callbacks.warn("the naive form has no mask: only the fused one is causal");
  Result result{.bench = "attention",
                .title = fmt::format("attention {}x{}x{}x{}", options.batch, options.heads,
                                     options.length, options.head_size),
                .device = device_name(execution)};
  const auto scores = static_cast<double>(options.batch * options.heads) *
                      std::pow(static_cast<double>(options.length), 2);
  const double flops = 4 * scores * static_cast<double>(options.head_size);
  const std::pair<std::string, Graph> forms[] = {{"fused", fused_attention(options, execution)},
                                                 {"naive", naive_graph(options)}};
  std::int64_t done = 0;
  for (const auto& [name, graph] : forms) {
    if (!callbacks.goes_on({"timing", "forms", done++, 2})) throw Interrupted();
    const auto executor = engine::make_executor(graph, {}, execution);
    result.rows.push_back(
        {.name = name,
         .time = time_runs(*executor, made_up_feed(graph, {}, 1), options.repeats, callbacks),
         .flops = flops * (options.causal && name == "fused" ? 0.5 : 1)});
  }
  result.limits.flops_per_second = product_peak(execution, callbacks);
  result.notes.push_back(fmt::format("fused is {:.2f}x as fast as naive",
                                     result.rows[1].time.median / result.rows[0].time.median));
  return result;
}

}  // namespace lathe::experiment::bench

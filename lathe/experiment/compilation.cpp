#include "lathe/experiment/compilation.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "lathe/compress/packed_weights.h"
#include "lathe/core/error.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/lower.h"
#include "lathe/experiment/bench/time_graph.h"
#include "lathe/io/model.h"
#include "lathe/train/make_source.h"
#include "lathe/train/training_graph.h"

namespace lathe::experiment {
namespace {

using Clock = std::chrono::steady_clock;

// Tokens of a sequence, unless they are asked for.
constexpr std::int64_t kUsualLength = 128;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of token ids, in a file that was exported for texts of one length.
std::optional<std::int64_t> fixed_length(const Graph& graph) {
  const std::optional<NodeId> ids = graph.find("input_ids");
  if (!ids) return std::nullopt;
  const Shape& shape = graph.types(*ids)[0].shape;
  return shape.size() == 2 && shape[1].is_constant() ? std::optional(shape[1].constant())
                                                     : std::nullopt;
}

SymbolValues batch_sizes(const Graph& graph, const CompilationOptions& options) {
  const SymbolValues known = {{"B", options.rows},
                              {"L", options.length},
                              {"S", options.rows},
                              {"T", options.rows * options.length}};
  SymbolValues sizes;
  for (const std::string& symbol : graph.symbols()) {
    const auto size = known.find(symbol);
    if (size == known.end()) fail("size {} of the model's inputs is not known", symbol);
    sizes.insert(*size);
  }
  return sizes;
}

Feed batch_feed(const Graph& graph, const CompilationOptions& options, const SymbolValues& sizes) {
  Feed feed = bench::made_up_feed(graph, sizes, options.seed);
  if (feed.contains("offsets")) {
    std::vector<std::int32_t> offsets;
    for (std::int64_t row = 0; row <= options.rows; ++row)
      offsets.push_back(static_cast<std::int32_t>(row * options.length));
    feed["offsets"] =
        Tensor::from<std::int32_t>({options.rows + 1}, std::span<const std::int32_t>(offsets));
  }
  if (feed.contains("random")) feed["random"] = Tensor::from<std::int32_t>({3}, {1, 0, 1});
  if (feed.contains("learning_rate")) feed["learning_rate"] = Tensor::from<float>({}, {1e-5f});
  return feed;
}

void note_nodes(const Graph& graph, const SymbolValues& sizes, Compilation& result) {
  for (const NodeId id : graph.topological_order()) {
    if (graph.op(id).is_source || graph.op(id).is_alias) continue;
    ++result.nodes;
    for (const Value& operand : graph.inputs(id))
      if (!operand.is_none()) result.node_bytes += value_of(graph.type(operand).num_bytes(), sizes);
    for (const Type& type : graph.types(id)) result.node_bytes += value_of(type.num_bytes(), sizes);
  }
}

}  // namespace

double value_of(const Size& size, const SymbolValues& sizes) {
  for (const std::string& symbol : size.symbols())
    if (!sizes.contains(symbol)) return 0;
  return static_cast<double>(size.evaluate(sizes));
}

Compilable load_for_compilation(const CompilationOptions& given) {
  CompilationOptions options = given;
  if (options.rows < 1) fail("rows {}: expected 1 or more", options.rows);
  if (options.length < 0) fail("length {}: expected 0 or more", options.length);
  io::Model model = io::load_model(
      options.model,
      {.task = options.task, .seed = options.seed, .with_masters = options.is_training});
  const std::int64_t longest = train::max_length(model);
  if (options.length == 0)
    options.length = longest > 0 ? std::min(kUsualLength, longest) : kUsualLength;
  if (longest > 0 && options.length > longest)
    fail("length {}: expected 1 to {}, the model's longest sequence", options.length, longest);
  if (options.is_training) compress::unpack_model(model);  // as training itself does
  Compilable result{model.graph, model.state, {}, {}};
  if (options.is_training) result.graph = train::make_training_graph(model, {}, result.state).graph;
  result.sizes = batch_sizes(result.graph, options);
  if (given.length > 0 && !result.sizes.contains("L") && !result.sizes.contains("T")) {
    const std::optional<std::int64_t> fixed = fixed_length(model.graph);
    if (!fixed) fail("length {}: the inputs of {} have no length", given.length, options.model);
    if (given.length != *fixed)
      fail("length {}: the inputs of {} have a fixed length, which is {}", given.length,
           options.model, *fixed);
  }
  if (options.simulates && result.graph.nodes_of("decode").empty())
    fail("simulate: {} multiplies floats anyway",
         options.is_training ? "training" : "a model without packed weights");
  result.feed = batch_feed(result.graph, options, result.sizes);
  return result;
}

double Compilation::kernel_bytes() const {
  double total = 0;
  for (const CompiledKernel& kernel : kernels) total += kernel.bytes;
  return total;
}

double Compilation::share_of_roofline(const CompiledKernel& kernel) const {
  if (kernel.seconds <= 0 || peak_flops <= 0 || bandwidth <= 0) return 0;
  const double least = std::max(kernel.flops / peak_flops, kernel.bytes / bandwidth);
  return least / (kernel.seconds / threads);
}

Compilation compile(const CompilationOptions& options, const engine::ExecutionOptions& execution,
                    const Callbacks& callbacks) {
  auto [graph, state, sizes, feed] = load_for_compilation(options);
  Compilation result;
  result.threads = execution.pool == nullptr ? 1 : execution.pool->num_threads();
  note_nodes(graph, sizes, result);
  const engine::Backend& backend = engine::find_backend(execution.device);
  callbacks.tell({"compiling", "steps", 0, 1});
  if (backend.plan != nullptr) {
    const auto begin = Clock::now();
    backend.plan(graph, execution);
    result.plan_seconds = since(begin);
  }
  result.unfused = engine::explain_unfused(engine::lower(graph, backend));
  const auto start = Clock::now();
  const auto executor = engine::make_executor(graph, std::move(state), execution);
  result.seconds = since(start);
  executor->run(feed);  // lays the arena out
  if (options.is_measured) {
    executor->set_timing(true);
    result.run_seconds = 1e30;
    for (int round = 0; round < options.rounds; ++round) {
      bench::check_stop(callbacks);
      const auto begin = Clock::now();
      executor->run(feed);
      result.run_seconds = std::min(result.run_seconds, since(begin));
    }
    result.peak_flops = bench::product_peak(execution, callbacks);
    result.bandwidth = bench::copy_bandwidth(execution, callbacks);
  }
  const engine::PlanReport report = executor->report();
  if (report.steps.empty() && result.nodes > 0)
    fail("device {} makes no plan, it runs node by node: expected cpu or cuda", backend.name);
  result.arena_bytes = report.arena_bytes;
  result.unshared_bytes = report.arena_bytes_unshared;
  for (const engine::PlannedStep& step : report.steps) {
    if (step.is_for_states) continue;
    result.kernels.push_back({.kernel = kernel_text(step),
                              .name = step.name,
                              .layout = step.layout,
                              .stage_reason = step.stage_reason,
                              .choice_reason = step.choice.reason,
                              .origins = step.origins,
                              .stage = step.stage,
                              .flops = value_of(step.flops, report.last_sizes),
                              .bytes = value_of(step.bytes, report.last_sizes),
                              .seconds = step.seconds / options.rounds});
  }
  return result;
}

}  // namespace lathe::experiment

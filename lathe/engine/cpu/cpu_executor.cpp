#include "lathe/engine/cpu/cpu_executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "lathe/core/pass.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/bound_value.h"
#include "lathe/engine/cpu/cpu_machine.h"
#include "lathe/engine/cpu/cpu_measure.h"
#include "lathe/engine/cpu/split_images.h"
#include "lathe/engine/cpu/winograd.h"
#include "lathe/engine/format_precision.h"
#include "lathe/engine/idle_masks.h"
#include "lathe/engine/integer_products.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/origin.h"
#include "lathe/engine/parameter_graph.h"
#include "lathe/engine/symbol_binding.h"

namespace lathe::engine {
namespace {

constexpr const char* kUnfused = "cpu-unfused";

// Lets reports say that a layer computes the norm behind it too.
void fold_batch_norms(Graph& graph) {
  std::map<std::string, std::string> norms;  // by layer
  for (const NodeId id : graph.nodes_of("batch_norm"))
    norms[graph.name(graph.input(id, 0).node)] = graph.name(id);
  if (run_pass("fold-batch-norm", graph) == 0) return;
  for (const auto& [layer, norm] : norms)
    if (!graph.find(norm)) graph.annotation<Origin>(graph.at(layer)).nodes = {layer, norm};
}

bool has_kernel(const Graph& graph, NodeId id) {
  return graph.op(id).is_alias || make_own_step(graph, id) != nullptr;
}

// Weights that floats are multiplied with stay packed too, in float32: the bits are the same.
SplitGraph split_for(const Graph& graph, const ExecutionOptions& options) {
  const bool keeps_packed = options.uses_integers && options.precision == Precision::Float32;
  return split_parameters(graph, keeps_packed ? find_kept_weights(graph) : std::set<NodeId>());
}

CpuPlan plan_main(const SplitGraph& split, const ExecutionOptions& options,
                  const CpuPlanOptions& plan_options) {
  Graph lowered = lower(split.main, find_backend(plan_options.fuses ? "cpu" : kUnfused));
  if (!options.plain_convolutions) use_winograd(lowered);
  if (options.precision == Precision::Bf16) round_convolutions(lowered, options.isa);
  return make_cpu_plan(std::move(lowered), options.precision, plan_options);
}

void plan_alone(const Graph& graph, const ExecutionOptions& options) {
  const SplitGraph split =
      split_for(options.uses_integers ? with_integer_products(graph) : graph, options);
  plan_main(split, options, {});
  if (!split.parameters.outputs().empty()) plan_alone(split.parameters, options);
}

}  // namespace

CpuExecutor::CpuExecutor(const Graph& graph, State state, const ExecutionOptions& options,
                         const CpuPlanOptions& plan_options)
    : machine_(std::make_unique<Machine>()) {
  Graph computed = graph;
  // While weights are not split off: a folded one is computed when states change.
  if (computed.state_updates().empty()) fold_batch_norms(computed);
  if (options.uses_integers) {
    machine_->fixed_states = remove_idle_masks(computed, state);
    computed = with_integer_products(computed);
  }
  SplitGraph split = split_for(computed, options);
  Machine& machine = *machine_;
  check_formats(graph, options.precision);
  machine.plan = plan_main(split, options, plan_options);
  machine.bases.resize(machine.plan.slots.size());
  machine.source = graph;
  machine.state = std::move(state);
  machine.kernels = &kernels(options.isa);
  machine.pool = options.pool;
  machine.changes_parameters = changes_parameters(machine.plan.graph);
  if (!split.parameters.outputs().empty()) {
    machine.parameters = std::make_unique<CpuExecutor>(split.parameters, State(), options);
    machine.parameter_sources = std::move(split.sources);
  }
  machine.start();
}

CpuExecutor::~CpuExecutor() = default;

Feed CpuExecutor::run(const Feed& inputs) {
  Machine& machine = *machine_;
  const CpuPlan& plan = machine.plan;
  const auto start = std::chrono::steady_clock::now();
  const SymbolValues sizes = plan.inputs.bind_symbols(inputs);
  machine.plan.doubtful_sizes.check(machine.plan.graph, sizes);
  machine.last_sizes = sizes;
  if (machine.states_changed) {
    machine.compute_parameters();
    machine.prepare_steps();
  }
  machine.run_parts(inputs, sizes);
  Feed outputs = machine.take_outputs();  // a state's value is that before its update
  machine.copy_late_updates();
  machine.states_changed = machine.changes_parameters;
  machine.run_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outputs;
}

State CpuExecutor::state() const {
  // Copies, not shares: the next run writes the machine's own bytes in place.
  State result;
  const std::vector<std::string>& computed = machine_->computed;
  const Graph& graph = machine_->plan.graph;
  for (const auto& [name, tensor] : machine_->state) {
    if (std::find(computed.begin(), computed.end(), name) != computed.end()) continue;
    const std::optional<NodeId> id = graph.find(name);
    if (!id || !graph.state_updates().contains(*id)) {
      result.emplace(name, tensor);
      continue;
    }
    Tensor copy(tensor.dtype(), tensor.dims());
    std::memcpy(copy.mutable_bytes(), tensor.bytes(), static_cast<std::size_t>(tensor.num_bytes()));
    result.emplace(name, std::move(copy));
  }
  return result;
}

void CpuExecutor::set_state(const State& values) {
  Machine& machine = *machine_;
  check_new_state(machine.source, values);
  for (const auto& [name, tensor] : values)
    check(!machine.fixed_states.contains(name), "masks that hide zeros to stay as they are");
  const Graph& graph = machine.plan.graph;
  for (const auto& [name, tensor] : values) {
    Tensor& kept = machine.state.find(name)->second;
    kept = tensor;
    const std::optional<NodeId> id = graph.find(name);
    if (!id) continue;  // only other states are computed from it
    if (graph.state_updates().contains(*id)) kept.mutable_bytes();
    machine.bases[machine.plan.slot({*id, 0})] = kept.bytes();
  }
  machine.states_changed = true;
}

void CpuExecutor::set_timing(bool on) {
  machine_->timing = on;
  if (machine_->parameters != nullptr) machine_->parameters->set_timing(on);
  std::fill(machine_->seconds.begin(), machine_->seconds.end(), 0.0);
  machine_->clock.reset();
  if (on) machine_->clock.emplace(machine_->plan.stages.size(), machine_->num_threads());
  machine_->run_seconds = 0;
}

namespace {

const Register registration{Backend{
    .name = "cpu",
    .summary = "a plan of fused vector kernels in one memory arena",
    .can_run = has_kernel,
    .make = [](const Graph& graph, State state,
               const ExecutionOptions& options) -> std::unique_ptr<Executor> {
      return std::make_unique<CpuExecutor>(graph, std::move(state), options);
    },
    .plan = plan_alone,
    .measure = make_cpu_measure,
    .precisions = {Precision::Float32, Precision::Bf16},
}};

// What fusion gains is measured against this.
const Register unfused{Backend{
    .name = kUnfused,
    .summary = "a kernel for every node, and every value in memory: to compare with",
    // An op that exists only when it is fused has no definition.
    .can_run = [](const Graph& graph,
                  NodeId id) { return graph.op(id).reference != nullptr && has_kernel(graph, id); },
    .make = [](const Graph& graph, State state,
               const ExecutionOptions& options) -> std::unique_ptr<Executor> {
      return std::make_unique<CpuExecutor>(graph, std::move(state), options,
                                           CpuPlanOptions{.fuses = false});
    },
    .precisions = {Precision::Float32},
}};

}  // namespace
}  // namespace lathe::engine

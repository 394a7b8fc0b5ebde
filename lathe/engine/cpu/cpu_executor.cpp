#include "lathe/engine/cpu/cpu_executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "lathe/core/graph_text.h"
#include "lathe/engine/cpu/cpu_measure.h"
#include "lathe/engine/cpu/cpu_plan.h"
#include "lathe/engine/format_precision.h"
#include "lathe/engine/integer_products.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/memory_plan.h"
#include "lathe/engine/origin.h"
#include "lathe/engine/parameter_graph.h"
#include "lathe/engine/symbol_binding.h"

namespace lathe::engine {
namespace {

// Sums over rows are made by groups of tiles, each into its own copy, and the copies are added in
// order. How many groups follows from the extents alone, so that the bits do not depend on threads:
// enough for the cores we expect, few enough for the copies to stay small.
constexpr std::int64_t kMostGroups = 16;
constexpr std::int64_t kTilesOfGroup = 4;
constexpr std::int64_t kMostSumBytes = std::int64_t{64} << 20;
constexpr std::int64_t kSumGrain = 1 << 14;
constexpr std::int64_t kLeastTileRows = 8;

std::int64_t num_groups(std::int64_t tiles, std::int64_t sum_bytes) {
  const std::int64_t by_memory =
      std::max<std::int64_t>(1, kMostSumBytes / std::max<std::int64_t>(1, sum_bytes));
  return std::clamp<std::int64_t>(tiles / kTilesOfGroup, 1, std::min(kMostGroups, by_memory));
}

}  // namespace

struct CpuExecutor::Machine {
  CpuPlan plan;
  Graph source;  // as the user wrote it: says what its states are
  State state;   // keeps the weights alive that packed steps and `bases` point to
  // Computes the states of the graph that come from others; empty where there are none.
  std::unique_ptr<CpuExecutor> parameters;
  std::vector<std::string> parameter_sources, computed;
  const Kernels* kernels = nullptr;
  ThreadPool* pool = nullptr;
  std::vector<const std::byte*> bases;  // of each slot, those of tiles excepted
  SymbolValues capacity, last_sizes;
  std::int64_t unshared_bytes = 0;
  AlignedBuffer arena;
  std::vector<AlignedBuffer> scratch;
  std::vector<AlignedBuffer> group_sums;  // one for each group of tiles
  bool states_changed = false;
  bool timing = false;
  std::vector<double> seconds;  // [thread][step]

  void start();
  void compute_parameters();
  void prepare_steps();
  void ensure_capacity(const SymbolValues& sizes);
  void run(const Stage& stage, const SymbolValues& sizes);
  void run_rows(const Stage& stage, const SymbolValues& sizes);
  std::int64_t rows_of_tile(const Stage& stage, std::int64_t rows) const;
  ProductExtents extents(const Product& product, const SymbolValues& sizes) const;
  Partition partition(const PlanStep& planned, const ProductExtents& extents) const;
  std::string layout(const PlanStep& planned) const;
  Size bytes(const PlanStep& planned) const;
  void run_groups(const Stage& stage, std::int64_t rows, std::int64_t tiles);
  void run_tile(const Stage& stage, std::int64_t begin, std::int64_t rows, int thread,
                std::byte* sums);
  void run_products(const Stage& stage, const SymbolValues& sizes);
  void run_whole(const Stage& stage, const SymbolValues& sizes);
  void parallel(std::int64_t tasks, const std::function<void(std::int64_t, int)>& task);

  // Where the scratch of a stage's steps begins, behind its tiles.
  static std::int64_t step_scratch(const Stage& stage) {
    constexpr std::int64_t kLine = 64;
    return (stage.tile_bytes + kLine - 1) / kLine * kLine;
  }
  int num_threads() const { return pool != nullptr ? pool->num_threads() : 1; }
  double& seconds_of(int thread, std::size_t step) {
    return seconds[static_cast<std::size_t>(thread) * plan.steps.size() + step];
  }
  const std::byte* base(int slot) const { return bases[static_cast<std::size_t>(slot)]; }
  // Where a step writes, or a state's update goes; inputs and other states are only ever read.
  std::byte* written(int slot) const { return const_cast<std::byte*>(base(slot)); }
};

void CpuExecutor::Machine::start() {
  // Bound states are written by every run: their bytes must be this machine's alone.
  for (const auto& [slot, value] : plan.graph.state_updates())
    state.find(plan.graph.name(slot))->second.mutable_bytes();
  compute_parameters();
  for (const NodeId id : plan.graph.nodes_of("state"))
    bases[plan.slot({id, 0})] = state.find(plan.graph.name(id))->second.bytes();
  scratch.resize(static_cast<std::size_t>(num_threads()));
  seconds.assign(static_cast<std::size_t>(num_threads()) * plan.steps.size(), 0.0);
  prepare_steps();
}

void CpuExecutor::Machine::compute_parameters() {
  if (parameters == nullptr) return;
  Feed feed;
  for (const std::string& name : parameter_sources) feed.emplace(name, state.find(name)->second);
  computed.clear();
  for (auto& [name, tensor] : parameters->run(feed)) {
    computed.push_back(name);
    state[name] = std::move(tensor);
    bases[plan.slot({plan.graph.at(name), 0})] = state.find(name)->second.bytes();
  }
}

void CpuExecutor::Machine::prepare_steps() {
  parallel(static_cast<std::int64_t>(plan.steps.size()), [&](std::int64_t index, int) {
    PlanStep& planned = plan.steps[static_cast<std::size_t>(index)];
    std::vector<const Tensor*> states;
    for (const Value& value : plan.graph.inputs(planned.node)) {
      const bool is_state = !value.is_none() && plan.graph.is(value.node, "state");
      states.push_back(is_state ? &state.find(plan.graph.name(value.node))->second : nullptr);
    }
    planned.step->prepare(*kernels, states);
  });
  states_changed = false;
}

void CpuExecutor::Machine::ensure_capacity(const SymbolValues& sizes) {
  bool grew = arena.size() == 0;
  SymbolValues grown = capacity;
  for (const auto& [symbol, value] : sizes) {
    std::int64_t& most = grown[symbol];
    grew = grew || value > most;
    most = std::max(most, value);
  }
  if (!grew) return;
  std::vector<Lifetime> lifetimes;
  unshared_bytes = 0;
  for (const std::size_t index : plan.arena_slots) {
    const Slot& slot = plan.slots[index];
    const std::int64_t bytes = slot.type.num_bytes().evaluate(grown);
    unshared_bytes += bytes;
    lifetimes.push_back({slot.first, slot.last, bytes});
  }
  const MemoryPlan layout = plan_memory(lifetimes);
  arena.reserve(std::max<std::int64_t>(layout.total, 64));
  for (const std::size_t index : plan.arena_slots)
    bases[index] = arena.data() + layout.offsets[plan.slots[index].arena_index];
  capacity = std::move(grown);  // not before there is room: this run may end above
}

void CpuExecutor::Machine::parallel(std::int64_t tasks,
                                    const std::function<void(std::int64_t, int)>& task) {
  if (pool != nullptr) {
    pool->run(tasks, task);
    return;
  }
  for (std::int64_t index = 0; index < tasks; ++index) task(index, 0);
}

void CpuExecutor::Machine::run_rows(const Stage& stage, const SymbolValues& sizes) {
  const std::int64_t rows = stage.rows.evaluate(sizes);
  const std::int64_t tile_rows = rows_of_tile(stage, rows);
  const std::int64_t tiles = (rows + tile_rows - 1) / tile_rows;
  std::int64_t step_bytes = 0;
  for (const std::size_t index : stage.steps)
    step_bytes = std::max(
        step_bytes, plan.steps[index].step->scratch_bytes(*kernels, std::min(rows, tile_rows)));
  for (AlignedBuffer& buffer : scratch) buffer.reserve(step_scratch(stage) + step_bytes);
  if (!stage.sums.empty()) {
    run_groups(stage, rows, tiles);
    return;
  }
  parallel(tiles, [&](std::int64_t tile, int thread) {
    const std::int64_t begin = tile * tile_rows;
    run_tile(stage, begin, std::min(tile_rows, rows - begin), thread, nullptr);
  });
}

// Few rows are shared among all threads. A row has the same bits in every tile, but what is summed
// over rows has not: there the tiles are the plan's.
std::int64_t CpuExecutor::Machine::rows_of_tile(const Stage& stage, std::int64_t rows) const {
  if (!stage.sums.empty()) return stage.tile_rows;
  const std::int64_t share = (rows + num_threads() - 1) / num_threads();
  return std::min(stage.tile_rows, std::max(share, kLeastTileRows));
}

void CpuExecutor::Machine::run_groups(const Stage& stage, std::int64_t rows, std::int64_t tiles) {
  const std::int64_t groups = num_groups(tiles, stage.sum_bytes);
  if (static_cast<std::int64_t>(group_sums.size()) < groups)
    group_sums.resize(static_cast<std::size_t>(groups));
  parallel(groups, [&](std::int64_t group, int thread) {
    AlignedBuffer& sums = group_sums[static_cast<std::size_t>(group)];
    sums.reserve(stage.sum_bytes);
    std::memset(sums.data(), 0, static_cast<std::size_t>(stage.sum_bytes));
    for (std::int64_t tile = tiles * group / groups; tile < tiles * (group + 1) / groups; ++tile) {
      const std::int64_t begin = tile * stage.tile_rows;
      run_tile(stage, begin, std::min(stage.tile_rows, rows - begin), thread, sums.data());
    }
  });
  // Add the groups' copies, group by group for each element.
  for (const int index : stage.sums) {
    const Slot& slot = plan.slots[static_cast<std::size_t>(index)];
    const std::int64_t count = slot.type.num_elements().constant();
    auto* const total = reinterpret_cast<float*>(written(index));
    parallel((count + kSumGrain - 1) / kSumGrain, [&](std::int64_t chunk, int) {
      const std::int64_t first = chunk * kSumGrain, last = std::min(count, first + kSumGrain);
      const auto copy = [&](std::int64_t group) {
        return reinterpret_cast<const float*>(group_sums[static_cast<std::size_t>(group)].data() +
                                              slot.sum_offset);
      };
      std::memcpy(total + first, copy(0) + first,
                  static_cast<std::size_t>(last - first) * sizeof(float));
      for (std::int64_t group = 1; group < groups; ++group) {
        const float* const more = copy(group);
        for (std::int64_t i = first; i < last; ++i) total[i] += more[i];
      }
    });
  }
}

void CpuExecutor::Machine::run_tile(const Stage& stage, std::int64_t begin, std::int64_t rows,
                                    int thread, std::byte* sums) {
  std::byte* const local = scratch[static_cast<std::size_t>(thread)].data();
  const auto locate = [&](int index, std::int64_t width) -> std::byte* {
    if (index < 0) return nullptr;
    const Slot& slot = plan.slots[static_cast<std::size_t>(index)];
    if (slot.kind == Slot::Kind::Tile) return local + slot.tile_offset;
    // The width is this step's: another stage may walk the same bytes in other rows under the name
    // of a reshape.
    return written(index) + begin * width * size_of(slot.type.dtype);
  };
  std::array<const std::byte*, CpuPlan::kMaxOperands> inputs;
  std::array<std::byte*, CpuPlan::kMaxOperands> outputs;
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = plan.steps[index];
    const RowSpace& space = *planned.step->rows();
    for (std::size_t i = 0; i < planned.inputs.size(); ++i)
      inputs[i] = locate(planned.inputs[i], space.input_widths[i]);
    for (std::size_t i = 0; i < planned.outputs.size(); ++i) {
      const Slot& slot = plan.slots[static_cast<std::size_t>(planned.outputs[i])];
      outputs[i] = space.output_widths[i] == 0 ? sums + slot.sum_offset
                                               : locate(planned.outputs[i], space.output_widths[i]);
    }
    const auto start =
        timing ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    try {
      planned.step->run_rows({*kernels,
                              rows,
                              {inputs.data(), planned.inputs.size()},
                              {outputs.data(), planned.outputs.size()},
                              local + step_scratch(stage)});
    } catch (const UserError& error) {
      throw error.at(fmt::format("node \"{}\"", plan.graph.name(planned.node)));
    }
    if (timing)
      seconds_of(thread, index) +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
}

ProductExtents CpuExecutor::Machine::extents(const Product& product,
                                             const SymbolValues& sizes) const {
  return {product.rows.evaluate(sizes), product.columns.evaluate(sizes),
          product.depth.evaluate(sizes)};
}

Partition CpuExecutor::Machine::partition(const PlanStep& planned,
                                          const ProductExtents& extents) const {
  return make_partition(extents, planned.step->block_grain(*kernels), num_threads(),
                        planned.step->block_limits());
}

// How the last run cut a step's work; empty before the first, and where the step cuts it itself.
std::string CpuExecutor::Machine::layout(const PlanStep& planned) const {
  const Stage& stage = plan.stages[static_cast<std::size_t>(planned.stage)];
  if (last_sizes.empty() || stage.kind == Stage::Kind::Whole) return {};
  if (stage.kind == Stage::Kind::Rows)
    return fmt::format("tiles of {} rows", rows_of_tile(stage, stage.rows.evaluate(last_sizes)));
  const Partition cut = partition(planned, extents(*planned.step->as_product(), last_sizes));
  const Block block = cut.largest();
  return fmt::format("{} blocks of {} x {}", cut.count(), block.rows, block.columns);
}

Size CpuExecutor::Machine::bytes(const PlanStep& planned) const {
  Size total;
  for (const std::vector<int>* list : {&planned.inputs, &planned.outputs})
    for (const int index : *list)
      if (index >= 0 && plan.slots[static_cast<std::size_t>(index)].kind != Slot::Kind::Tile)
        total += plan.slots[static_cast<std::size_t>(index)].type.num_bytes();
  return total;
}

void CpuExecutor::Machine::run_products(const Stage& stage, const SymbolValues& sizes) {
  struct Part {
    std::size_t index = 0;
    const PlanStep* planned = nullptr;
    ProductExtents extents;
    Partition partition;
    std::int64_t end = 0;  // of its blocks among those of all parts
    std::array<const std::byte*, CpuPlan::kMaxOperands> inputs = {};
    std::array<std::byte*, CpuPlan::kMaxOperands> outputs = {};
  };
  std::vector<Part> parts;
  parts.reserve(stage.steps.size());
  std::int64_t blocks = 0, bytes = 0;
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = plan.steps[index];
    const ProductExtents whole = extents(*planned.step->as_product(), sizes);
    const Partition cut = partition(planned, whole);
    blocks += cut.count();
    bytes = std::max(bytes, planned.step->block_scratch_bytes(*kernels, cut.largest()));
    Part& part = parts.emplace_back(Part{index, &planned, whole, cut, blocks});
    for (std::size_t i = 0; i < planned.inputs.size(); ++i)
      part.inputs[i] = planned.inputs[i] < 0 ? nullptr : base(planned.inputs[i]);
    for (std::size_t i = 0; i < planned.outputs.size(); ++i)
      part.outputs[i] = written(planned.outputs[i]);
  }
  for (AlignedBuffer& buffer : scratch) buffer.reserve(bytes);
  parallel(blocks, [&](std::int64_t task, int thread) {
    const auto part = std::upper_bound(parts.begin(), parts.end(), task,
                                       [](std::int64_t at, const Part& p) { return at < p.end; });
    const auto start =
        timing ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    part->planned->step->run_block(
        {*kernels,
         part->extents,
         part->partition.block(task - (part->end - part->partition.count())),
         {part->inputs.data(), part->planned->inputs.size()},
         {part->outputs.data(), part->planned->outputs.size()},
         scratch[static_cast<std::size_t>(thread)].data()});
    if (timing)
      seconds_of(thread, part->index) +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
}

void CpuExecutor::Machine::run_whole(const Stage& stage, const SymbolValues& sizes) {
  const std::function<void(std::int64_t, const std::function<void(std::int64_t, int)>&)>
      run_parallel = [&](std::int64_t tasks, const std::function<void(std::int64_t, int)>& task) {
        parallel(tasks, task);
      };
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = plan.steps[index];
    std::array<const std::byte*, CpuPlan::kMaxOperands> inputs;
    std::array<std::byte*, CpuPlan::kMaxOperands> outputs;
    for (std::size_t i = 0; i < planned.inputs.size(); ++i)
      inputs[i] = planned.inputs[i] < 0 ? nullptr : base(planned.inputs[i]);
    for (std::size_t i = 0; i < planned.outputs.size(); ++i)
      outputs[i] = written(planned.outputs[i]);
    const auto start =
        timing ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    with_place(fmt::format("node \"{}\"", plan.graph.name(planned.node)), [&] {
      planned.step->run_whole({*kernels,
                               plan.graph,
                               planned.node,
                               sizes,
                               {inputs.data(), planned.inputs.size()},
                               {outputs.data(), planned.outputs.size()},
                               scratch,
                               run_parallel});
    });
    // A whole step keeps all threads busy, so its wall time counts once for each.
    if (timing)
      seconds_of(0, index) +=
          num_threads() *
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
}

void CpuExecutor::Machine::run(const Stage& stage, const SymbolValues& sizes) {
  switch (stage.kind) {
    case Stage::Kind::Rows:
      return run_rows(stage, sizes);
    case Stage::Kind::Products:
      return run_products(stage, sizes);
    case Stage::Kind::Whole:
      return run_whole(stage, sizes);
  }
}

CpuExecutor::CpuExecutor(const Graph& graph, State state, const ExecutionOptions& options)
    : machine_(std::make_unique<Machine>()) {
  const Graph computed = options.uses_integers ? with_integer_products(graph) : graph;
  // Weights that floats are multiplied with stay packed too, in float32: the bits are the same.
  const bool keeps_packed = options.uses_integers && options.precision == Precision::Float32;
  SplitGraph split =
      split_parameters(computed, keeps_packed ? find_packed_linears(computed) : std::set<NodeId>());
  Machine& machine = *machine_;
  check_formats(graph, options.precision);
  machine.plan = make_cpu_plan(lower(split.main, find_backend("cpu")), options.precision);
  machine.bases.resize(machine.plan.slots.size());
  machine.source = graph;
  machine.state = std::move(state);
  machine.kernels = &kernels(options.isa);
  machine.pool = options.pool;
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
  const SymbolValues sizes = bind_symbols(plan.graph, inputs);
  machine.plan.doubtful_sizes.check(machine.plan.graph, sizes);
  machine.last_sizes = sizes;
  machine.ensure_capacity(sizes);
  if (machine.states_changed) {
    machine.compute_parameters();
    machine.prepare_steps();
  }
  for (const NodeId id : plan.graph.nodes_of("input"))
    machine.bases[plan.slot({id, 0})] = inputs.find(plan.graph.name(id))->second.bytes();
  for (const Stage& stage : plan.stages) machine.run(stage, sizes);
  Feed outputs;
  for (const auto& [name, value] : plan.graph.outputs()) {
    const Type& type = plan.graph.type(value);
    Tensor tensor(type.dtype, type.dims(sizes));
    std::memcpy(tensor.mutable_bytes(), machine.bases[plan.slot(value)],
                static_cast<std::size_t>(tensor.num_bytes()));
    outputs.emplace(name, std::move(tensor));
  }
  for (const auto& [value, state_slot] : plan.late_updates) {
    const Slot& slot = plan.slots[static_cast<std::size_t>(state_slot)];
    std::memcpy(machine.written(state_slot), machine.base(value),
                static_cast<std::size_t>(slot.type.num_bytes().constant()));
  }
  machine.states_changed = !plan.graph.state_updates().empty();
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
}

PlanReport CpuExecutor::report() const {
  PlanReport report;
  if (machine_->parameters != nullptr) {
    const PlanReport parameters = machine_->parameters->report();
    report.steps = parameters.steps;
    for (PlannedStep& step : report.steps) step.is_for_states = true;
    report.lowered = "# when states change\n" + parameters.lowered + "# in every run\n";
  }
  for (std::size_t i = 0; i < machine_->plan.steps.size(); ++i) {
    const PlanStep& planned = machine_->plan.steps[i];
    PlannedStep step{
        .name = machine_->plan.graph.name(planned.node),
        .op = machine_->plan.graph.op(planned.node).name,
        .origins = {machine_->plan.graph.name(planned.node)},
        .stage = planned.stage,
        .stage_reason = machine_->plan.stages[static_cast<std::size_t>(planned.stage)].reason,
        .layout = machine_->layout(planned),
        .is_reference = planned.step->is_reference(),
        .choice = planned.step->choice(),
        .flops = planned.flops,
        .bytes = machine_->bytes(planned)};
    if (const Origin* origin = machine_->plan.graph.find_annotation<Origin>(planned.node))
      step.origins = origin->nodes;
    for (int thread = 0; thread < machine_->num_threads(); ++thread)
      step.seconds += machine_->seconds_of(thread, i);
    report.steps.push_back(std::move(step));
  }
  report.lowered += print(machine_->plan.graph);
  report.arena_bytes = machine_->arena.size();
  report.arena_bytes_unshared = machine_->unshared_bytes;
  report.capacity = machine_->capacity;
  report.last_sizes = machine_->last_sizes;
  return report;
}

namespace {

const Register registration{Backend{
    .name = "cpu",
    .summary = "a plan of fused vector kernels in one memory arena",
    .can_run =
        [](const Graph& graph, NodeId id) {
          return graph.op(id).is_alias || make_own_step(graph, id) != nullptr;
        },
    .make = [](const Graph& graph, State state,
               const ExecutionOptions& options) -> std::unique_ptr<Executor> {
      return std::make_unique<CpuExecutor>(graph, std::move(state), options);
    },
    .measure = make_cpu_measure,
    .precisions = {Precision::Float32, Precision::Bf16},
}};

}  // namespace
}  // namespace lathe::engine

#include "lathe/engine/cpu/cpu_executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <numeric>

#include "lathe/core/graph_text.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/engine/fusion.h"
#include "lathe/engine/memory_plan.h"
#include "lathe/engine/parameter_graph.h"
#include "lathe/engine/symbol_binding.h"

namespace lathe::engine {
namespace {

// A tile's rows of every value its stage touches should stay in the second-level cache together
// with the weights; more rows would only help the weights' reuse, which is already enough at 42.
constexpr std::int64_t kTileBytes = std::int64_t{384} << 10;
// A multiple of the micro-kernels' 14 and 6 rows, so that full tiles have no ragged edge.
constexpr std::int64_t kTileGrain = 42;
constexpr std::int64_t kMaxTileRows = 8 * kTileGrain;

// Reshapes and identities are other names for the same bytes.
bool is_alias(const Graph& graph, NodeId id) {
  return graph.is(id, "reshape") || graph.is(id, "identity");
}

// Where a value lives.
struct Slot {
  enum class Kind { Input, State, Arena, Tile };
  Kind kind = Kind::Arena;
  Type type;
  std::string name;
  int first = 0, last = 0;       // stages; for Tile, steps inside the stage
  std::int64_t row_bytes = 0;    // set where a row step touches it
  std::int64_t tile_offset = 0;  // Tile
  std::int64_t sum_offset = -1;  // in a group's sums, for what is summed over rows
  std::size_t arena_index = 0;   // Arena
  const std::byte* base = nullptr;
};

struct PlanStep {
  NodeId node;
  std::unique_ptr<Step> step;
  std::vector<int> inputs;  // slots, -1 where absent
  std::vector<int> outputs;
  int stage = 0;
  Size flops;
};

struct Stage {
  bool is_rows = false;
  Size rows;
  std::vector<std::size_t> steps;
  std::int64_t tile_rows = 0;
  std::int64_t tile_bytes = 0;
  std::vector<int> sums;  // slots of results summed over rows
  std::int64_t sum_bytes = 0;
};

constexpr std::size_t kMaxOperands = 64;

// Sums over rows are made by groups of tiles, each into its own copy, and the copies are added in
// order. How many groups follows from the extents alone, so that the bits do not depend on threads:
// enough for the cores we expect, few enough for the copies to stay small.
constexpr std::int64_t kMostGroups = 16;
constexpr std::int64_t kTilesOfGroup = 4;
constexpr std::int64_t kMostSumBytes = std::int64_t{64} << 20;
constexpr std::int64_t kSumGrain = 1 << 14;

std::int64_t num_groups(std::int64_t tiles, std::int64_t sum_bytes) {
  const std::int64_t by_memory =
      std::max<std::int64_t>(1, kMostSumBytes / std::max<std::int64_t>(1, sum_bytes));
  return std::clamp<std::int64_t>(tiles / kTilesOfGroup, 1, std::min(kMostGroups, by_memory));
}

}  // namespace

struct CpuExecutor::Plan {
  Graph graph;
  State state;  // keeps the weights alive that slots and packed steps point to
  // Computes the states of `graph` that come from others; empty where there are none.
  std::unique_ptr<CpuExecutor> parameters;
  std::vector<std::string> parameter_sources, computed;
  const Kernels* kernels = nullptr;
  ThreadPool* pool = nullptr;
  std::vector<Slot> slots;
  std::vector<PlanStep> steps;
  std::vector<Stage> stages;
  std::map<Value, int> slot_of;
  std::vector<std::size_t> arena_slots;
  SymbolValues capacity, last_sizes;
  std::int64_t unshared_bytes = 0;
  AlignedBuffer arena;
  std::vector<AlignedBuffer> scratch;
  std::vector<AlignedBuffer> group_sums;  // one for each group of tiles
  std::vector<std::pair<int, int>>
      late_updates;  // (value, state) slots, copied after the last stage
  bool states_changed = false;
  bool timing = false;
  std::vector<double> seconds;  // [thread][step]

  void build();
  void compute_parameters();
  void make_steps();
  void make_stages();
  void place_values();
  void place_tiles(Stage& stage);
  void ensure_capacity(const SymbolValues& sizes);
  void run_rows(const Stage& stage, const SymbolValues& sizes);
  void run_tile(const Stage& stage, std::int64_t begin, std::int64_t rows, int thread,
                std::byte* sums);
  void run_groups(const Stage& stage, std::int64_t rows, std::int64_t tiles);
  void bind_updates();
  void prepare_steps();
  void run_whole(const Stage& stage, const SymbolValues& sizes);
  void parallel(std::int64_t tasks, const std::function<void(std::int64_t, int)>& task);
  int num_threads() const { return pool != nullptr ? pool->num_threads() : 1; }
  double& seconds_of(int thread, std::size_t step) {
    return seconds[static_cast<std::size_t>(thread) * steps.size() + step];
  }
};

void CpuExecutor::Plan::build() {
  // Bound states are written by every run: their bytes must be this plan's alone.
  for (const auto& [slot, value] : graph.state_updates())
    state.find(graph.name(slot))->second.mutable_bytes();
  compute_parameters();
  make_steps();
  bind_updates();
  make_stages();
  place_values();
  scratch.resize(static_cast<std::size_t>(num_threads()));
  seconds.assign(static_cast<std::size_t>(num_threads()) * steps.size(), 0.0);
  prepare_steps();
}

void CpuExecutor::Plan::compute_parameters() {
  if (parameters == nullptr) return;
  Feed feed;
  for (const std::string& name : parameter_sources) feed.emplace(name, state.find(name)->second);
  computed.clear();
  for (auto& [name, tensor] : parameters->run(feed)) {
    computed.push_back(name);
    state[name] = std::move(tensor);
  }
  if (slots.empty()) return;  // not yet planned: slots will find the bytes where they are
  for (const std::string& name : computed)
    slots[static_cast<std::size_t>(slot_of.at({graph.at(name), 0}))].base =
        state.find(name)->second.bytes();
}

void CpuExecutor::Plan::prepare_steps() {
  parallel(static_cast<std::int64_t>(steps.size()), [&](std::int64_t index, int) {
    PlanStep& planned = steps[static_cast<std::size_t>(index)];
    std::vector<const Tensor*> states;
    for (const Value& value : graph.inputs(planned.node)) {
      const bool is_state = !value.is_none() && graph.is(value.node, "state");
      states.push_back(is_state ? &state.find(graph.name(value.node))->second : nullptr);
    }
    planned.step->prepare(*kernels, states);
  });
  states_changed = false;
}

// A state's update lies in the state itself where its step can do that and nobody reads the old
// value afterwards; any other update is copied at the end.
void CpuExecutor::Plan::bind_updates() {
  for (const auto& [slot, value] : graph.state_updates()) {
    const int state_slot = slot_of.at({slot, 0});
    bool is_in_place = false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].node != value.node) continue;
      for (const InPlace& pair : steps[i].step->in_place()) {
        if (static_cast<std::int32_t>(pair.output) != value.index ||
            graph.input(value.node, pair.input) != Value{slot, 0})
          continue;
        is_in_place = graph.uses(value.node).size() == graph.types(value.node).size();
        for (std::size_t later = i + 1; later < steps.size(); ++later)
          for (const int input : steps[later].inputs)
            is_in_place = is_in_place && input != state_slot;
        if (is_in_place) steps[i].outputs[pair.output] = state_slot;
      }
    }
    if (!is_in_place) late_updates.emplace_back(slot_of.at(value), state_slot);
  }
}

void CpuExecutor::Plan::make_steps() {
  for (const NodeId id : graph.topological_order()) {
    if (is_alias(graph, id)) {
      slot_of[{id, 0}] = slot_of.at(graph.input(id, 0));
      continue;
    }
    std::vector<int> results;
    for (std::size_t i = 0; i < graph.types(id).size(); ++i) {
      const Value value{id, static_cast<std::int32_t>(i)};
      Slot slot;
      slot.type = graph.type(value);
      slot.name = graph.name(value);
      if (graph.is(id, "input")) slot.kind = Slot::Kind::Input;
      if (graph.is(id, "state")) {
        slot.kind = Slot::Kind::State;
        slot.base = state.find(graph.name(id))->second.bytes();
      }
      slot_of[value] = static_cast<int>(slots.size());
      results.push_back(static_cast<int>(slots.size()));
      slots.push_back(std::move(slot));
    }
    if (graph.op(id).is_source) continue;
    PlanStep planned;
    planned.node = id;
    planned.step = make_step(graph, id);
    planned.outputs = results;
    for (const Value& value : graph.inputs(id))
      planned.inputs.push_back(value.is_none() ? -1 : slot_of.at(value));
    check(planned.inputs.size() <= kMaxOperands && results.size() <= kMaxOperands,
          "no more operands than a call can hold");
    if (graph.op(id).flops) planned.flops = graph.op(id).flops(graph.call(id));
    steps.push_back(std::move(planned));
  }
}

void CpuExecutor::Plan::make_stages() {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const RowSpace* space = steps[i].step->rows();
    bool joins = space != nullptr && !stages.empty() && stages.back().is_rows &&
                 stages.back().rows == space->rows;
    // An operand read whole must be complete before the stage begins, and so must a sum over rows.
    for (std::size_t operand = 0; joins && operand < steps[i].inputs.size(); ++operand) {
      if (steps[i].inputs[operand] < 0) continue;
      for (const std::size_t earlier : stages.back().steps) {
        const RowSpace& produced = *steps[earlier].step->rows();
        for (std::size_t output = 0; output < steps[earlier].outputs.size(); ++output)
          if (produced.output_widths[output] == 0 || space->input_widths[operand] == 0)
            joins = joins && steps[earlier].outputs[output] != steps[i].inputs[operand];
      }
    }
    if (!joins) {
      stages.emplace_back();
      stages.back().is_rows = space != nullptr;
      if (space != nullptr) stages.back().rows = space->rows;
    }
    stages.back().steps.push_back(i);
    steps[i].stage = static_cast<int>(stages.size()) - 1;
    if (space == nullptr) continue;
    const auto note_width = [&](int slot, std::int64_t width) {
      if (slot < 0 || width == 0) return;
      Slot& touched = slots[static_cast<std::size_t>(slot)];
      touched.row_bytes = width * size_of(touched.type.dtype);
    };
    for (std::size_t operand = 0; operand < steps[i].inputs.size(); ++operand)
      note_width(steps[i].inputs[operand], space->input_widths[operand]);
    for (std::size_t result = 0; result < steps[i].outputs.size(); ++result)
      note_width(steps[i].outputs[result], space->output_widths[result]);
  }
}

void CpuExecutor::Plan::place_values() {
  const int after_all = static_cast<int>(stages.size());
  std::vector<int> first(slots.size(), after_all), last(slots.size(), -1);
  for (const PlanStep& planned : steps) {
    for (const int slot : planned.inputs)
      if (slot >= 0) last[static_cast<std::size_t>(slot)] = planned.stage;
    for (const int slot : planned.outputs) {
      first[static_cast<std::size_t>(slot)] = planned.stage;
      last[static_cast<std::size_t>(slot)] =
          std::max(last[static_cast<std::size_t>(slot)], planned.stage);
    }
  }
  for (const auto& [name, value] : graph.outputs())
    last[static_cast<std::size_t>(slot_of.at(value))] = after_all;
  for (const auto& [value, state_slot] : late_updates)
    last[static_cast<std::size_t>(value)] = after_all;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Slot& slot = slots[i];
    if (slot.kind != Slot::Kind::Arena) continue;
    slot.first = first[i];
    slot.last = last[i];
    // A value that never leaves its stage needs room for one tile only, in each thread's scratch.
    if (slot.first == slot.last && slot.row_bytes > 0 &&
        stages[static_cast<std::size_t>(slot.first)].is_rows) {
      slot.kind = Slot::Kind::Tile;
      continue;
    }
    slot.arena_index = arena_slots.size();
    arena_slots.push_back(i);
  }
  for (Stage& stage : stages)
    if (stage.is_rows) place_tiles(stage);
}

void CpuExecutor::Plan::place_tiles(Stage& stage) {
  std::vector<std::size_t> touched;
  for (const std::size_t step : stage.steps) {
    for (const int slot : steps[step].inputs)
      if (slot >= 0) touched.push_back(static_cast<std::size_t>(slot));
    for (const int slot : steps[step].outputs) touched.push_back(static_cast<std::size_t>(slot));
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  std::int64_t row_bytes = 1;
  for (const std::size_t slot : touched) row_bytes += slots[slot].row_bytes;
  stage.tile_rows =
      std::clamp(kTileBytes / row_bytes / kTileGrain * kTileGrain, kTileGrain, kMaxTileRows);

  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> local;
  for (const std::size_t slot : touched) {
    if (slots[slot].kind != Slot::Kind::Tile) continue;
    Lifetime lifetime{static_cast<int>(stage.steps.size()), 0,
                      stage.tile_rows * slots[slot].row_bytes};
    for (std::size_t position = 0; position < stage.steps.size(); ++position) {
      const PlanStep& planned = steps[stage.steps[position]];
      const auto uses = [&](const std::vector<int>& list) {
        return std::find(list.begin(), list.end(), static_cast<int>(slot)) != list.end();
      };
      if (!uses(planned.inputs) && !uses(planned.outputs)) continue;
      lifetime.first = std::min(lifetime.first, static_cast<int>(position));
      lifetime.last = std::max(lifetime.last, static_cast<int>(position));
    }
    lifetimes.push_back(lifetime);
    local.push_back(slot);
  }
  const MemoryPlan layout = plan_memory(lifetimes);
  for (std::size_t i = 0; i < local.size(); ++i) slots[local[i]].tile_offset = layout.offsets[i];
  stage.tile_bytes = layout.total;

  for (const std::size_t step : stage.steps) {
    const RowSpace& space = *steps[step].step->rows();
    for (std::size_t i = 0; i < steps[step].outputs.size(); ++i) {
      if (space.output_widths[i] != 0) continue;
      Slot& slot = slots[static_cast<std::size_t>(steps[step].outputs[i])];
      check(slot.type.dtype == DType::F32 && slot.type.num_elements().is_constant(),
            "sums over rows to be floats of constant shape");
      slot.sum_offset = stage.sum_bytes;
      stage.sum_bytes += (slot.type.num_bytes().constant() + 63) / 64 * 64;
      stage.sums.push_back(steps[step].outputs[i]);
    }
  }
}

void CpuExecutor::Plan::ensure_capacity(const SymbolValues& sizes) {
  bool grew = arena.size() == 0;
  for (const auto& [symbol, value] : sizes) {
    std::int64_t& most = capacity[symbol];
    grew = grew || value > most;
    most = std::max(most, value);
  }
  if (!grew) return;
  std::vector<Lifetime> lifetimes;
  unshared_bytes = 0;
  for (const std::size_t index : arena_slots) {
    const Slot& slot = slots[index];
    const std::int64_t bytes = slot.type.num_bytes().evaluate(capacity);
    unshared_bytes += bytes;
    lifetimes.push_back({slot.first, slot.last, bytes});
  }
  const MemoryPlan layout = plan_memory(lifetimes);
  arena.reserve(std::max<std::int64_t>(layout.total, 64));
  for (const std::size_t index : arena_slots)
    slots[index].base = arena.data() + layout.offsets[slots[index].arena_index];
}

void CpuExecutor::Plan::parallel(std::int64_t tasks,
                                 const std::function<void(std::int64_t, int)>& task) {
  if (pool != nullptr) {
    pool->run(tasks, task);
    return;
  }
  for (std::int64_t index = 0; index < tasks; ++index) task(index, 0);
}

void CpuExecutor::Plan::run_rows(const Stage& stage, const SymbolValues& sizes) {
  const std::int64_t rows = stage.rows.evaluate(sizes);
  const std::int64_t tiles = (rows + stage.tile_rows - 1) / stage.tile_rows;
  for (AlignedBuffer& buffer : scratch) buffer.reserve(stage.tile_bytes);
  if (!stage.sums.empty()) {
    run_groups(stage, rows, tiles);
    return;
  }
  parallel(tiles, [&](std::int64_t tile, int thread) {
    const std::int64_t begin = tile * stage.tile_rows;
    run_tile(stage, begin, std::min(stage.tile_rows, rows - begin), thread, nullptr);
  });
}

void CpuExecutor::Plan::run_groups(const Stage& stage, std::int64_t rows, std::int64_t tiles) {
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
    const Slot& slot = slots[static_cast<std::size_t>(index)];
    const std::int64_t count = slot.type.num_elements().constant();
    auto* const total = reinterpret_cast<float*>(const_cast<std::byte*>(slot.base));
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

void CpuExecutor::Plan::run_tile(const Stage& stage, std::int64_t begin, std::int64_t rows,
                                 int thread, std::byte* sums) {
  std::byte* const local = scratch[static_cast<std::size_t>(thread)].data();
  const auto locate = [&](int index, std::int64_t width) -> std::byte* {
    if (index < 0) return nullptr;
    const Slot& slot = slots[static_cast<std::size_t>(index)];
    if (slot.kind == Slot::Kind::Tile) return local + slot.tile_offset;
    // Inputs and states are only ever read; the cast serves the shared lambda. The width is this
    // step's: another stage may walk the same bytes in other rows under the name of a reshape.
    return const_cast<std::byte*>(slot.base) + begin * width * size_of(slot.type.dtype);
  };
  std::array<const std::byte*, kMaxOperands> inputs;
  std::array<std::byte*, kMaxOperands> outputs;
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = steps[index];
    const RowSpace& space = *planned.step->rows();
    for (std::size_t i = 0; i < planned.inputs.size(); ++i)
      inputs[i] = locate(planned.inputs[i], space.input_widths[i]);
    for (std::size_t i = 0; i < planned.outputs.size(); ++i) {
      const Slot& slot = slots[static_cast<std::size_t>(planned.outputs[i])];
      outputs[i] = space.output_widths[i] == 0 ? sums + slot.sum_offset
                                               : locate(planned.outputs[i], space.output_widths[i]);
    }
    const auto start =
        timing ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    try {
      planned.step->run_rows({*kernels,
                              rows,
                              {inputs.data(), planned.inputs.size()},
                              {outputs.data(), planned.outputs.size()}});
    } catch (const UserError& error) {
      throw error.at(fmt::format("node \"{}\"", graph.name(planned.node)));
    }
    if (timing)
      seconds_of(thread, index) +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
}

void CpuExecutor::Plan::run_whole(const Stage& stage, const SymbolValues& sizes) {
  const std::function<void(std::int64_t, const std::function<void(std::int64_t, int)>&)>
      run_parallel = [&](std::int64_t tasks, const std::function<void(std::int64_t, int)>& task) {
        parallel(tasks, task);
      };
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = steps[index];
    std::array<const std::byte*, kMaxOperands> inputs;
    std::array<std::byte*, kMaxOperands> outputs;
    for (std::size_t i = 0; i < planned.inputs.size(); ++i)
      inputs[i] =
          planned.inputs[i] < 0 ? nullptr : slots[static_cast<std::size_t>(planned.inputs[i])].base;
    for (std::size_t i = 0; i < planned.outputs.size(); ++i)
      outputs[i] = const_cast<std::byte*>(slots[static_cast<std::size_t>(planned.outputs[i])].base);
    const auto start =
        timing ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    with_place(fmt::format("node \"{}\"", graph.name(planned.node)), [&] {
      planned.step->run_whole({*kernels,
                               graph,
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

CpuExecutor::CpuExecutor(const Graph& graph, State state, const ExecutionOptions& options)
    : plan_(std::make_unique<Plan>()) {
  SplitGraph split = split_parameters(graph);
  plan_->graph = lower(split.main);
  plan_->state = std::move(state);
  plan_->kernels = &kernels(options.isa);
  plan_->pool = options.pool;
  if (!split.parameters.outputs().empty()) {
    plan_->parameters = std::make_unique<CpuExecutor>(split.parameters, State(), options);
    plan_->parameter_sources = std::move(split.sources);
  }
  plan_->build();
}

CpuExecutor::~CpuExecutor() = default;

Feed CpuExecutor::run(const Feed& inputs) {
  Plan& plan = *plan_;
  const SymbolValues sizes = bind_symbols(plan.graph, inputs);
  plan.last_sizes = sizes;
  plan.ensure_capacity(sizes);
  if (plan.states_changed) {
    plan.compute_parameters();
    plan.prepare_steps();
  }
  for (const NodeId id : plan.graph.nodes_of("input"))
    plan.slots[static_cast<std::size_t>(plan.slot_of.at({id, 0}))].base =
        inputs.find(plan.graph.name(id))->second.bytes();
  for (const Stage& stage : plan.stages) {
    if (stage.is_rows)
      plan.run_rows(stage, sizes);
    else
      plan.run_whole(stage, sizes);
  }
  Feed outputs;
  for (const auto& [name, value] : plan.graph.outputs()) {
    const Slot& slot = plan.slots[static_cast<std::size_t>(plan.slot_of.at(value))];
    const Type& type = plan.graph.type(value);
    Tensor tensor(type.dtype, type.dims(sizes));
    std::memcpy(tensor.mutable_bytes(), slot.base, static_cast<std::size_t>(tensor.num_bytes()));
    outputs.emplace(name, std::move(tensor));
  }
  for (const auto& [value, state_slot] : plan.late_updates) {
    const Slot& slot = plan.slots[static_cast<std::size_t>(state_slot)];
    std::memcpy(const_cast<std::byte*>(slot.base), plan.slots[static_cast<std::size_t>(value)].base,
                static_cast<std::size_t>(slot.type.num_bytes().constant()));
  }
  plan.states_changed = !plan.graph.state_updates().empty();
  return outputs;
}

State CpuExecutor::state() const {
  // Copies, not shares: the next run writes the plan's own bytes in place.
  State result;
  const std::vector<std::string>& computed = plan_->computed;
  for (const auto& [name, tensor] : plan_->state) {
    if (std::find(computed.begin(), computed.end(), name) != computed.end()) continue;
    const std::optional<NodeId> id = plan_->graph.find(name);
    if (!id || !plan_->graph.state_updates().contains(*id)) {
      result.emplace(name, tensor);
      continue;
    }
    Tensor copy(tensor.dtype(), tensor.dims());
    std::memcpy(copy.mutable_bytes(), tensor.bytes(), static_cast<std::size_t>(tensor.num_bytes()));
    result.emplace(name, std::move(copy));
  }
  return result;
}

void CpuExecutor::set_timing(bool on) {
  plan_->timing = on;
  if (plan_->parameters != nullptr) plan_->parameters->set_timing(on);
  std::fill(plan_->seconds.begin(), plan_->seconds.end(), 0.0);
}

PlanReport CpuExecutor::report() const {
  PlanReport report;
  if (plan_->parameters != nullptr) {
    const PlanReport parameters = plan_->parameters->report();
    report.steps = parameters.steps;
    report.lowered = "# when states change\n" + parameters.lowered + "# in every run\n";
  }
  for (std::size_t i = 0; i < plan_->steps.size(); ++i) {
    const PlanStep& planned = plan_->steps[i];
    PlannedStep step{.name = plan_->graph.name(planned.node),
                     .op = plan_->graph.op(planned.node).name,
                     .origins = {plan_->graph.name(planned.node)},
                     .stage = planned.stage,
                     .flops = planned.flops};
    if (const Origin* origin = plan_->graph.find_annotation<Origin>(planned.node))
      step.origins = origin->nodes;
    for (int thread = 0; thread < plan_->num_threads(); ++thread)
      step.seconds += plan_->seconds_of(thread, i);
    report.steps.push_back(std::move(step));
  }
  report.lowered += print(plan_->graph);
  report.arena_bytes = plan_->arena.size();
  report.arena_bytes_unshared = plan_->unshared_bytes;
  report.capacity = plan_->capacity;
  report.last_sizes = plan_->last_sizes;
  return report;
}

namespace {

const Register registration{ExecutorKind{
    .name = "cpu",
    .summary = "a plan of fused vector kernels in one memory arena",
    .make = [](const Graph& graph, State state,
               const ExecutionOptions& options) -> std::unique_ptr<Executor> {
      return std::make_unique<CpuExecutor>(graph, std::move(state), options);
    },
}};

}  // namespace
}  // namespace lathe::engine

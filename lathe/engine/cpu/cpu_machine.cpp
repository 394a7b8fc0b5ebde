#include "lathe/engine/cpu/cpu_machine.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "lathe/core/file_memory.h"
#include "lathe/engine/memory_plan.h"

namespace lathe::engine {
namespace {

// Larger results are not kept for the next run.
constexpr std::int64_t kMostKeptBytes = std::int64_t{32} << 20;

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.bytes(), static_cast<std::size_t>(tensor.num_bytes())};
}

}  // namespace

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
  // Where a run changes weights, their values do not decide how they are multiplied, and cuts stay.
  if (cuts.empty() || !changes_parameters) cuts.assign(plan.steps.size(), std::nullopt);
  parallel(static_cast<std::int64_t>(plan.steps.size()), [&](std::int64_t index, int) {
    PlanStep& planned = plan.steps[static_cast<std::size_t>(index)];
    std::vector<const Tensor*> states;
    for (const Value& value : plan.graph.inputs(planned.node)) {
      const bool is_state = !value.is_none() && plan.graph.is(value.node, "state");
      states.push_back(is_state ? &state.find(plan.graph.name(value.node))->second : nullptr);
    }
    planned.step->prepare(*kernels, states);
    // A weight in a file that was laid out anew need not be in memory a second time.
    for (std::size_t i = 0; i < states.size(); ++i)
      if (states[i] != nullptr && !planned.step->reads_state(i)) let_go(bytes_of(*states[i]));
  });
  states_changed = false;
}

// What is in memory for the states: what was made of them, and those that runs read or that are
// not in a file.
std::int64_t CpuExecutor::Machine::weight_bytes() const {
  std::int64_t total = 0;
  std::set<NodeId> read;
  for (const PlanStep& planned : plan.steps) {
    total += planned.step->layout_bytes();
    const std::vector<Value>& inputs = plan.graph.inputs(planned.node);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!inputs[i].is_none() && plan.graph.is(inputs[i].node, "state") &&
          planned.step->reads_state(i))
        read.insert(inputs[i].node);
  }
  for (const auto& [name, tensor] : state) {
    const std::optional<NodeId> id = plan.graph.find(name);
    if ((id && read.contains(*id)) || !is_file_memory(bytes_of(tensor)))
      total += tensor.num_bytes();
  }
  return total;
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

// How many parts the images of a run come in: of as many as keep all threads busy, so that what
// lies between two layers stays in their caches.
std::int64_t CpuExecutor::Machine::num_parts(const SymbolValues& sizes) const {
  if (plan.image_symbol.empty()) return 1;
  constexpr std::int64_t kFewestImages = 16;
  const std::int64_t at_once = std::max<std::int64_t>(kFewestImages, num_threads());
  return std::max<std::int64_t>(1, (sizes.at(plan.image_symbol) + at_once - 1) / at_once);
}

// Takes part after part of the images through all stages. An image has the same bits in any.
void CpuExecutor::Machine::run_parts(const Feed& inputs, const SymbolValues& sizes) {
  const std::int64_t parts = num_parts(sizes);
  SymbolValues own = sizes;
  const std::int64_t images = parts > 1 ? sizes.at(plan.image_symbol) : 1;
  if (parts > 1) own[plan.image_symbol] = (images + parts - 1) / parts;
  ensure_capacity(own);
  place_outputs(sizes);
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = part * images / parts;
    if (parts > 1) own[plan.image_symbol] = (part + 1) * images / parts - first;
    const auto at = [&](const Tensor& tensor) {
      return tensor.bytes() + first * (tensor.num_bytes() / images);
    };
    for (const GraphInputs::Input& input : plan.inputs.all())
      bases[plan.slot({input.node, 0})] = at(inputs.find(input.name)->second);
    if (part > 0)
      for (const auto& [name, value] : plan.graph.outputs())
        bases[plan.slot(value)] = at(last_outputs.find(name)->second);
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
      const auto run_stage = [&] { run(plan.stages[stage], own); };
      if (clock)
        clock->time_stage(stage, run_stage);
      else
        run_stage();
    }
  }
  if (parts > 1) place_outputs(sizes);  // whole again
}

// Lets the steps write where the caller will read: copying a large result into fresh memory may
// take longer than to compute it.
void CpuExecutor::Machine::place_outputs(const SymbolValues& sizes) {
  for (const auto& [name, value] : plan.graph.outputs()) {
    const Type& type = plan.graph.type(value);
    std::vector<std::int64_t> dims = type.dims(sizes);
    Tensor& output = last_outputs[name];
    if (output.dtype() != type.dtype || output.dims() != dims)
      output = Tensor(type.dtype, std::move(dims));
    std::byte* const bytes = output.mutable_bytes();
    if (plan.slots[plan.slot(value)].kind == Slot::Kind::Arena) bases[plan.slot(value)] = bytes;
  }
}

Feed CpuExecutor::Machine::take_outputs() {
  for (const auto& [name, value] : plan.graph.outputs()) {
    // An input, a state, or what has two names.
    Tensor& output = last_outputs.find(name)->second;
    const std::byte* const from = bases[plan.slot(value)];
    if (from != output.bytes() && output.num_bytes() > 0)
      std::memcpy(output.mutable_bytes(), from, static_cast<std::size_t>(output.num_bytes()));
  }
  Feed taken = last_outputs;
  std::erase_if(last_outputs,
                [](const auto& output) { return output.second.num_bytes() > kMostKeptBytes; });
  return taken;
}

// What becomes of a state is its value of before the run, whichever of them is copied first.
void CpuExecutor::Machine::copy_late_updates() {
  std::vector<Tensor> old;
  std::vector<const std::byte*> from;
  for (const auto& [value, state_slot] : plan.late_updates) {
    const Slot& slot = plan.slots[static_cast<std::size_t>(value)];
    from.push_back(base(value));
    if (slot.kind != Slot::Kind::State) continue;
    Tensor& copy = old.emplace_back(slot.type.dtype, slot.type.dims({}));
    std::memcpy(copy.mutable_bytes(), from.back(), static_cast<std::size_t>(copy.num_bytes()));
    from.back() = copy.bytes();
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    const int state_slot = plan.late_updates[i].second;
    const Slot& slot = plan.slots[static_cast<std::size_t>(state_slot)];
    std::memcpy(written(state_slot), from[i],
                static_cast<std::size_t>(slot.type.num_bytes().constant()));
  }
}

void CpuExecutor::Machine::parallel(std::int64_t tasks,
                                    const std::function<void(std::int64_t, int)>& task,
                                    ThreadPool::Shares shares) {
  const auto share_out = [&](const std::function<void(std::int64_t, int)>& each) {
    if (pool != nullptr) return pool->run(tasks, each, shares);
    for (std::int64_t index = 0; index < tasks; ++index) each(index, 0);
  };
  if (clock)
    clock->time_tasks(task, share_out);
  else
    share_out(task);
}

}  // namespace lathe::engine

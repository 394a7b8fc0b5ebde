#include "lathe/engine/cpu/cpu_machine.h"

#include <algorithm>

#include "lathe/engine/memory_plan.h"

namespace lathe::engine {

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
  cuts.assign(plan.steps.size(), std::nullopt);
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

}  // namespace lathe::engine

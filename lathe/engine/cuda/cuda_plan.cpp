#include "lathe/engine/cuda/cuda_plan.h"

#include <algorithm>
#include <bit>

#include "lathe/engine/bound_value.h"
#include "lathe/engine/cuda/cuda_schedule.h"
#include "lathe/engine/cuda/cuda_single_row.h"

namespace lathe::engine {
namespace {

bool is_resident_constant(const Graph& graph, NodeId id) {
  return graph.is(id, "constant") && graph.types(id)[0].num_elements().is_constant();
}

void make_steps(CudaPlan& plan) {
  const Graph& graph = plan.graph;
  for (const NodeId id : graph.topological_order()) {
    plan.doubtful_sizes.add(graph, id);
    if (graph.op(id).is_alias) {
      plan.slot_of[{id, 0}] = plan.slot_of.at(graph.input(id, 0));
      continue;
    }
    std::vector<int> results;
    for (std::size_t i = 0; i < graph.types(id).size(); ++i) {
      const Value value{id, static_cast<std::int32_t>(i)};
      CudaSlot slot;
      slot.type = graph.type(value);
      if (graph.is(id, "input")) slot.kind = CudaSlot::Kind::Input;
      if (graph.is(id, "state")) slot.kind = CudaSlot::Kind::State;
      if (is_resident_constant(graph, id)) slot.kind = CudaSlot::Kind::Constant;
      plan.slot_of[value] = static_cast<int>(plan.slots.size());
      results.push_back(static_cast<int>(plan.slots.size()));
      plan.slots.push_back(std::move(slot));
    }
    if (graph.op(id).is_source || is_resident_constant(graph, id)) continue;
    CudaPlanStep planned;
    planned.node = id;
    planned.step = make_cuda_step(graph, id);
    if (planned.step == nullptr)
      fail("node \"{}\": device cuda has no kernel for {}", graph.name(id), graph.op(id).name);
    planned.outputs = results;
    for (const Value& value : graph.inputs(id))
      planned.inputs.push_back(value.is_none() ? -1 : plan.slot_of.at(value));
    planned.parts.assign(results.size(), -1);
    plan.steps.push_back(std::move(planned));
  }
}

// With bf16, what products and attention read and make lies as bfloat16, which is all that they see
// of it; whether it lies as float, too, depends on who else reads it.
void add_halves(CudaPlan& plan) {
  const auto add_half = [&](int slot) {
    const auto index = static_cast<std::size_t>(slot);
    if (plan.slots[index].half >= 0) return;
    CudaSlot half;
    half.type = {DType::BF16, plan.slots[index].type.shape};
    const CudaSlot::Kind kind = plan.slots[index].kind;
    if (kind == CudaSlot::Kind::State || kind == CudaSlot::Kind::Constant) half.kind = kind;
    plan.slots[index].half = static_cast<int>(plan.slots.size());
    plan.slots.push_back(std::move(half));
  };
  for (const CudaPlanStep& planned : plan.steps) {
    for (const std::size_t operand : planned.step->half_operands())
      add_half(planned.inputs[operand]);
    for (const std::size_t result : planned.step->half_results()) {
      add_half(planned.outputs[result]);
      plan.slots[static_cast<std::size_t>(planned.outputs[result])].is_rounded = true;
    }
    if (planned.step->keeps_numbers() &&
        plan.slots[static_cast<std::size_t>(planned.inputs[0])].is_rounded) {
      add_half(planned.outputs[0]);
      plan.slots[static_cast<std::size_t>(planned.outputs[0])].is_rounded = true;
    }
  }
}

// A state's update lies in the state itself where its step can do that and nobody reads the old
// value afterwards; any other update is copied at the end, one behind another.
void bind_updates(CudaPlan& plan) {
  std::vector<bool> is_updated(plan.slots.size(), false);
  for (const auto& [state, value] : plan.graph.state_updates())
    is_updated[plan.slot({state, 0})] = true;
  for (const auto& [state, value] : plan.graph.state_updates()) {
    const int state_slot = plan.slot_of.at({state, 0});
    if (value.node != state && is_updated[plan.slot(value)])
      fail("state \"{}\" becomes state \"{}\", which is updated too: expected it to be computed",
           plan.graph.name(state), plan.graph.name(value.node));
    bool is_in_place = false;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      CudaPlanStep& planned = plan.steps[i];
      if (planned.node != value.node) continue;
      for (const CudaInPlace& pair : planned.step->in_place()) {
        if (static_cast<std::int32_t>(pair.output) != value.index ||
            plan.graph.input(value.node, pair.input) != Value{state, 0})
          continue;
        is_in_place = !is_read_besides_its_state(plan.graph, value);
        for (std::size_t later = i + 1; later < plan.steps.size(); ++later)
          for (const int input : plan.steps[later].inputs)
            is_in_place = is_in_place && input != state_slot;
        for (const auto& [name, output] : plan.graph.outputs())
          is_in_place = is_in_place && plan.slot_of.at(output) != state_slot;
        if (is_in_place) planned.outputs[pair.output] = state_slot;
      }
    }
    if (!is_in_place) plan.late_updates.emplace_back(plan.slot_of.at(value), state_slot);
  }
}

// Halves of what no step makes: those of inputs and of states that a run changes by other means are
// copied in front of all launches, the others when they are set.
void copy_halves_of_sources(CudaPlan& plan) {
  std::vector<bool> is_made(plan.slots.size()), is_kept(plan.slots.size());
  for (const CudaPlanStep& planned : plan.steps)
    for (std::size_t i = 0; i < planned.outputs.size(); ++i) {
      const auto slot = static_cast<std::size_t>(planned.outputs[i]);
      if (plan.slots[slot].kind == CudaSlot::Kind::State)
        is_kept[slot] = planned.step->can_write_half(i);
      else
        is_made[slot] = true;
    }
  std::vector<int> copied;
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    if (plan.slots[i].half < 0 || is_made[i]) continue;
    bool is_changed = plan.slots[i].kind == CudaSlot::Kind::Input;
    for (const auto& [state, value] : plan.graph.state_updates())
      is_changed = is_changed || (plan.slot({state, 0}) == i && !is_kept[i]);
    (is_changed ? copied : plan.resident_halves).push_back(static_cast<int>(i));
  }
  if (!copied.empty())
    plan.launches.insert(plan.launches.begin(), {{}, CudaGroup::Halves, {}, copied});
}

// How the steps of a launch read an operand: not from memory where the launch makes it, as bfloat16
// where that is all they see of it or all there is, else as float.
enum class Reading { None, Half, Float };
Reading reading_of(const CudaPlan& plan, const CudaLaunch& launch, std::size_t index,
                   std::size_t input) {
  const CudaStep& step = *plan.steps[index].step;
  const int slot = plan.steps[index].inputs[input];
  if (slot < 0) return Reading::None;
  const bool is_product = launch.group == CudaGroup::Products;
  if (is_product || launch.group == CudaGroup::Rows)
    for (const std::size_t other : launch.steps) {
      const std::vector<int>& made = plan.steps[other].outputs;
      if (std::find(made.begin(), made.end(), slot) != made.end()) return Reading::None;
    }
  const CudaSlot& operand = plan.slots[static_cast<std::size_t>(slot)];
  if (operand.half < 0) return Reading::Float;
  const auto holds = [&](const std::vector<std::size_t>& operands) {
    return std::find(operands.begin(), operands.end(), input) != operands.end();
  };
  if (holds(step.half_operands())) return Reading::Half;
  if (operand.is_rounded && holds(step.rounded_operands())) return Reading::Half;
  // Sums beside a product are over the operand as the product has it.
  if (is_product && step.follower() == CudaFollower::Sum) return Reading::Half;
  if (is_product && step.follower() == CudaFollower::MapGradient && operand.is_rounded)
    return Reading::Half;
  if (launch.group == CudaGroup::Rows && holds(step.rows()->operands) && operand.is_rounded)
    return Reading::Half;
  return Reading::Float;
}

// What nobody reads from memory needs none, where its launch can leave it out.
void find_stored(CudaPlan& plan) {
  std::vector<bool> is_read(plan.slots.size());
  const auto read = [&](int slot) { is_read[static_cast<std::size_t>(slot)] = true; };
  for (const CudaLaunch& launch : plan.launches) {
    const bool leaves_out = launch.group == CudaGroup::Rows || launch.group == CudaGroup::Products;
    for (const std::size_t index : launch.steps) {
      CudaPlanStep& planned = plan.steps[index];
      planned.reads_half.assign(planned.inputs.size(), false);
      for (std::size_t i = 0; i < planned.inputs.size(); ++i) {
        const Reading reading = reading_of(plan, launch, index, i);
        if (reading == Reading::Float) read(planned.inputs[i]);
        planned.reads_half[i] = reading == Reading::Half;
        if (reading == Reading::Half)
          read(plan.slots[static_cast<std::size_t>(planned.inputs[i])].half);
      }
      for (std::size_t i = 0; i < planned.outputs.size() && !leaves_out; ++i) {
        const int half = plan.slots[static_cast<std::size_t>(planned.outputs[i])].half;
        const bool is_half = half >= 0 && planned.step->can_write_half(i);
        read(is_half ? half : planned.outputs[i]);
      }
    }
    for (const int copied : launch.halves) {
      read(copied);
      read(plan.slots[static_cast<std::size_t>(copied)].half);
    }
  }
  for (const CudaPartial& partial : plan.partials) read(partial.slot);
  for (const auto& [name, value] : plan.graph.outputs()) read(plan.slot_of.at(value));
  for (const auto& [value, state] : plan.late_updates) read(value);
  for (std::size_t i = 0; i < plan.slots.size(); ++i)
    plan.slots[i].is_stored = is_read[i] || plan.slots[i].kind != CudaSlot::Kind::Arena;
}

// What can run beside others does so until a launch reads what it makes, or until the end.
void find_joins(CudaPlan& plan) {
  const auto reads = [&](const CudaLaunch& launch, int slot) {
    const auto is_it = [&](int other) { return other == slot; };
    for (const std::size_t index : launch.steps)
      if (std::any_of(plan.steps[index].inputs.begin(), plan.steps[index].inputs.end(), is_it))
        return true;
    return std::any_of(launch.halves.begin(), launch.halves.end(), is_it);
  };
  const auto num_launches = static_cast<int>(plan.launches.size());
  for (int number = 0; number < num_launches; ++number) {
    CudaLaunch& launch = plan.launches[static_cast<std::size_t>(number)];
    if (launch.steps.empty()) continue;
    bool can_run_beside = true;
    std::vector<int> made;
    for (const std::size_t index : launch.steps) {
      const CudaPlanStep& planned = plan.steps[index];
      can_run_beside = can_run_beside && planned.step->can_run_beside() &&
                       planned.parts == std::vector<int>(planned.parts.size(), -1);
      made.insert(made.end(), planned.outputs.begin(), planned.outputs.end());
    }
    if (!can_run_beside) continue;
    int joined = number + 1;
    while (joined < num_launches && std::none_of(made.begin(), made.end(), [&](int slot) {
             return reads(plan.launches[static_cast<std::size_t>(joined)], slot);
           }))
      ++joined;
    if (joined > number + 1) launch.joined = joined;
  }
}

// An early part begins with the launch after those that make what it reads.
void find_early_parts(CudaPlan& plan) {
  std::vector<int> made_by(plan.slots.size(), -1);
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch)
    for (const std::size_t index : plan.launches[launch].steps)
      for (const int slot : plan.steps[index].outputs)
        made_by[static_cast<std::size_t>(slot)] = static_cast<int>(launch);
  for (CudaLaunch& launch : plan.launches)
    for (const std::size_t index : launch.steps) {
      const CudaPlanStep& planned = plan.steps[index];
      const std::optional<CudaEarlyPart> part = planned.step->early_part();
      if (!part) continue;
      const auto operand = static_cast<std::size_t>(planned.inputs[part->operand]);
      launch.early = std::max(launch.early, made_by[operand] + 1);
    }
}

void find_lifetimes(CudaPlan& plan) {
  const int after_all = static_cast<int>(plan.launches.size());
  for (CudaSlot& slot : plan.slots) {
    slot.first = after_all;
    slot.last = -1;
  }
  // Launches that may be one read and write at the same time.
  std::vector<std::pair<int, int>> times;
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch)
    times.emplace_back(static_cast<int>(launch), plan.launches[launch].end(launch));
  for (const CudaSingleRow& run : plan.single_rows)
    for (int launch = run.first; launch <= run.last; ++launch)
      times[static_cast<std::size_t>(launch)] = {run.first, run.last};
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch)
    for (const std::size_t index : plan.launches[launch].steps) {
      const auto touch = [&](int slot) {
        if (slot < 0) return;
        CudaSlot& touched = plan.slots[static_cast<std::size_t>(slot)];
        touched.first = std::min(touched.first, times[launch].first);
        touched.last = std::max(touched.last, times[launch].second);
      };
      const auto touch_both = [&](int slot) {
        touch(slot);
        if (slot >= 0) touch(plan.slots[static_cast<std::size_t>(slot)].half);
      };
      for (const int slot : plan.steps[index].inputs) touch_both(slot);
      for (const int slot : plan.steps[index].outputs) touch_both(slot);
      for (const int partial : plan.steps[index].parts)
        if (partial >= 0) {
          plan.partials[static_cast<std::size_t>(partial)].first = static_cast<int>(launch);
          plan.partials[static_cast<std::size_t>(partial)].last = static_cast<int>(launch);
        }
    }
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch)
    for (const int copied : plan.launches[launch].halves)
      for (const int touched : {copied, plan.slots[static_cast<std::size_t>(copied)].half}) {
        CudaSlot& slot = plan.slots[static_cast<std::size_t>(touched)];
        slot.first = std::min(slot.first, static_cast<int>(launch));
        slot.last = std::max(slot.last, static_cast<int>(launch));
      }
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch)
    for (const int partial : plan.launches[launch].partials) {
      CudaPartial& summed = plan.partials[static_cast<std::size_t>(partial)];
      summed.last = static_cast<int>(launch);
      CudaSlot& slot = plan.slots[static_cast<std::size_t>(summed.slot)];
      slot.last = std::max(slot.last, static_cast<int>(launch));
    }
  for (const CudaLaunch& launch : plan.launches)
    for (const std::size_t index : launch.steps)
      if (const auto part = plan.steps[index].step->early_part(); part && part->result) {
        const int slot = plan.steps[index].outputs[*part->result];
        int& first = plan.slots[static_cast<std::size_t>(slot)].first;
        first = std::min(first, launch.early);
      }
  for (const auto& [name, value] : plan.graph.outputs()) {
    CudaSlot& slot = plan.slots[plan.slot(value)];
    if (slot.kind == CudaSlot::Kind::Arena) slot.kind = CudaSlot::Kind::Output;
  }
  for (const auto& [value, state] : plan.late_updates)
    plan.slots[static_cast<std::size_t>(value)].last = after_all;
}

// Whether the symbol counts rows and nothing else: it is in the first axis alone, alone there, and
// grows it evenly.
bool only_counts_rows(const Type& type, const std::string& symbol) {
  for (std::size_t axis = 0; axis < type.rank(); ++axis) {
    if (!type.shape[axis].depends_on(symbol)) continue;
    if (axis > 0 || type.shape[axis].symbols().size() != 1) return false;
    const auto at = [&](std::int64_t value) {
      return type.shape[axis].evaluate({{symbol, value}});
    };
    if (at(0) < 0 || at(1) < at(0) || at(2) - at(1) != at(1) - at(0)) return false;
  }
  return true;
}

bool can_be_rounded(const Graph& graph, const std::string& symbol) {
  const auto depends = [&](const Type& type) {
    return std::any_of(type.shape.begin(), type.shape.end(),
                       [&](const Size& size) { return size.depends_on(symbol); });
  };
  for (const NodeId id : graph.topological_order()) {
    bool is_touched = false;
    for (const Type& type : graph.types(id)) {
      if (!only_counts_rows(type, symbol)) return false;
      is_touched = is_touched || depends(type);
    }
    for (const Value& value : graph.inputs(id))
      is_touched = is_touched || (!value.is_none() && depends(graph.type(value)));
    if (!is_touched || graph.op(id).is_source || graph.op(id).is_alias) continue;
    const CudaKernel* const kernel = Registry<CudaKernel>::instance().find(graph.op(id).name);
    if (kernel == nullptr || kernel->takes_padding == nullptr || !kernel->takes_padding(graph, id))
      return false;
  }
  return true;
}

}  // namespace

CudaPlan make_cuda_plan(Graph lowered, cuda::Precision precision) {
  CudaPlan plan;
  plan.precision = precision;
  plan.graph = std::move(lowered);
  plan.inputs = GraphInputs(plan.graph);
  make_steps(plan);
  if (precision == cuda::Precision::Bf16) add_halves(plan);
  schedule(plan);
  bind_updates(plan);
  if (precision == cuda::Precision::Bf16) copy_halves_of_sources(plan);
  find_stored(plan);
  find_early_parts(plan);
  find_joins(plan);
  plan.single_rows = find_single_rows(plan);
  find_lifetimes(plan);
  for (const std::string& symbol : plan.graph.symbols())
    if (can_be_rounded(plan.graph, symbol)) plan.rounded_symbols.push_back(symbol);
  return plan;
}

std::int64_t bucket_of(std::int64_t size) {
  if (size <= 0) return size;
  if (size <= 8) return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
  const auto binade = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size)));
  const std::int64_t step = std::max<std::int64_t>(8, binade / 8);
  return (size + step - 1) / step * step;
}

}  // namespace lathe::engine

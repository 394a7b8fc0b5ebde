#include "lathe/engine/cpu/narrow_values.h"

#include <algorithm>

namespace lathe::engine {
namespace {

// What the steps say about a slot.
struct Users {
  Narrow writer = Narrow::No;  // an input's or a state's is nobody
  bool is_read = false;
  Narrow readers = Narrow::Anyway;  // the least of theirs
};

bool is_narrow(const Slot& slot, const Users& users) {
  return slot.kind == Slot::Kind::Arena && slot.type.dtype == DType::F32 && users.is_read &&
         users.writer != Narrow::No && users.readers != Narrow::No &&
         std::max(users.writer, users.readers) == Narrow::Anyway;
}

}  // namespace

void narrow_values(CpuPlan& plan) {
  std::vector<Users> users(plan.slots.size());
  for (const PlanStep& planned : plan.steps) {
    for (std::size_t i = 0; i < planned.inputs.size(); ++i) {
      if (planned.inputs[i] < 0) continue;
      Users& slot = users[static_cast<std::size_t>(planned.inputs[i])];
      slot.is_read = true;
      slot.readers = std::min(slot.readers, planned.step->narrow_input(i));
    }
    for (std::size_t i = 0; i < planned.outputs.size(); ++i)
      users[static_cast<std::size_t>(planned.outputs[i])].writer = planned.step->narrow_output(i);
  }
  for (const auto& [name, value] : plan.graph.outputs()) users[plan.slot(value)] = {};
  for (const auto& [state, value] : plan.graph.state_updates()) users[plan.slot(value)] = {};

  std::vector<bool> narrow(plan.slots.size(), false);
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    narrow[i] = is_narrow(plan.slots[i], users[i]);
    if (narrow[i]) plan.slots[i].type.dtype = DType::BF16;
  }
  const auto are_narrow = [&](const std::vector<int>& slots) {
    std::vector<bool> result;
    for (const int slot : slots)
      result.push_back(slot >= 0 && narrow[static_cast<std::size_t>(slot)]);
    return result;
  };
  for (const PlanStep& planned : plan.steps)
    planned.step->set_narrow(are_narrow(planned.inputs), are_narrow(planned.outputs));
}

}  // namespace lathe::engine

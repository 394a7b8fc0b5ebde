#include <algorithm>
#include <tuple>

#include "lathe/engine/cuda/cuda_machine.h"
#include "lathe/engine/memory_plan.h"
#include "lathe/engine/reference_executor.h"

namespace lathe::engine {
namespace {

struct SlotInOrder {
  std::size_t slot = 0;
  int group = -1;  // slots of one group and size lie side by side; -1: by itself
};

// What the products of a launch make, or a step of several results, lies side by side where it has
// one size, in the order of what it is made of: one call of the library may make it all, or read
// it.
std::vector<SlotInOrder> slots_in_order(const CudaPlan& plan) {
  std::vector<SlotInOrder> order;
  std::vector<bool> is_there(plan.slots.size());
  const auto add = [&](int slot, int group) {
    if (slot < 0 || is_there[static_cast<std::size_t>(slot)]) return;
    is_there[static_cast<std::size_t>(slot)] = true;
    order.push_back({static_cast<std::size_t>(slot), group});
  };
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch) {
    const bool has_products = plan.launches[launch].group == CudaGroup::Products;
    std::vector<std::size_t> steps = plan.launches[launch].steps;
    std::stable_sort(steps.begin(), steps.end(), [&](std::size_t one, std::size_t other) {
      return plan.steps[one].inputs < plan.steps[other].inputs;
    });
    for (const std::size_t step : steps) {
      const std::vector<int>& outputs = plan.steps[step].outputs;
      if (!has_products && outputs.size() < 2) continue;
      for (const int slot : outputs) {
        add(slot, static_cast<int>(launch));
        add(plan.slots[static_cast<std::size_t>(slot)].half, static_cast<int>(launch));
      }
    }
  }
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) add(static_cast<int>(slot), -1);
  return order;
}

}  // namespace

void CudaMachine::place_residents() {
  std::int64_t bytes = 0;
  std::vector<std::pair<std::size_t, std::int64_t>> places;
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    const CudaSlot& slot = plan.slots[i];
    if (slot.kind != CudaSlot::Kind::State && slot.kind != CudaSlot::Kind::Constant) continue;
    places.emplace_back(i, bytes);
    bytes += to_lines(slot.type.num_bytes().constant());
  }
  std::vector<std::pair<std::size_t, std::int64_t>> prepared_places;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const std::int64_t needed = plan.steps[i].step->prepared_bytes(plan.precision);
    if (needed == 0) continue;
    prepared_places.emplace_back(i, bytes);
    bytes += to_lines(needed);
  }
  residents.reserve(std::max(bytes, kLine));
  prepared_of.assign(plan.steps.size(), nullptr);
  for (const auto& [step, offset] : prepared_places) prepared_of[step] = residents.data() + offset;
  for (const auto& [slot, offset] : places) bases[slot] = residents.data() + offset;
  for (const auto& [value, slot] : plan.slot_of) {
    const auto index = static_cast<std::size_t>(slot);
    if (plan.slots[index].kind == CudaSlot::Kind::Constant && plan.graph.is(value.node, "constant"))
      set_resident(index, evaluate_node(plan.graph, value.node, {}, {}).front());
    if (plan.slots[index].kind != CudaSlot::Kind::State || !plan.graph.is(value.node, "state"))
      continue;
    const auto found = host.find(plan.graph.name(value.node));
    if (found != host.end()) set_resident(index, found->second);  // else it is computed
  }
}

void CudaMachine::set_resident(std::size_t slot, const Tensor& tensor) {
  check_cuda(device().copy(bases[slot], tensor.bytes(), tensor.num_bytes(), work->stream));
  check_cuda(device().synchronize(work->stream));
}

void CudaMachine::ensure_capacity(const SymbolValues& needed) {
  bool grew = arena.size() == 0;
  SymbolValues grown = capacity;
  for (const auto& [symbol, value] : needed) {
    std::int64_t& most = grown[symbol];
    grew = grew || value > most;
    most = std::max(most, value);
  }
  if (!grew) return;
  for (Begun& run : begun) await(run);  // their outputs lie in memory that is laid out anew
  drop_captures();                      // they point into the old arena
  const CudaSizes sizes{grown, {}, plan.precision};
  const auto lay_out = [&](CudaSlot::Kind kind, CudaBlock& block, std::int64_t begin) {
    block.slots.clear();
    block.offsets.clear();
    block.bytes = begin;
    for (std::size_t i = 0; i < plan.slots.size(); ++i) {
      if (plan.slots[i].kind != kind) continue;
      block.slots.push_back(i);
      block.offsets.push_back(block.bytes);
      block.bytes += to_lines(sizes.capacity(plan.slots[i].type.num_bytes()));
    }
  };
  lay_out(CudaSlot::Kind::Input, inputs,
          to_lines(static_cast<std::int64_t>(plan.rounded_symbols.size() * sizeof(std::int32_t))));
  fault_offset = 0;
  lay_out(CudaSlot::Kind::Output, outputs, kLine);

  std::vector<Lifetime> lifetimes;
  std::vector<std::byte**> owners;  // who gets the address
  struct Neighbour {
    std::byte** address;
    std::size_t owner;
    std::int64_t offset;
  };
  std::vector<Neighbour> neighbours;
  std::map<std::tuple<int, DType, std::int64_t>, std::size_t> owner_of;
  unshared_bytes = 0;
  for (const SlotInOrder& place : slots_in_order(plan)) {
    const CudaSlot& slot = plan.slots[place.slot];
    if (slot.kind != CudaSlot::Kind::Arena || slot.last < 0 || !slot.is_stored) continue;
    const std::int64_t bytes = to_lines(sizes.capacity(slot.type.num_bytes()));
    unshared_bytes += bytes;
    if (place.group >= 0) {
      const auto [found, is_new] =
          owner_of.try_emplace({place.group, slot.type.dtype, bytes}, owners.size());
      if (!is_new) {
        Lifetime& shared = lifetimes[found->second];
        neighbours.push_back({&bases[place.slot], found->second, shared.bytes});
        shared.bytes += bytes;
        shared.first = std::min(shared.first, slot.first);
        shared.last = std::max(shared.last, slot.last);
        continue;
      }
    }
    lifetimes.push_back({slot.first, slot.last, bytes});
    owners.push_back(&bases[place.slot]);
  }
  parts.assign(plan.partials.size(), nullptr);
  for (std::size_t i = 0; i < plan.partials.size(); ++i) {
    const CudaPartial& partial = plan.partials[i];
    const std::int64_t count = partial.num_parts(sizes.capacity(partial.rows));
    if (count == 1) continue;
    const std::int64_t bytes =
        to_lines(count * sizes.capacity(
                             plan.slots[static_cast<std::size_t>(partial.slot)].type.num_bytes()));
    lifetimes.push_back({partial.first, partial.last, bytes});
    owners.push_back(&parts[i]);
    unshared_bytes += bytes;
  }
  scratch.assign(plan.launches.size(), nullptr);
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch) {
    std::int64_t bytes = 0;
    // Of a launch that is several kernels, one after another, each has it all.
    const bool is_shared = plan.launches[launch].group == CudaGroup::Packed;
    for (const std::size_t step : plan.launches[launch].steps) {
      const std::int64_t own =
          plan.steps[step].step->scratch_bytes(plan.graph, plan.steps[step].node, sizes);
      bytes = is_shared ? std::max(bytes, own) : bytes + own;
    }
    if (bytes == 0) continue;
    const int early = plan.launches[launch].early;
    lifetimes.push_back({early < 0 ? static_cast<int>(launch) : early,
                         plan.launches[launch].end(launch), to_lines(bytes)});
    owners.push_back(&scratch[launch]);
    unshared_bytes += to_lines(bytes);
  }
  const MemoryPlan layout = plan_memory(lifetimes);
  const std::int64_t blocks = block_bytes();
  arena.reserve(blocks + layout.total + kLine);
  staging.reserve(static_cast<std::int64_t>(kMostBegun) * blocks);
  for (std::size_t i = 0; i < inputs.slots.size(); ++i)
    bases[inputs.slots[i]] = arena.data() + inputs.offsets[i];
  for (std::size_t i = 0; i < outputs.slots.size(); ++i)
    bases[outputs.slots[i]] = arena.data() + to_lines(inputs.bytes) + outputs.offsets[i];
  for (std::size_t i = 0; i < owners.size(); ++i)
    *owners[i] = arena.data() + blocks + layout.offsets[i];
  for (const Neighbour& neighbour : neighbours)
    *neighbour.address = *owners[neighbour.owner] + neighbour.offset;
  capacity = std::move(grown);  // not before there is room: this run may end above
}

}  // namespace lathe::engine

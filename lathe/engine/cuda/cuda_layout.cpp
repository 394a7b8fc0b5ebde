#include <algorithm>
#include <tuple>

#include "lathe/engine/cuda/cuda_machine.h"
#include "lathe/engine/memory_plan.h"
#include "lathe/engine/reference_executor.h"

namespace lathe::engine {

void CudaMachine::place_residents() {
  std::int64_t bytes = 0;
  std::vector<std::pair<std::size_t, std::int64_t>> places;
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    const CudaSlot& slot = plan.slots[i];
    if (slot.kind != CudaSlot::Kind::State && slot.kind != CudaSlot::Kind::Constant) continue;
    places.emplace_back(i, bytes);
    bytes += to_lines(slot.type.num_bytes().constant());
  }
  residents.reserve(std::max(bytes, kLine));
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
  const CudaSizes sizes{grown, {}};
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
  // Values of bfloat16 that live and die together and have one size lie side by side: one call of
  // the library may make them all.
  struct Neighbour {
    std::byte** address;
    std::size_t owner;
    std::int64_t offset;
  };
  std::vector<Neighbour> neighbours;
  std::map<std::tuple<int, int, std::int64_t>, std::size_t> owner_of;
  unshared_bytes = 0;
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    const CudaSlot& slot = plan.slots[i];
    if (slot.kind != CudaSlot::Kind::Arena || slot.last < 0 || !slot.is_stored) continue;
    const std::int64_t bytes = to_lines(sizes.capacity(slot.type.num_bytes()));
    unshared_bytes += bytes;
    if (slot.type.dtype == DType::BF16) {
      const auto [found, is_new] =
          owner_of.try_emplace({slot.first, slot.last, bytes}, owners.size());
      if (!is_new) {
        Lifetime& shared = lifetimes[found->second];
        neighbours.push_back({&bases[i], found->second, shared.bytes});
        shared.bytes += bytes;
        continue;
      }
    }
    lifetimes.push_back({slot.first, slot.last, bytes});
    owners.push_back(&bases[i]);
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
    for (const std::size_t step : plan.launches[launch].steps)
      bytes += plan.steps[step].step->scratch_bytes(plan.graph, plan.steps[step].node, sizes);
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

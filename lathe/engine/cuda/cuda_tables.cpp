#include <cstring>

#include "lathe/engine/cuda/cuda_few_rows.h"
#include "lathe/engine/cuda/cuda_machine.h"

namespace lathe::engine {

CudaMachine::Prepared& CudaMachine::prepare(const SymbolValues& sizes) {
  const auto [found, is_new] = prepared.try_emplace(sizes);
  Prepared& one = found->second;
  if (!is_new) return one;
  one.sizes.bucket = sizes;
  for (std::size_t i = 0; i < plan.rounded_symbols.size(); ++i)
    one.sizes.real[plan.rounded_symbols[i]] =
        reinterpret_cast<const std::int32_t*>(arena.data()) + i;
  for (const GraphInputs::Input& input : plan.inputs.all())
    one.input_bytes.push_back(input.type.num_bytes().evaluate(sizes));
  fill_tables(one);
  find_single_rows(one);
  return one;
}

// The tables of grouped launches hold addresses, so they are made when those are known.
void CudaMachine::fill_tables(Prepared& one) {
  one.groups.resize(plan.launches.size());
  one.table_offsets.assign(plan.launches.size(), 0);
  std::vector<std::byte> bytes;
  std::vector<std::byte*> operands;
  const auto append = [&](const auto& entries) {
    const auto size = entries.size() * sizeof(entries[0]);
    const std::size_t begin = bytes.size();
    bytes.resize(static_cast<std::size_t>(to_lines(static_cast<std::int64_t>(begin + size))));
    if (size != 0) std::memcpy(bytes.data() + begin, entries.data(), size);
  };
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch) {
    const CudaGroup group = plan.launches[launch].group;
    if (group == CudaGroup::None) continue;
    CudaGroupTable& table = one.groups[launch];
    one.table_offsets[launch] = static_cast<std::int64_t>(bytes.size());
    if (group == CudaGroup::Rows) {
      CudaRowProgram program = row_program(one, launch);
      if (!program.chain()) append(std::vector{program.finish()});
      continue;
    }
    if (group == CudaGroup::Products) continue;  // they fit into the launch itself
    add_sums(table, one, launch);
    add_halves(table, plan.launches[launch].halves, one.sizes);
    for (const std::size_t step : plan.launches[launch].steps)
      plan.steps[step].step->add_to(table, call(one, launch, step, operands));
    append(table.formats);
    append(table.learned_steps);
    append(table.vectors);
    append(table.sums);
    append(table.halves);
    append(table.squares);
    append(table.scalars);
    append(table.updates);
  }
  // Runs of launches over few rows.
  for (std::size_t first = 0; first < plan.launches.size(); ++first) {
    std::vector<cuda::FewRowsStage> stages = few_rows_stages(one, first);
    if (stages.empty()) continue;
    std::size_t end = first + 1;
    for (; end < plan.launches.size(); ++end) {
      const std::vector<cuda::FewRowsStage> more = few_rows_stages(one, end);
      if (more.empty() || stages.size() + more.size() > cuda::kMostStages) break;
      stages.insert(stages.end(), more.begin(), more.end());
    }
    if (end - first > 1) {
      one.few_rows[first] = {end - first, static_cast<std::int32_t>(stages.size()),
                             static_cast<std::int64_t>(bytes.size())};
      append(stages);
      first = end - 1;
    }
  }
  if (bytes.empty()) return;
  one.tables.reserve(static_cast<std::int64_t>(bytes.size()));
  check_cuda(device().copy(one.tables.data(), bytes.data(), static_cast<std::int64_t>(bytes.size()),
                           work->stream));
  check_cuda(device().synchronize(work->stream));
}

// A launch as stages of one over few rows; none where it cannot be.
std::vector<cuda::FewRowsStage> CudaMachine::few_rows_stages(const Prepared& one,
                                                             std::size_t launch) const {
  std::vector<cuda::FewRowsStage> stages;
  const auto add = [&](const std::optional<cuda::FewRowsStage>& stage) {
    if (stage) stages.push_back(*stage);
    return stage.has_value();
  };
  if (plan.precision != cuda::Precision::Bf16 || plan.launches[launch].joined >= 0) return {};
  if (plan.launches[launch].group == CudaGroup::Rows) {
    if (const auto chain = row_program(one, launch).chain()) add(few_rows_stage(*chain));
  } else if (plan.launches[launch].group == CudaGroup::Products) {
    const auto own = products(one, launch).all_own(plan.precision);
    if (!own) return {};
    for (const cuda::Product& product : *own)
      if (!add(few_rows_stage(product))) return {};
  }
  return stages;
}

CudaCall CudaMachine::call(const Prepared& one, std::size_t launch, std::size_t step,
                           std::vector<std::byte*>& operands) const {
  const CudaPlanStep& planned = plan.steps[step];
  operands.clear();
  for (const int slot : planned.inputs)
    operands.push_back(slot < 0 ? nullptr : bases[static_cast<std::size_t>(slot)]);
  for (const int slot : planned.outputs) operands.push_back(bases[static_cast<std::size_t>(slot)]);
  const auto half_of = [&](int slot) -> std::byte* {
    const int half = slot < 0 ? -1 : plan.slots[static_cast<std::size_t>(slot)].half;
    return half < 0 ? nullptr : bases[static_cast<std::size_t>(half)];
  };
  for (std::size_t i = 0; i < planned.inputs.size(); ++i)
    operands.push_back(planned.reads_half[i] ? half_of(planned.inputs[i]) : nullptr);
  for (const int slot : planned.outputs) operands.push_back(half_of(slot));
  for (const int partial : planned.parts)
    operands.push_back(partial < 0 ? nullptr : parts[static_cast<std::size_t>(partial)]);
  const std::span<std::byte* const> all(operands);
  const std::size_t num_inputs = planned.inputs.size(), num_outputs = planned.outputs.size();
  auto* const fault =
      reinterpret_cast<std::int32_t*>(arena.data() + to_lines(inputs.bytes) + fault_offset);
  return {*kernels,
          work->gemm,
          plan.launches[launch].joined < 0 ? work->stream : work->side,
          plan.graph,
          planned.node,
          one.sizes,
          all.first(num_inputs),
          all.subspan(num_inputs, num_outputs),
          scratch.empty() ? nullptr : scratch[launch],
          {fault, static_cast<std::int32_t>(step)},
          planned.inputs,
          planned.outputs,
          all.subspan(num_inputs + num_outputs, num_inputs),
          all.subspan(2 * num_inputs + num_outputs, num_outputs),
          all.last(num_outputs),
          plan.precision,
          prepared_of[step]};
}

void CudaMachine::prepare_steps() {
  const Prepared of_no_size;  // states have sizes of their own
  std::vector<std::byte*> operands;
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch)
    for (const std::size_t step : plan.launches[launch].steps)
      if (prepared_of[step] != nullptr)
        plan.steps[step].step->prepare(call(of_no_size, launch, step, operands));
  check_cuda(device().launch_error());
  check_cuda(device().synchronize(work->stream));
}

void CudaMachine::add_sums(CudaGroupTable& table, const Prepared& one, std::size_t launch) const {
  for (const int index : plan.launches[launch].partials) {
    const auto partial = static_cast<std::size_t>(index);
    const auto slot = static_cast<std::size_t>(plan.partials[partial].slot);
    const std::int64_t num_parts =
        plan.partials[partial].num_parts(one.sizes.capacity(plan.partials[partial].rows));
    if (num_parts == 1) continue;  // it was made whole
    const std::int64_t count = one.sizes.capacity(plan.slots[slot].type.num_elements());
    table.sums.push_back({.parts = reinterpret_cast<const float*>(parts[partial]),
                          .num_parts = static_cast<std::int32_t>(num_parts),
                          .count = count,
                          .y = reinterpret_cast<float*>(bases[slot]),
                          .first_block = table.num_blocks});
    table.num_blocks += (count + cuda::kPartsBlock - 1) / cuda::kPartsBlock;
  }
}

void CudaMachine::add_halves(CudaGroupTable& table, const std::vector<int>& slots,
                             const CudaSizes& sizes) const {
  for (const int index : slots) {
    const CudaSlot& slot = plan.slots[static_cast<std::size_t>(index)];
    const std::int64_t count = sizes.capacity(slot.type.num_elements());
    table.halves.push_back(
        {.x = reinterpret_cast<const float*>(bases[static_cast<std::size_t>(index)]),
         .y = reinterpret_cast<std::uint16_t*>(bases[static_cast<std::size_t>(slot.half)]),
         .count = count,
         .first_block = table.num_blocks});
    table.num_blocks += (count + cuda::kHalvesBlock - 1) / cuda::kHalvesBlock;
  }
}

// Copies of what runs do not change, or change together with their copies.
void CudaMachine::copy_resident_halves() {
  if (plan.resident_halves.empty()) return;
  CudaGroupTable table;
  add_halves(table, plan.resident_halves, {});
  CudaBuffer entries;
  const auto bytes = static_cast<std::int64_t>(table.halves.size() * sizeof(cuda::HalfCopy));
  entries.reserve(bytes);
  check_cuda(device().copy(entries.data(), table.halves.data(), bytes, work->stream));
  kernels->halves({.copies = reinterpret_cast<const cuda::HalfCopy*>(entries.data()),
                   .count = static_cast<std::int32_t>(table.halves.size()),
                   .num_blocks = table.num_blocks},
                  work->stream);
  check_cuda(device().launch_error());
  check_cuda(device().synchronize(work->stream));
}

CudaRowProgram CudaMachine::row_program(const Prepared& one, std::size_t launch) const {
  const std::vector<std::size_t>& steps = plan.launches[launch].steps;
  const CudaRowFacts& facts = *plan.steps[steps.front()].step->rows();
  CudaRowProgram program(facts.width, one.sizes.extent(facts.rows), [&](int index) {
    const CudaSlot& slot = plan.slots[static_cast<std::size_t>(index)];
    return CudaRowProgram::SlotFacts{slot.is_stored};
  });
  std::vector<std::byte*> operands;
  for (const std::size_t step : steps)
    plan.steps[step].step->add_to(program, call(one, launch, step, operands));
  return program;
}

CudaProducts CudaMachine::products(const Prepared& one, std::size_t launch) const {
  CudaProducts result;
  std::vector<std::byte*> operands;
  for (const std::size_t step : plan.launches[launch].steps)
    plan.steps[step].step->add_to(result, call(one, launch, step, operands));
  return result;
}

}  // namespace lathe::engine

#include <algorithm>
#include <cstring>

#include "lathe/engine/cuda/cuda_machine.h"

namespace lathe::engine {

void CudaMachine::copy_in(const Feed& feed, const SymbolValues& sizes, const Prepared& one,
                          std::size_t half) {
  std::byte* const block = staging_half(half);
  for (std::size_t i = 0; i < plan.rounded_symbols.size(); ++i) {
    const auto found = sizes.find(plan.rounded_symbols[i]);
    const auto value = static_cast<std::int32_t>(found == sizes.end() ? 0 : found->second);
    std::memcpy(block + i * sizeof value, &value, sizeof value);
  }
  for (std::size_t i = 0; i < one.input_bytes.size(); ++i) {
    const GraphInputs::Input& input = plan.inputs.all()[i];
    const Tensor& tensor = feed.find(input.name)->second;
    const auto found =
        std::find(inputs.slots.begin(), inputs.slots.end(), plan.slot({input.node, 0}));
    std::byte* const to =
        block + inputs.offsets[static_cast<std::size_t>(found - inputs.slots.begin())];
    std::memcpy(to, tensor.bytes(), static_cast<std::size_t>(tensor.num_bytes()));
    std::memset(to + tensor.num_bytes(), 0,
                static_cast<std::size_t>(one.input_bytes[i] - tensor.num_bytes()));
  }
  std::memset(block + to_lines(inputs.bytes) + fault_offset, 0x7f,
              sizeof(std::int32_t));  // none yet
  if (!are_few(bytes_in()))
    check_cuda(device().copy(arena.data(), block, bytes_in(), work->stream));
}

CudaMachine::Begun CudaMachine::copy_out(const SymbolValues& sizes, std::size_t half) {
  std::byte* const block = staging_half(half) + to_lines(inputs.bytes);
  const std::byte* const from = arena.data() + to_lines(inputs.bytes);
  // Few bytes have come back with the launches, many come only as far as they are real.
  const bool are_here = are_few(outputs.bytes);
  if (!are_here) check_cuda(device().copy(block, from, kLine, work->stream));
  Begun run{.half = half, .outputs = {}};
  for (const auto& [name, value] : plan.graph.outputs()) {
    const Type& type = plan.graph.type(value);
    Tensor& tensor = run.outputs.emplace(name, Tensor(type.dtype, type.dims(sizes))).first->second;
    const std::size_t slot = plan.slot(value);
    const auto at = static_cast<std::size_t>(
        std::find(outputs.slots.begin(), outputs.slots.end(), slot) - outputs.slots.begin());
    if (at == outputs.slots.size()) {  // an input, a state or a constant under another name
      check_cuda(
          device().copy(tensor.mutable_bytes(), bases[slot], tensor.num_bytes(), work->stream));
      continue;
    }
    if (!are_here)
      check_cuda(device().copy(block + outputs.offsets[at], bases[slot], tensor.num_bytes(),
                               work->stream));
    run.offsets.emplace_back(name, outputs.offsets[at]);
  }
  check_cuda(device().record(work->ends[half], work->stream));
  return run;
}

void CudaMachine::await(Begun& run) const {
  if (run.is_over) return;
  run.is_over = true;
  check_cuda(device().await(work->ends[run.half]));
  const std::byte* const block = staging_half(run.half) + to_lines(inputs.bytes);
  std::int32_t fault = 0;
  std::memcpy(&fault, block + fault_offset, sizeof fault);
  report_fault(fault);
  for (const auto& [name, offset] : run.offsets) {
    Tensor& tensor = run.outputs.find(name)->second;
    std::memcpy(tensor.mutable_bytes(), block + offset,
                static_cast<std::size_t>(tensor.num_bytes()));
  }
}

void CudaMachine::report_fault(std::int32_t step) const {
  if (step < 0 || static_cast<std::size_t>(step) >= plan.steps.size()) return;
  const NodeId node = plan.steps[static_cast<std::size_t>(step)].node;
  fail("node \"{}\": an id, a label, an index or an offset of {} is outside its range",
       plan.graph.name(node), plan.graph.op(node).name);
}

}  // namespace lathe::engine

#include <algorithm>

#include "lathe/engine/cuda/cuda_machine.h"

namespace lathe::engine {

namespace {

cuda::EmbeddingGradientsArgs gradients_of(const CudaGroupTable& table) {
  cuda::EmbeddingGradientsArgs args;
  args.count = static_cast<std::int32_t>(table.tables.size());
  std::copy(table.tables.begin(), table.tables.end(), args.tables);
  return args;
}

}  // namespace

// Parts of later launches that can begin when this one does.
void CudaMachine::launch_early_parts(const Prepared& one, std::size_t launch) {
  for (std::size_t later = launch; later < plan.launches.size(); ++later) {
    if (plan.launches[later].early != static_cast<int>(launch)) continue;
    check_cuda(device().wait_for(work->side, work->stream));
    kernels->embedding_order(gradients_of(one.groups[later]), work->side);
    check_cuda(device().launch_error());
  }
}

// Waits for what runs beside others until this launch.
void CudaMachine::join_side(std::size_t launch) {
  for (const CudaLaunch& other : plan.launches)
    if (other.joined == static_cast<int>(launch))
      return check_cuda(device().wait_for(work->stream, work->side));
}

void CudaMachine::launch_group(const Prepared& one, std::size_t launch) {
  const CudaGroupTable& table = one.groups[launch];
  const std::byte* const entries = one.tables.data() + one.table_offsets[launch];
  switch (plan.launches[launch].group) {
    case CudaGroup::None:
      return;
    case CudaGroup::Indices: {
      cuda::IndexArgs args;
      args.count = static_cast<std::int32_t>(table.indices.size());
      std::copy(table.indices.begin(), table.indices.end(), args.operations);
      return kernels->indices(args, work->stream);
    }
    case CudaGroup::Formats:
      return kernels->quantize_all({.tensors = reinterpret_cast<const cuda::QuantizeArgs*>(entries),
                                    .count = static_cast<std::int32_t>(table.formats.size()),
                                    .num_blocks = table.num_blocks},
                                   work->stream);
    case CudaGroup::LearnedSteps:
      return kernels->learned_steps(
          {.tensors = reinterpret_cast<const cuda::LearnedStepArgs*>(entries),
           .count = static_cast<std::int32_t>(table.learned_steps.size()),
           .num_blocks = table.num_blocks},
          work->stream);
    case CudaGroup::Vectors:
      return kernels->vectors(
          {.operations = reinterpret_cast<const cuda::VectorOperation*>(entries),
           .count = static_cast<std::int32_t>(table.vectors.size())},
          work->stream);
    case CudaGroup::Tables: {
      const bool is_beside = plan.launches[launch].joined >= 0;
      if (!is_beside) check_cuda(device().wait_for(work->stream, work->side));
      return kernels->embedding_gradients(gradients_of(table),
                                          is_beside ? work->side : work->stream);
    }
    case CudaGroup::Rows: {
      CudaRowProgram program = row_program(one, launch);
      if (const std::optional<cuda::RowChainArgs> chain = program.chain())
        return kernels->row_chain(*chain, work->stream);
      return kernels->row_program(
          program.finish(), reinterpret_cast<const cuda::RowProgramArgs*>(entries), work->stream);
    }
    case CudaGroup::Products: {
      std::vector<std::byte*> operands;
      return products(one, launch)
          .launch(call(one, launch, plan.launches[launch].steps.front(), operands));
    }
    case CudaGroup::Packed: {
      std::vector<std::byte*> operands;
      for (const std::size_t step : plan.launches[launch].steps)
        plan.steps[step].step->launch(call(one, launch, step, operands));
      return;
    }
    case CudaGroup::Halves:
      return kernels->halves({.copies = reinterpret_cast<const cuda::HalfCopy*>(entries),
                              .count = static_cast<std::int32_t>(table.halves.size()),
                              .num_blocks = table.num_blocks},
                             work->stream);
    case CudaGroup::Sums:
      return kernels->add_parts({.sums = reinterpret_cast<const cuda::SummedParts*>(entries),
                                 .count = static_cast<std::int32_t>(table.sums.size()),
                                 .num_blocks = table.num_blocks},
                                work->stream);
    case CudaGroup::Squares:
      return kernels->sum_squares({.tensors = reinterpret_cast<const cuda::SquaredTensor*>(entries),
                                   .num_tensors = static_cast<std::int32_t>(table.squares.size()),
                                   .num_blocks = table.num_blocks,
                                   .parts = reinterpret_cast<double*>(scratch[launch])},
                                  work->stream);
    case CudaGroup::Scalars:
      return kernels->scalars(
          {.operations = reinterpret_cast<const cuda::ScalarOperation*>(entries),
           .count = static_cast<std::int32_t>(table.scalars.size())},
          work->stream);
    case CudaGroup::Adamw:
    case CudaGroup::Sgd:
      return kernels->update({.is_adamw = plan.launches[launch].group == CudaGroup::Adamw,
                              .tensors = reinterpret_cast<const cuda::UpdatedTensor*>(entries),
                              .num_tensors = static_cast<std::int32_t>(table.updates.size()),
                              .num_blocks = table.num_blocks},
                             work->stream);
  }
}

// How many launches were done as stages of one; 0: none.
std::size_t CudaMachine::launch_few_rows(const Prepared& one, std::size_t launch) {
  const auto found = one.few_rows.find(launch);
  if (found == one.few_rows.end()) return 0;
  const auto* const stages =
      reinterpret_cast<const cuda::FewRowsStage*>(one.tables.data() + found->second.offset);
  for (std::size_t i = 0; i < found->second.num_launches; ++i) join_side(launch + i);
  if (!kernels->few_rows({stages, found->second.num_stages}, work->stream)) return 0;
  check_cuda(device().launch_error());
  return found->second.num_launches;
}

void CudaMachine::enqueue(const Prepared& one) {
  std::vector<std::byte*> operands;
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch) {
    launch_early_parts(one, launch);
    std::size_t done = launch_few_rows(one, launch);
    if (done == 0) done = launch_single_row(one, launch);
    if (done > 0) {
      for (const std::size_t end = launch + done; launch + 1 < end;)
        launch_early_parts(one, ++launch);
      continue;
    }
    const CudaLaunch& planned = plan.launches[launch];
    join_side(launch);
    if (planned.joined >= 0) check_cuda(device().wait_for(work->side, work->stream));
    const std::size_t first = planned.steps.empty() ? 0 : planned.steps.front();
    with_place(fmt::format("node \"{}\"", plan.graph.name(plan.steps[first].node)), [&] {
      if (planned.group != CudaGroup::None)
        launch_group(one, launch);
      else
        plan.steps[first].step->launch(call(one, launch, first, operands));
      check_cuda(device().launch_error());
    });
  }
  join_side(plan.launches.size());
  for (const auto& [value, state] : plan.late_updates) {
    const auto from = static_cast<std::size_t>(value), to = static_cast<std::size_t>(state);
    check_cuda(device().copy(bases[to], bases[from], plan.slots[to].type.num_bytes().constant(),
                             work->stream));
  }
}

// Few bytes come in and out by kernels, as part of the capture.
void CudaMachine::enqueue_with_copies(const Prepared& one, std::size_t half) {
  std::byte* const block = staging_half(half);
  if (are_few(bytes_in()))
    check_cuda(device().copy_few(arena.data(), block, bytes_in(), work->stream));
  enqueue(one);
  const std::int64_t behind = to_lines(inputs.bytes);
  if (are_few(outputs.bytes))
    check_cuda(
        device().copy_few(block + behind, arena.data() + behind, outputs.bytes, work->stream));
}

cuda::Capture* CudaMachine::capture(const std::function<void()>& launches,
                                    std::int32_t& num_nodes) const {
  cuda::Capture* made = nullptr;
  check_cuda(device().begin_capture(work->stream));
  try {
    launches();
  } catch (...) {
    device().end_capture(work->stream, &made, &num_nodes);
    if (made != nullptr) device().drop_capture(made);
    throw;
  }
  check_cuda(device().end_capture(work->stream, &made, &num_nodes));
  return made;
}

}  // namespace lathe::engine

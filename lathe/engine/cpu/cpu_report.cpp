#include "lathe/core/graph_text.h"
#include "lathe/engine/cpu/cpu_machine.h"
#include "lathe/engine/origin.h"

namespace lathe::engine {

// How the last run cut a step's work, and which results lie as bfloat16 numbers.
std::string CpuExecutor::Machine::layout(const PlanStep& planned) const {
  std::string text = work_cut(planned);
  for (std::size_t i = 0; i < planned.outputs.size(); ++i) {
    const Type& type = plan.slots[static_cast<std::size_t>(planned.outputs[i])].type;
    if (type.dtype == plan.graph.types(planned.node)[i].dtype) continue;
    text += text.empty() ? "" : ", ";
    text += planned.outputs.size() == 1 ? fmt::format("{}", name(type.dtype))
                                        : fmt::format("#{} {}", i, name(type.dtype));
  }
  return text;
}

// Empty before the first run, and where the step cuts its work itself.
std::string CpuExecutor::Machine::work_cut(const PlanStep& planned) const {
  const Stage& stage = plan.stages[static_cast<std::size_t>(planned.stage)];
  if (last_sizes.empty() || stage.kind == Stage::Kind::Whole || stage.kind == Stage::Kind::Tasks)
    return {};
  if (stage.kind == Stage::Kind::Rows)
    return fmt::format("tiles of {} rows", largest_tile(stage, stage.rows.evaluate(last_sizes)));
  ProductExtents own = extents(*planned.step->as_product(), last_sizes);
  const DepthCut depth = depth_cut(planned, own.depth);
  own.depth = depth.depth;
  const Partition cut = partition(planned, own, depth.pieces);
  const Block block = cut.largest();
  const std::string pieces =
      depth.pieces > 1 ? fmt::format(" in {} pieces of {} rows", depth.pieces, depth.depth) : "";
  if (is_by_rows(stage) && takes_columns(planned, num_blocks(stage, last_sizes)))
    return fmt::format("{} blocks of {} rows, by columns as threads take them{}", cut.row_blocks(),
                       block.rows, pieces);
  return fmt::format("{} blocks of {} x {}{}", cut.count(), block.rows, block.columns, pieces);
}

Size CpuExecutor::Machine::bytes(const PlanStep& planned) const {
  Size total;
  for (const std::vector<int>* list : {&planned.inputs, &planned.outputs})
    for (const int index : *list)
      if (index >= 0 && plan.slots[static_cast<std::size_t>(index)].kind != Slot::Kind::Tile)
        total += plan.slots[static_cast<std::size_t>(index)].type.num_bytes();
  return total;
}

PlanReport CpuExecutor::report() const {
  PlanReport report;
  if (machine_->parameters != nullptr) {
    const PlanReport parameters = machine_->parameters->report();
    report.steps = parameters.steps;
    for (PlannedStep& step : report.steps) step.is_for_states = true;
    report.lowered = "# when states change\n" + parameters.lowered + "# in every run\n";
  }
  for (std::size_t i = 0; i < machine_->plan.steps.size(); ++i) {
    const PlanStep& planned = machine_->plan.steps[i];
    PlannedStep step{
        .name = machine_->plan.graph.name(planned.node),
        .op = machine_->plan.graph.op(planned.node).name,
        .origins = {machine_->plan.graph.name(planned.node)},
        .stage = planned.stage,
        .stage_reason = machine_->plan.stages[static_cast<std::size_t>(planned.stage)].reason,
        .layout = machine_->layout(planned),
        .is_reference = planned.step->is_reference(),
        .choice = planned.step->choice(),
        .flops = planned.flops,
        .bytes = machine_->bytes(planned)};
    if (const Origin* origin = machine_->plan.graph.find_annotation<Origin>(planned.node))
      step.origins = origin->nodes;
    for (int thread = 0; thread < machine_->num_threads(); ++thread)
      step.seconds += machine_->seconds_of(thread, i);
    report.steps.push_back(std::move(step));
  }
  report.lowered += print(machine_->plan.graph);
  report.weight_bytes = machine_->weight_bytes();
  report.arena_bytes = machine_->arena.size();
  report.arena_bytes_unshared = machine_->unshared_bytes;
  report.capacity = machine_->capacity;
  report.last_sizes = machine_->last_sizes;
  report.threads = machine_->num_threads();
  if (machine_->clock) {
    report.stages = machine_->clock->times();
    report.run_seconds = machine_->run_seconds;
  }
  return report;
}

}  // namespace lathe::engine

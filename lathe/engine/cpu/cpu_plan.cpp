#include "lathe/engine/cpu/cpu_plan.h"

#include <algorithm>
#include <set>

#include "lathe/engine/bound_value.h"
#include "lathe/engine/cpu/narrow_values.h"
#include "lathe/engine/memory_plan.h"

namespace lathe::engine {
namespace {

// A tile's rows of every value its stage touches should stay in the second-level cache together
// with the weights; more rows would only help the weights' reuse, which is already enough at 42.
constexpr std::int64_t kTileBytes = std::int64_t{384} << 10;
// A multiple of the micro-kernels' 14 and 6 rows, so that full tiles have no ragged edge.
constexpr std::int64_t kTileGrain = 42;
constexpr std::int64_t kMaxTileRows = 8 * kTileGrain;

// What the weights of a stage may take of the second-level cache, which has 1 MiB or more.
constexpr std::int64_t kStageBytes = std::int64_t{1} << 20;
// Smaller weights do not disturb a tile.
constexpr std::int64_t kProductBytes = std::int64_t{1} << 15;

// A row that takes more than this is no row of anybody's model, and the sums below would overflow.
constexpr std::int64_t kMostRowBytes = std::int64_t{1} << 40;

void make_steps(CpuPlan& plan, Precision precision) {
  for (const NodeId id : plan.graph.topological_order()) {
    plan.doubtful_sizes.add(plan.graph, id);
    if (plan.graph.op(id).is_alias) {
      plan.slot_of[{id, 0}] = plan.slot_of.at(plan.graph.input(id, 0));
      continue;
    }
    std::vector<int> results;
    for (std::size_t i = 0; i < plan.graph.types(id).size(); ++i) {
      const Value value{id, static_cast<std::int32_t>(i)};
      Slot slot;
      slot.type = plan.graph.type(value);
      if (plan.graph.is(id, "input")) slot.kind = Slot::Kind::Input;
      if (plan.graph.is(id, "state")) slot.kind = Slot::Kind::State;
      plan.slot_of[value] = static_cast<int>(plan.slots.size());
      results.push_back(static_cast<int>(plan.slots.size()));
      plan.slots.push_back(std::move(slot));
    }
    if (plan.graph.op(id).is_source) continue;
    PlanStep planned;
    planned.node = id;
    planned.step = make_step(plan.graph, id);
    planned.step->set_precision(precision);
    planned.outputs = results;
    for (const Value& value : plan.graph.inputs(id))
      planned.inputs.push_back(value.is_none() ? -1 : plan.slot_of.at(value));
    check(planned.inputs.size() <= CpuPlan::kMaxOperands && results.size() <= CpuPlan::kMaxOperands,
          "no more operands than a call can hold");
    if (plan.graph.op(id).flops) planned.flops = plan.graph.op(id).flops(plan.graph.call(id));
    plan.steps.push_back(std::move(planned));
  }
}

// Steps over which a product may be moved: its result, and what else the steps behind it need,
// lies in memory meanwhile.
constexpr std::size_t kMostMoved = 16;

// Whether its weight alone is more than a stage of rows may have.
bool is_large_product(const PlanStep& planned) {
  const Product* const product = planned.step->as_product();
  return product != nullptr && product->shared_bytes > kStageBytes;
}

// The steps in the order in which they run, where a product may go to the nearest large ones before
// it that it does not need.
class GatheredSteps {
 public:
  explicit GatheredSteps(std::size_t slots) : made_by_(slots, 0) {}

  void add(PlanStep planned) {
    const std::size_t place = is_large_product(planned) ? place_of(planned) : steps_.size();
    steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(place), std::move(planned));
    for (std::size_t i = place; i < steps_.size(); ++i)
      for (const int slot : steps_[i].outputs) made_by_[static_cast<std::size_t>(slot)] = i + 1;
  }
  std::vector<PlanStep> take() && { return std::move(steps_); }

 private:
  std::size_t place_of(const PlanStep& planned) const {
    std::size_t needed = 0;  // all operands are there behind so many steps
    for (const int slot : planned.inputs)
      if (slot >= 0) needed = std::max(needed, made_by_[static_cast<std::size_t>(slot)]);
    const std::size_t last = steps_.size(), least = last - std::min(last, kMostMoved);
    for (std::size_t end = last; end > needed && end >= least; --end) {
      if (!is_large_product(steps_[end - 1])) continue;
      std::size_t begin = end - 1;
      while (begin > 0 && is_large_product(steps_[begin - 1])) --begin;
      if (begin >= needed) return end;
      end = begin + 1;
    }
    return last;
  }

  std::vector<PlanStep> steps_;
  std::vector<std::size_t> made_by_;  // of a slot: the number of steps up to that one
};

// Large products that do not need each other go one behind another, as the gradients of queries,
// keys and values do: their stage has more to share among threads, and the steps between them,
// which go by rows, may become one stage as well.
void gather_products(CpuPlan& plan) {
  GatheredSteps steps(plan.slots.size());
  for (PlanStep& planned : plan.steps) steps.add(std::move(planned));
  plan.steps = std::move(steps).take();
}

// A state's update lies in the state itself where its step can do that and nobody reads the old
// value afterwards, as a step, an output or another state; any other update is copied at the end.
void bind_updates(CpuPlan& plan) {
  std::vector<bool> is_read_at_the_end(plan.slots.size(), false);
  for (const auto& [name, value] : plan.graph.outputs())
    is_read_at_the_end[plan.slot(value)] = true;
  for (const auto& [state, value] : plan.graph.state_updates())
    is_read_at_the_end[plan.slot(value)] = true;
  for (const auto& [slot, value] : plan.graph.state_updates()) {
    const int state_slot = plan.slot_of.at({slot, 0});
    bool is_in_place = false;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (plan.steps[i].node != value.node) continue;
      for (const InPlace& pair : plan.steps[i].step->in_place()) {
        if (static_cast<std::int32_t>(pair.output) != value.index ||
            plan.graph.input(value.node, pair.input) != Value{slot, 0})
          continue;
        is_in_place = !is_read_besides_its_state(plan.graph, value) &&
                      !is_read_at_the_end[static_cast<std::size_t>(state_slot)];
        for (std::size_t later = i + 1; later < plan.steps.size(); ++later)
          for (const int input : plan.steps[later].inputs)
            is_in_place = is_in_place && input != state_slot;
        if (is_in_place) plan.steps[i].outputs[pair.output] = state_slot;
      }
    }
    if (!is_in_place) plan.late_updates.emplace_back(plan.slot_of.at(value), state_slot);
  }
}

// The result of a whole step lies where an operand does that nobody reads any more, where the step
// can do that: what it writes is near then, because it has just been read.
void reuse_operands(CpuPlan& plan) {
  std::vector<std::size_t> last_reader(plan.slots.size(), 0);
  std::vector<bool> is_kept(plan.slots.size(), false);
  const auto at = [](int slot) { return static_cast<std::size_t>(slot); };
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (const int slot : plan.steps[i].inputs)
      if (slot >= 0) last_reader[at(slot)] = i;
  for (const auto& [name, value] : plan.graph.outputs()) is_kept[plan.slot(value)] = true;
  for (const auto& [value, state_slot] : plan.late_updates) is_kept[at(value)] = true;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    PlanStep& planned = plan.steps[i];
    if (planned.step->rows() != nullptr || planned.step->has_tasks()) continue;
    for (const InPlace& pair : planned.step->in_place()) {
      const int from = planned.outputs[pair.output], to = planned.inputs[pair.input];
      if (to < 0 || is_kept[at(from)] || is_kept[at(to)] || last_reader[at(to)] != i) continue;
      const Slot &result = plan.slots[at(from)], &operand = plan.slots[at(to)];
      if (result.kind != Slot::Kind::Arena || operand.kind != Slot::Kind::Arena ||
          result.type != operand.type || std::ranges::count(planned.inputs, to) != 1)
        continue;
      planned.outputs[pair.output] = to;
      for (std::size_t later = i + 1; later < plan.steps.size(); ++later)
        std::ranges::replace(plan.steps[later].inputs, from, to);
      for (auto& [value, slot] : plan.slot_of)
        if (slot == from) slot = to;
      last_reader[at(to)] = last_reader[at(from)];
    }
  }
}

// Why a step cannot be added to the last stage; empty where it can: nothing there makes what it
// reads, unless row by row.
std::string why_apart(const CpuPlan& plan, const PlanStep& planned, Stage::Kind kind) {
  if (kind == Stage::Kind::Whole) return "mixes rows";
  if (plan.stages.empty()) return "first";
  const Stage& stage = plan.stages.back();
  if (kind == Stage::Kind::Tasks) {
    if (stage.kind != kind) return "is tasks of its own";
    for (const std::size_t earlier : stage.steps) {
      const PlanStep& beside = plan.steps[earlier];
      const auto are_shared = [](const std::vector<int>& written, const std::vector<int>& read) {
        return std::ranges::find_first_of(written, read) != written.end();
      };
      if (are_shared(beside.outputs, planned.inputs))
        return fmt::format("reads all of {}", plan.graph.name(beside.node));
      if (are_shared(planned.outputs, beside.inputs))  // a state's update, in its place
        return fmt::format("writes what {} reads", plan.graph.name(beside.node));
    }
    return {};
  }
  if (kind == Stage::Kind::Products && stage.kind != kind)
    return fmt::format("weights beside it exceed {} KiB", kStageBytes >> 10);
  if (stage.kind != kind) return "after what does not go by rows";
  const RowSpace& space = *planned.step->rows();
  const bool is_rows = kind == Stage::Kind::Rows;
  if (is_rows && stage.rows != space.rows)
    return fmt::format("{} rows after {}", space.rows.text(), stage.rows.text());
  for (std::size_t operand = 0; operand < planned.inputs.size(); ++operand) {
    if (planned.inputs[operand] < 0) continue;
    for (const std::size_t earlier : stage.steps) {
      const RowSpace& produced = *plan.steps[earlier].step->rows();
      for (std::size_t output = 0; output < plan.steps[earlier].outputs.size(); ++output) {
        const bool passes_by_rows =
            is_rows && produced.output_widths[output] != 0 && space.input_widths[operand] != 0;
        if (!passes_by_rows && plan.steps[earlier].outputs[output] == planned.inputs[operand])
          return fmt::format("reads all of {}", plan.graph.name(plan.steps[earlier].node));
      }
    }
  }
  return {};
}

void join_steps(CpuPlan& plan, const std::vector<bool>& is_product, bool joins) {
  plan.stages.clear();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const RowSpace* space = plan.steps[i].step->rows();
    const Stage::Kind kind = is_product[i]                     ? Stage::Kind::Products
                             : space != nullptr                ? Stage::Kind::Rows
                             : plan.steps[i].step->has_tasks() ? Stage::Kind::Tasks
                                                               : Stage::Kind::Whole;
    std::string reason = joins ? why_apart(plan, plan.steps[i], kind) : "alone";
    if (!reason.empty()) {
      plan.stages.emplace_back();
      plan.stages.back().kind = kind;
      plan.stages.back().reason = std::move(reason);
      if (kind == Stage::Kind::Rows) plan.stages.back().rows = space->rows;
    }
    plan.stages.back().steps.push_back(i);
    plan.steps[i].stage = static_cast<int>(plan.stages.size()) - 1;
  }
}

// Tiles pay while the weights of all steps of a stage stay in the second-level cache with them.
// Else each tile would read the weights from farther away, so products leave the stage and go
// through all rows one by one, in blocks.
std::vector<bool> products_of_large_stages(const CpuPlan& plan) {
  std::vector<bool> is_product(plan.steps.size(), false);
  for (const Stage& stage : plan.stages) {
    if (stage.kind != Stage::Kind::Rows) continue;
    std::int64_t bytes = 0;
    for (const std::size_t step : stage.steps)
      if (const Product* product = plan.steps[step].step->as_product())
        bytes += product->shared_bytes;
    if (bytes <= kStageBytes) continue;
    for (const std::size_t step : stage.steps) {
      const Product* const product = plan.steps[step].step->as_product();
      is_product[step] = product != nullptr && product->shared_bytes >= kProductBytes;
    }
  }
  return is_product;
}

void note_row_bytes(CpuPlan& plan) {
  for (const Stage& stage : plan.stages) {
    if (stage.kind != Stage::Kind::Rows) continue;
    for (const std::size_t index : stage.steps) {
      const PlanStep& planned = plan.steps[index];
      const RowSpace& space = *planned.step->rows();
      const auto note_width = [&](int slot, std::int64_t width) {
        if (slot < 0 || width == 0) return;
        Slot& touched = plan.slots[static_cast<std::size_t>(slot)];
        if (width > kMostRowBytes / size_of(touched.type.dtype))
          fail("node \"{}\": a row of {} takes more than 1 TiB", plan.graph.name(planned.node),
               to_text(touched.type));
        touched.row_bytes = width * size_of(touched.type.dtype);
      };
      for (std::size_t operand = 0; operand < planned.inputs.size(); ++operand)
        note_width(planned.inputs[operand], space.input_widths[operand]);
      for (std::size_t result = 0; result < planned.outputs.size(); ++result)
        note_width(planned.outputs[result], space.output_widths[result]);
    }
  }
}

void make_stages(CpuPlan& plan, bool joins) {
  join_steps(plan, std::vector<bool>(plan.steps.size(), false), joins);
  join_steps(plan, products_of_large_stages(plan), joins);
  note_row_bytes(plan);
}

void place_tiles(CpuPlan& plan, Stage& stage) {
  std::vector<std::size_t> touched;
  for (const std::size_t step : stage.steps) {
    for (const int slot : plan.steps[step].inputs)
      if (slot >= 0) touched.push_back(static_cast<std::size_t>(slot));
    for (const int slot : plan.steps[step].outputs)
      touched.push_back(static_cast<std::size_t>(slot));
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  std::int64_t row_bytes = 1;
  for (const std::size_t slot : touched) row_bytes += plan.slots[slot].row_bytes;
  stage.tile_rows =
      std::clamp(kTileBytes / row_bytes / kTileGrain * kTileGrain, kTileGrain, kMaxTileRows);

  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> local;
  for (const std::size_t slot : touched) {
    if (plan.slots[slot].kind != Slot::Kind::Tile) continue;
    Lifetime lifetime{static_cast<int>(stage.steps.size()), 0,
                      stage.tile_rows * plan.slots[slot].row_bytes};
    for (std::size_t position = 0; position < stage.steps.size(); ++position) {
      const PlanStep& planned = plan.steps[stage.steps[position]];
      const auto uses = [&](const std::vector<int>& list) {
        return std::find(list.begin(), list.end(), static_cast<int>(slot)) != list.end();
      };
      if (!uses(planned.inputs) && !uses(planned.outputs)) continue;
      lifetime.first = std::min(lifetime.first, static_cast<int>(position));
      lifetime.last = std::max(lifetime.last, static_cast<int>(position));
    }
    lifetimes.push_back(lifetime);
    local.push_back(slot);
  }
  const MemoryPlan layout = plan_memory(lifetimes);
  for (std::size_t i = 0; i < local.size(); ++i)
    plan.slots[local[i]].tile_offset = layout.offsets[i];
  stage.tile_bytes = layout.total;

  for (const std::size_t step : stage.steps) {
    const RowSpace& space = *plan.steps[step].step->rows();
    for (std::size_t i = 0; i < plan.steps[step].outputs.size(); ++i) {
      if (space.output_widths[i] != 0) continue;
      Slot& slot = plan.slots[static_cast<std::size_t>(plan.steps[step].outputs[i])];
      check(slot.type.dtype == DType::F32 && slot.type.num_elements().is_constant(),
            "sums over rows to be floats of constant shape");
      slot.sum_offset = stage.sum_bytes;
      stage.sum_bytes += (slot.type.num_bytes().constant() + 63) / 64 * 64;
      stage.sums.push_back(plan.steps[step].outputs[i]);
    }
  }
}

void note_reads(CpuPlan& plan, Stage& stage) {
  std::vector<int> made;
  for (const std::size_t step : stage.steps)
    made.insert(made.end(), plan.steps[step].outputs.begin(), plan.steps[step].outputs.end());
  for (const std::size_t step : stage.steps) {
    const PlanStep& planned = plan.steps[step];
    for (std::size_t i = 0; i < planned.inputs.size(); ++i) {
      const int slot = planned.inputs[i];
      const std::int64_t width = planned.step->rows()->input_widths[i];
      if (slot < 0 || width == 0 || std::ranges::find(made, slot) != made.end()) continue;
      const Slot& given = plan.slots[static_cast<std::size_t>(slot)];
      const Stage::Read read{slot, width * size_of(given.type.dtype)};
      if (given.kind == Slot::Kind::Arena &&
          std::ranges::find(stage.reads, read) == stage.reads.end())
        stage.reads.push_back(read);
    }
  }
}

void place_values(CpuPlan& plan) {
  const int after_all = static_cast<int>(plan.stages.size());
  std::vector<int> first(plan.slots.size(), after_all), last(plan.slots.size(), -1);
  for (const PlanStep& planned : plan.steps) {
    for (const int slot : planned.inputs)
      if (slot >= 0) last[static_cast<std::size_t>(slot)] = planned.stage;
    for (const int slot : planned.outputs) {
      first[static_cast<std::size_t>(slot)] =
          std::min(first[static_cast<std::size_t>(slot)], planned.stage);
      last[static_cast<std::size_t>(slot)] =
          std::max(last[static_cast<std::size_t>(slot)], planned.stage);
    }
  }
  for (const auto& [name, value] : plan.graph.outputs())
    last[static_cast<std::size_t>(plan.slot_of.at(value))] = after_all;
  for (const auto& [value, state_slot] : plan.late_updates)
    last[static_cast<std::size_t>(value)] = after_all;
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    Slot& slot = plan.slots[i];
    if (slot.kind != Slot::Kind::Arena) continue;
    slot.first = first[i];
    slot.last = last[i];
    // A value that never leaves its stage needs room for one tile only, in each thread's scratch.
    if (slot.first == slot.last && slot.row_bytes > 0 &&
        plan.stages[static_cast<std::size_t>(slot.first)].kind == Stage::Kind::Rows) {
      slot.kind = Slot::Kind::Tile;
      continue;
    }
    slot.arena_index = plan.arena_slots.size();
    plan.arena_slots.push_back(i);
  }
  for (Stage& stage : plan.stages)
    if (stage.kind == Stage::Kind::Rows) {
      place_tiles(plan, stage);
      note_reads(plan, stage);
    }
}

// Whether a value is one part for each of the images that a symbol counts.
bool is_per_image(const Type& type, const std::string& symbol) {
  if (type.shape.empty() || type.shape[0] != Size::symbol(symbol)) return false;
  return std::all_of(type.shape.begin() + 1, type.shape.end(),
                     [](const Size& size) { return size.is_constant(); });
}

bool has_symbols(const Type& type) {
  return std::ranges::any_of(type.shape, [](const Size& size) { return !size.is_constant(); });
}

bool computes_each_image(const CpuPlan& plan, const PlanStep& planned, const std::string& symbol) {
  const RowSpace* const space = planned.step->rows();
  if (space == nullptr && !planned.step->is_by_images()) return false;
  for (std::size_t i = 0; i < planned.outputs.size(); ++i)
    if (!is_per_image(plan.slots[static_cast<std::size_t>(planned.outputs[i])].type, symbol) ||
        (space != nullptr && space->output_widths[i] == 0))
      return false;
  for (std::size_t i = 0; i < planned.inputs.size(); ++i) {
    if (planned.inputs[i] < 0) continue;
    const Slot& slot = plan.slots[static_cast<std::size_t>(planned.inputs[i])];
    if (slot.kind == Slot::Kind::State && !has_symbols(slot.type)) continue;
    if (!is_per_image(slot.type, symbol) || (space != nullptr && space->input_widths[i] == 0))
      return false;
  }
  return true;
}

// Steps that go by rows alone have their tiles already.
std::string find_image_symbol(const CpuPlan& plan) {
  const std::set<std::string>& symbols = plan.graph.symbols();
  if (symbols.size() != 1 || !plan.graph.state_updates().empty()) return {};
  const std::string& symbol = *symbols.begin();
  const bool has_images = std::ranges::any_of(
      plan.steps, [](const PlanStep& planned) { return planned.step->is_by_images(); });
  if (!has_images || !std::ranges::all_of(plan.steps, [&](const PlanStep& planned) {
        return computes_each_image(plan, planned, symbol);
      }))
    return {};
  for (const GraphInputs::Input& input : plan.inputs.all())
    if (!is_per_image(input.type, symbol)) return {};
  for (const auto& [name, value] : plan.graph.outputs())
    if (!is_per_image(plan.graph.type(value), symbol) ||
        plan.slots[plan.slot(value)].kind != Slot::Kind::Arena)
      return {};
  return symbol;
}

}  // namespace

CpuPlan make_cpu_plan(Graph lowered, Precision precision, const CpuPlanOptions& options) {
  CpuPlan plan;
  plan.graph = std::move(lowered);
  plan.inputs = GraphInputs(plan.graph);
  make_steps(plan, precision);
  if (options.fuses) gather_products(plan);
  if (options.narrows_values) narrow_values(plan);  // while each slot is one step's result
  bind_updates(plan);
  reuse_operands(plan);
  make_stages(plan, options.fuses);
  place_values(plan);
  plan.image_symbol = find_image_symbol(plan);
  return plan;
}

}  // namespace lathe::engine

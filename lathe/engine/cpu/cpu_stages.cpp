#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "lathe/engine/cpu/cpu_machine.h"

namespace lathe::engine {
namespace {

// Sums over rows are made by groups of tiles, each into its own copy, and the copies are added in
// order. How many groups follows from the extents alone, so that the bits do not depend on threads:
// enough for the cores we expect, 16 of 16 texts of 128 tokens, and few enough for the copies to
// stay small.
constexpr std::int64_t kMostGroups = 16;
constexpr std::int64_t kRowsOfGroup = 128;
constexpr std::int64_t kMostSumBytes = std::int64_t{64} << 20;
// Elements of sums that a task adds, of all copies: some hundred KiB.
constexpr std::int64_t kSumGrain = 1 << 11;
constexpr std::int64_t kLeastTileRows = 8;
// Tiles that each thread has where there are rows enough: who ends first takes some of others, so a
// core that others use too costs one of them. Smaller ones would read weights for too few rows.
constexpr std::int64_t kTilesOfThread = 6;
constexpr std::int64_t kRowsOfManyTiles = 64;
// Rows of a piece of what is summed over rows block by block, where the sums are so small that a
// block of them reads far more than it keeps.
constexpr std::int64_t kLeastPiece = 512;
// Of the rows of a tile: more would not stay in the second-level cache until they are needed.
constexpr std::int64_t kMostFetched = std::int64_t{1} << 19;

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Part `index` of `count` nearly equal ones.
std::int64_t begin_of(std::int64_t total, std::int64_t index, std::int64_t count) {
  return total * index / count;
}

std::int64_t num_groups(std::int64_t rows, std::int64_t sum_bytes) {
  const std::int64_t by_memory =
      std::max<std::int64_t>(1, kMostSumBytes / std::max<std::int64_t>(1, sum_bytes));
  return std::clamp<std::int64_t>(rows / kRowsOfGroup, 1, std::min(kMostGroups, by_memory));
}

// Runs what a step does and names its node in an error that passes: the text is made only then.
template <typename Work>
void with_node(const CpuPlan& plan, const PlanStep& planned, const Work& work) {
  try {
    work();
  } catch (const UserError& error) {
    throw error.at(fmt::format("node \"{}\"", plan.graph.name(planned.node)));
  }
}

}  // namespace

// Those of a step that takes all of them whole.
struct CpuExecutor::Machine::Operands {
  std::array<const std::byte*, CpuPlan::kMaxOperands> inputs;
  std::array<std::byte*, CpuPlan::kMaxOperands> outputs;
  Operands(const Machine& machine, const PlanStep& planned) {
    for (std::size_t i = 0; i < planned.inputs.size(); ++i)
      inputs[i] = planned.inputs[i] < 0 ? nullptr : machine.base(planned.inputs[i]);
    for (std::size_t i = 0; i < planned.outputs.size(); ++i)
      outputs[i] = machine.written(planned.outputs[i]);
  }
};

WholeCall CpuExecutor::Machine::whole_call(const PlanStep& planned, const Operands& operands,
                                           const SymbolValues& sizes, const ParallelTasks& dealt,
                                           const ParallelTasks& by_rows) {
  return {*kernels,
          plan.graph,
          planned.node,
          sizes,
          {operands.inputs.data(), planned.inputs.size()},
          {operands.outputs.data(), planned.outputs.size()},
          scratch,
          shared,
          dealt,
          by_rows};
}

void CpuExecutor::Machine::run_rows(const Stage& stage, const SymbolValues& sizes) {
  const std::int64_t rows = stage.rows.evaluate(sizes);
  std::int64_t step_bytes = 0;
  for (const std::size_t index : stage.steps)
    step_bytes = std::max(step_bytes, plan.steps[index].step->scratch_bytes(
                                          *kernels, std::min(rows, stage.tile_rows)));
  for (AlignedBuffer& buffer : scratch) buffer.reserve(step_scratch(stage) + step_bytes);
  if (!stage.sums.empty()) {
    run_groups(stage, rows);
    return;
  }
  const std::int64_t tiles = num_tiles(stage, rows);
  parallel(
      tiles,
      [&](std::int64_t tile, int thread) {
        const std::int64_t begin = begin_of(rows, tile, tiles);
        run_tile(stage, begin, begin_of(rows, tile + 1, tiles) - begin, thread, nullptr);
      },
      ThreadPool::Shares::Ranges);
}

// As many for each thread, and few rows are shared among all. A row has the same bits in every
// tile.
std::int64_t CpuExecutor::Machine::num_tiles(const Stage& stage, std::int64_t rows) const {
  const std::int64_t many =
      num_threads() == 1 ? 1 : std::min(kTilesOfThread, rows / (num_threads() * kRowsOfManyTiles));
  const std::int64_t turns =
      std::max(many, divide_up(divide_up(rows, stage.tile_rows), num_threads()));
  return std::max(divide_up(rows, stage.tile_rows),
                  std::min(turns * num_threads(), divide_up(rows, kLeastTileRows)));
}

std::int64_t CpuExecutor::Machine::largest_tile(const Stage& stage, std::int64_t rows) const {
  if (rows == 0) return 0;
  if (stage.sums.empty()) return divide_up(rows, num_tiles(stage, rows));
  const std::int64_t of_group = divide_up(rows, num_groups(rows, stage.sum_bytes));
  return divide_up(of_group, divide_up(of_group, stage.tile_rows));
}

// What is summed over rows has other bits in other tiles: here they follow from the extents.
void CpuExecutor::Machine::run_groups(const Stage& stage, std::int64_t rows) {
  const std::int64_t groups = num_groups(rows, stage.sum_bytes);
  reserve_copies(groups, stage.sum_bytes);
  parallel(
      groups,
      [&](std::int64_t group, int thread) {
        std::byte* const sums = copy_of_sums(group);
        std::memset(sums, 0, static_cast<std::size_t>(stage.sum_bytes));
        const std::int64_t first = begin_of(rows, group, groups);
        const std::int64_t count = begin_of(rows, group + 1, groups) - first;
        const std::int64_t tiles = divide_up(count, stage.tile_rows);
        for (std::int64_t tile = 0; tile < tiles; ++tile) {
          const std::int64_t begin = begin_of(count, tile, tiles);
          run_tile(stage, first + begin, begin_of(count, tile + 1, tiles) - begin, thread, sums);
        }
      },
      ThreadPool::Shares::Ranges);
  std::vector<Sum> totals;
  for (const int index : stage.sums) {
    const Slot& slot = plan.slots[static_cast<std::size_t>(index)];
    totals.push_back({index, slot.sum_offset, groups});
  }
  add_copies(totals);
}

void CpuExecutor::Machine::reserve_copies(std::int64_t copies, std::int64_t bytes) {
  if (std::ssize(group_sums) < copies) group_sums.resize(static_cast<std::size_t>(copies));
  for (std::int64_t i = 0; i < copies; ++i) group_sums[static_cast<std::size_t>(i)].reserve(bytes);
}

std::byte* CpuExecutor::Machine::copy_of_sums(std::int64_t copy) {
  return group_sums[static_cast<std::size_t>(copy)].data();
}

// Copy by copy for each element.
void CpuExecutor::Machine::add_copies(const std::vector<Sum>& sums) {
  const auto count_of = [&](const Sum& sum) {
    return plan.slots[static_cast<std::size_t>(sum.slot)].type.num_elements().constant();
  };
  struct Chunk {
    const Sum* sum;
    std::int64_t first;
  };
  std::vector<Chunk> chunks;
  for (const Sum& sum : sums)
    for (std::int64_t first = 0; first < count_of(sum); first += kSumGrain)
      chunks.push_back({&sum, first});
  parallel(std::ssize(chunks), [&](std::int64_t task, int) {
    const auto [sum, first] = chunks[static_cast<std::size_t>(task)];
    const std::int64_t count = std::min(kSumGrain, count_of(*sum) - first);
    float* const total = reinterpret_cast<float*>(written(sum->slot)) + first;
    const auto copy = [&](std::int64_t index) {
      return reinterpret_cast<const float*>(copy_of_sums(index) + sum->offset) + first;
    };
    std::memcpy(total, copy(0), static_cast<std::size_t>(count) * sizeof(float));
    for (std::int64_t index = 1; index < sum->copies; ++index) {
      const float* const more = copy(index);
      for (std::int64_t i = 0; i < count; ++i) total[i] += more[i];
    }
  });
}

// Kernels read many rows side by side, which no processor sees coming when they are far away: each
// of them is read through once before.
void CpuExecutor::Machine::fetch_rows(const Stage& stage, std::int64_t begin,
                                      std::int64_t rows) const {
  constexpr std::int64_t kLine = 64;
  std::int64_t bytes = 0;
  for (const Stage::Read& read : stage.reads) bytes += rows * read.row_bytes;
  if (bytes > kMostFetched) return;
  for (const Stage::Read& read : stage.reads) {
    const std::byte* const from = base(read.slot) + begin * read.row_bytes;
    std::byte all{};
    for (std::int64_t at = 0; at < rows * read.row_bytes; at += kLine) all |= from[at];
    asm volatile("" : : "r"(all));  // so that they are read
  }
}

void CpuExecutor::Machine::run_tile(const Stage& stage, std::int64_t begin, std::int64_t rows,
                                    int thread, std::byte* sums) {
  std::byte* const local = scratch[static_cast<std::size_t>(thread)].data();
  const auto locate = [&](int index, std::int64_t width) -> std::byte* {
    if (index < 0) return nullptr;
    const Slot& slot = plan.slots[static_cast<std::size_t>(index)];
    if (slot.kind == Slot::Kind::Tile) return local + slot.tile_offset;
    // The width is this step's: another stage may walk the same bytes in other rows under the name
    // of a reshape.
    return written(index) + begin * width * size_of(slot.type.dtype);
  };
  std::array<const std::byte*, CpuPlan::kMaxOperands> inputs;
  std::array<std::byte*, CpuPlan::kMaxOperands> outputs;
  fetch_rows(stage, begin, rows);
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = plan.steps[index];
    const RowSpace& space = *planned.step->rows();
    for (std::size_t i = 0; i < planned.inputs.size(); ++i)
      inputs[i] = locate(planned.inputs[i], space.input_widths[i]);
    for (std::size_t i = 0; i < planned.outputs.size(); ++i) {
      const Slot& slot = plan.slots[static_cast<std::size_t>(planned.outputs[i])];
      outputs[i] = space.output_widths[i] == 0 ? sums + slot.sum_offset
                                               : locate(planned.outputs[i], space.output_widths[i]);
    }
    time_step(thread, index, [&] {
      with_node(plan, planned, [&] {
        planned.step->run_rows({*kernels,
                                rows,
                                {inputs.data(), planned.inputs.size()},
                                {outputs.data(), planned.outputs.size()},
                                local + step_scratch(stage)});
      });
    });
  }
}

// By the extents alone, as groups are.
DepthCut CpuExecutor::Machine::depth_cut(const PlanStep& planned, std::int64_t depth) {
  const bool is_sum = planned.step->rows()->output_widths[0] == 0;
  if (!is_sum || planned.step->as_product()->shared_bytes > kMostCutBytes) return {1, depth};
  const std::int64_t pieces = std::clamp<std::int64_t>(depth / kLeastPiece, 1, kMostGroups);
  return {pieces, (depth + pieces - 1) / pieces};
}

void CpuExecutor::Machine::run_whole(const Stage& stage, const SymbolValues& sizes) {
  const auto sharing = [&](ThreadPool::Shares shares) -> ParallelTasks {
    return [this, shares](std::int64_t tasks, const std::function<void(std::int64_t, int)>& task) {
      parallel(tasks, task, shares);
    };
  };
  const ParallelTasks dealt = sharing(ThreadPool::Shares::Dealt);
  const ParallelTasks by_rows = sharing(ThreadPool::Shares::Ranges);
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = plan.steps[index];
    const Operands operands(*this, planned);
    const auto start =
        timing ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    with_node(plan, planned, [&] {
      planned.step->run_whole(whole_call(planned, operands, sizes, dealt, by_rows));
    });
    // A whole step keeps all threads busy, so its wall time counts once for each.
    if (timing)
      seconds_of(0, index) +=
          num_threads() *
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
}

void CpuExecutor::Machine::run_tasks(const Stage& stage, const SymbolValues& sizes) {
  std::vector<Operands> operands;
  std::vector<WholeCall> calls;
  std::vector<std::int64_t> ends;        // of the steps' tasks among those of all
  operands.reserve(stage.steps.size());  // calls point into it
  calls.reserve(stage.steps.size());
  static const ParallelTasks nobody;
  std::int64_t tasks = 0;
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = plan.steps[index];
    calls.push_back(
        whole_call(planned, operands.emplace_back(*this, planned), sizes, nobody, nobody));
    with_node(plan, planned, [&] { tasks += planned.step->num_tasks(calls.back()); });
    ends.push_back(tasks);
  }
  parallel(tasks, [&](std::int64_t task, int thread) {
    const auto at = static_cast<std::size_t>(std::ranges::upper_bound(ends, task) - ends.begin());
    const std::size_t index = stage.steps[at];
    const PlanStep& planned = plan.steps[index];
    time_step(thread, index, [&] {
      with_node(plan, planned,
                [&] { planned.step->run_task(calls[at], task - (at == 0 ? 0 : ends[at - 1])); });
    });
  });
}

void CpuExecutor::Machine::run(const Stage& stage, const SymbolValues& sizes) {
  switch (stage.kind) {
    case Stage::Kind::Rows:
      return run_rows(stage, sizes);
    case Stage::Kind::Products:
      return run_products(stage, sizes);
    case Stage::Kind::Whole:
      return run_whole(stage, sizes);
    case Stage::Kind::Tasks:
      return run_tasks(stage, sizes);
  }
}

}  // namespace lathe::engine

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "lathe/engine/cpu/cpu_machine.h"

namespace lathe::engine {
namespace {

// Sums over rows are made by groups of tiles, each into its own copy, and the copies are added in
// order. How many groups follows from the extents alone, so that the bits do not depend on threads:
// enough for the cores we expect, few enough for the copies to stay small.
constexpr std::int64_t kMostGroups = 16;
constexpr std::int64_t kTilesOfGroup = 4;
constexpr std::int64_t kMostSumBytes = std::int64_t{64} << 20;
// Elements of sums that a task adds, of all copies: some hundred KiB.
constexpr std::int64_t kSumGrain = 1 << 11;
constexpr std::int64_t kLeastTileRows = 8;

std::int64_t num_groups(std::int64_t tiles, std::int64_t sum_bytes) {
  const std::int64_t by_memory =
      std::max<std::int64_t>(1, kMostSumBytes / std::max<std::int64_t>(1, sum_bytes));
  return std::clamp<std::int64_t>(tiles / kTilesOfGroup, 1, std::min(kMostGroups, by_memory));
}

}  // namespace

void CpuExecutor::Machine::run_rows(const Stage& stage, const SymbolValues& sizes) {
  const std::int64_t rows = stage.rows.evaluate(sizes);
  const std::int64_t tile_rows = rows_of_tile(stage, rows);
  const std::int64_t tiles = (rows + tile_rows - 1) / tile_rows;
  std::int64_t step_bytes = 0;
  for (const std::size_t index : stage.steps)
    step_bytes = std::max(
        step_bytes, plan.steps[index].step->scratch_bytes(*kernels, std::min(rows, tile_rows)));
  for (AlignedBuffer& buffer : scratch) buffer.reserve(step_scratch(stage) + step_bytes);
  if (!stage.sums.empty()) {
    run_groups(stage, rows, tiles);
    return;
  }
  parallel(tiles, [&](std::int64_t tile, int thread) {
    const std::int64_t begin = tile * tile_rows;
    run_tile(stage, begin, std::min(tile_rows, rows - begin), thread, nullptr);
  });
}

// Few rows are shared among all threads. A row has the same bits in every tile, but what is summed
// over rows has not: there the tiles are the plan's.
std::int64_t CpuExecutor::Machine::rows_of_tile(const Stage& stage, std::int64_t rows) const {
  if (!stage.sums.empty()) return stage.tile_rows;
  const std::int64_t share = (rows + num_threads() - 1) / num_threads();
  return std::min(stage.tile_rows, std::max(share, kLeastTileRows));
}

void CpuExecutor::Machine::run_groups(const Stage& stage, std::int64_t rows, std::int64_t tiles) {
  const std::int64_t groups = num_groups(tiles, stage.sum_bytes);
  if (static_cast<std::int64_t>(group_sums.size()) < groups)
    group_sums.resize(static_cast<std::size_t>(groups));
  parallel(groups, [&](std::int64_t group, int thread) {
    AlignedBuffer& sums = group_sums[static_cast<std::size_t>(group)];
    sums.reserve(stage.sum_bytes);
    std::memset(sums.data(), 0, static_cast<std::size_t>(stage.sum_bytes));
    for (std::int64_t tile = tiles * group / groups; tile < tiles * (group + 1) / groups; ++tile) {
      const std::int64_t begin = tile * stage.tile_rows;
      run_tile(stage, begin, std::min(stage.tile_rows, rows - begin), thread, sums.data());
    }
  });
  // Add the groups' copies, group by group for each element.
  const auto count_of = [&](int index) {
    return plan.slots[static_cast<std::size_t>(index)].type.num_elements().constant();
  };
  struct Chunk {
    int slot;
    std::int64_t first;
  };
  std::vector<Chunk> chunks;
  for (const int index : stage.sums)
    for (std::int64_t first = 0; first < count_of(index); first += kSumGrain)
      chunks.push_back({index, first});
  parallel(std::ssize(chunks), [&](std::int64_t task, int) {
    const auto [index, first] = chunks[static_cast<std::size_t>(task)];
    const std::int64_t offset = plan.slots[static_cast<std::size_t>(index)].sum_offset;
    const std::int64_t count = std::min(kSumGrain, count_of(index) - first);
    float* const total = reinterpret_cast<float*>(written(index)) + first;
    const auto copy = [&](std::int64_t group) {
      return reinterpret_cast<const float*>(group_sums[static_cast<std::size_t>(group)].data() +
                                            offset) +
             first;
    };
    std::memcpy(total, copy(0), static_cast<std::size_t>(count) * sizeof(float));
    for (std::int64_t group = 1; group < groups; ++group) {
      const float* const more = copy(group);
      for (std::int64_t i = 0; i < count; ++i) total[i] += more[i];
    }
  });
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
    const auto start =
        timing ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    try {
      planned.step->run_rows({*kernels,
                              rows,
                              {inputs.data(), planned.inputs.size()},
                              {outputs.data(), planned.outputs.size()},
                              local + step_scratch(stage)});
    } catch (const UserError& error) {
      throw error.at(fmt::format("node \"{}\"", plan.graph.name(planned.node)));
    }
    if (timing)
      seconds_of(thread, index) +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
}

ProductExtents CpuExecutor::Machine::extents(const Product& product,
                                             const SymbolValues& sizes) const {
  return {product.rows.evaluate(sizes), product.columns.evaluate(sizes),
          product.depth.evaluate(sizes)};
}

Partition CpuExecutor::Machine::partition(const PlanStep& planned,
                                          const ProductExtents& extents) const {
  return make_partition(extents, planned.step->block_grain(*kernels), num_threads(),
                        planned.step->block_limits());
}

// Comparing all cuts takes microseconds, and a forward pass of BERT-base has 72 products.
const Partition& CpuExecutor::Machine::known_partition(std::size_t step,
                                                       const ProductExtents& extents) {
  std::optional<Cut>& cut = cuts[step];
  if (!cut || cut->extents != extents) cut = Cut{extents, partition(plan.steps[step], extents)};
  return cut->partition;
}

void CpuExecutor::Machine::run_products(const Stage& stage, const SymbolValues& sizes) {
  struct Part {
    std::size_t index = 0;
    const PlanStep* planned = nullptr;
    ProductExtents extents;
    Partition partition;
    std::int64_t end = 0;  // of its blocks among those of all parts
    std::array<const std::byte*, CpuPlan::kMaxOperands> inputs = {};
    std::array<std::byte*, CpuPlan::kMaxOperands> outputs = {};
  };
  std::vector<Part> parts;
  parts.reserve(stage.steps.size());
  std::int64_t blocks = 0, bytes = 0;
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = plan.steps[index];
    const ProductExtents whole = extents(*planned.step->as_product(), sizes);
    const Partition& cut = known_partition(index, whole);
    blocks += cut.count();
    bytes = std::max(bytes, planned.step->block_scratch_bytes(*kernels, cut.largest()));
    Part& part = parts.emplace_back(Part{index, &planned, whole, cut, blocks});
    for (std::size_t i = 0; i < planned.inputs.size(); ++i)
      part.inputs[i] = planned.inputs[i] < 0 ? nullptr : base(planned.inputs[i]);
    for (std::size_t i = 0; i < planned.outputs.size(); ++i)
      part.outputs[i] = written(planned.outputs[i]);
  }
  for (AlignedBuffer& buffer : scratch) buffer.reserve(bytes);
  parallel(blocks, [&](std::int64_t task, int thread) {
    const auto part = std::upper_bound(parts.begin(), parts.end(), task,
                                       [](std::int64_t at, const Part& p) { return at < p.end; });
    const auto start =
        timing ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    part->planned->step->run_block(
        {*kernels,
         part->extents,
         part->partition.block(task - (part->end - part->partition.count())),
         {part->inputs.data(), part->planned->inputs.size()},
         {part->outputs.data(), part->planned->outputs.size()},
         scratch[static_cast<std::size_t>(thread)].data()});
    if (timing)
      seconds_of(thread, part->index) +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
}

void CpuExecutor::Machine::run_whole(const Stage& stage, const SymbolValues& sizes) {
  const std::function<void(std::int64_t, const std::function<void(std::int64_t, int)>&)>
      run_parallel = [&](std::int64_t tasks, const std::function<void(std::int64_t, int)>& task) {
        parallel(tasks, task);
      };
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = plan.steps[index];
    std::array<const std::byte*, CpuPlan::kMaxOperands> inputs;
    std::array<std::byte*, CpuPlan::kMaxOperands> outputs;
    for (std::size_t i = 0; i < planned.inputs.size(); ++i)
      inputs[i] = planned.inputs[i] < 0 ? nullptr : base(planned.inputs[i]);
    for (std::size_t i = 0; i < planned.outputs.size(); ++i)
      outputs[i] = written(planned.outputs[i]);
    const auto start =
        timing ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    with_place(fmt::format("node \"{}\"", plan.graph.name(planned.node)), [&] {
      planned.step->run_whole({*kernels,
                               plan.graph,
                               planned.node,
                               sizes,
                               {inputs.data(), planned.inputs.size()},
                               {outputs.data(), planned.outputs.size()},
                               scratch,
                               run_parallel});
    });
    // A whole step keeps all threads busy, so its wall time counts once for each.
    if (timing)
      seconds_of(0, index) +=
          num_threads() *
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
}

void CpuExecutor::Machine::run(const Stage& stage, const SymbolValues& sizes) {
  switch (stage.kind) {
    case Stage::Kind::Rows:
      return run_rows(stage, sizes);
    case Stage::Kind::Products:
      return run_products(stage, sizes);
    case Stage::Kind::Whole:
      return run_whole(stage, sizes);
  }
}

}  // namespace lathe::engine

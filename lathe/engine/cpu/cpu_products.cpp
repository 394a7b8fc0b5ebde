#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "lathe/engine/cpu/cpu_machine.h"

namespace lathe::engine {
namespace {

// Of a product whose depth is cut, for each thread.
constexpr std::int64_t kBlocksOfThread = 4;

}  // namespace

ProductExtents CpuExecutor::Machine::extents(const Product& product,
                                             const SymbolValues& sizes) const {
  return {product.rows.evaluate(sizes), product.columns.evaluate(sizes),
          product.depth.evaluate(sizes)};
}

Partition CpuExecutor::Machine::partition(const PlanStep& planned, const ProductExtents& extents,
                                          std::int64_t pieces) const {
  // Pieces are blocks enough for as many threads, but large ones: who ends first could not help.
  const std::int64_t wanted = pieces > 1 ? kBlocksOfThread * num_threads() : num_threads();
  const auto threads = num_threads() == 1 ? 1 : static_cast<int>((wanted + pieces - 1) / pieces);
  return make_partition(extents, planned.step->block_grain(*kernels), threads,
                        planned.step->block_limits());
}

// Comparing all cuts takes microseconds, and a forward pass of BERT-base has 72 products.
const Partition& CpuExecutor::Machine::known_partition(std::size_t step,
                                                       const ProductExtents& extents,
                                                       std::int64_t pieces) {
  std::optional<Cut>& cut = cuts[step];
  if (!cut || cut->extents != extents)
    cut = Cut{extents, partition(plan.steps[step], extents, pieces)};
  return cut->partition;
}

struct CpuExecutor::Machine::ProductPart {
  std::size_t index = 0;
  const PlanStep* planned = nullptr;
  ProductExtents extents;
  Partition partition;
  std::int64_t piece = 0, pieces = 1;  // of the depth
  std::array<const std::byte*, CpuPlan::kMaxOperands> inputs = {};
  std::array<std::byte*, CpuPlan::kMaxOperands> outputs = {};
};

void CpuExecutor::Machine::run_block(const ProductPart& part, const Block& block, int thread,
                                     const std::byte* rows, std::int64_t next_column) {
  time_step(thread, part.index, [&] {
    part.planned->step->run_block({*kernels,
                                   part.extents,
                                   block,
                                   {part.inputs.data(), part.planned->inputs.size()},
                                   {part.outputs.data(), part.planned->outputs.size()},
                                   scratch[static_cast<std::size_t>(thread)].data(),
                                   rows,
                                   next_column});
  });
}

void CpuExecutor::Machine::run_products(const Stage& stage, const SymbolValues& sizes) {
  std::vector<ProductPart> parts;
  std::vector<Sum> sums;
  bool is_by_rows = false;
  std::int64_t blocks = 0, bytes = 0, kept_bytes = 0, sum_bytes = 0, most_pieces = 0;
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = plan.steps[index];
    const ProductExtents whole = extents(*planned.step->as_product(), sizes);
    const auto [pieces, depth] = depth_cut(planned, whole.depth);
    const Partition& cut = known_partition(index, {whole.rows, whole.columns, depth}, pieces);
    bytes = std::max(bytes, planned.step->block_scratch_bytes(*kernels, cut.largest()));
    is_by_rows = is_by_rows || planned.step->is_by_rows();
    kept_bytes = std::max(kept_bytes, planned.step->kept_bytes(cut.largest().rows));
    for (std::int64_t p = 0; p < pieces; ++p) {
      blocks += cut.count();
      const std::int64_t first = p * depth;
      const ProductExtents own{whole.rows, whole.columns, std::min(depth, whole.depth - first)};
      ProductPart& part = parts.emplace_back(ProductPart{index, &planned, own, cut, p, pieces});
      for (std::size_t i = 0; i < planned.inputs.size(); ++i)
        if (planned.inputs[i] >= 0)
          part.inputs[i] =
              base(planned.inputs[i]) +
              first * planned.step->rows()->input_widths[i] *
                  size_of(plan.slots[static_cast<std::size_t>(planned.inputs[i])].type.dtype);
      for (std::size_t i = 0; i < planned.outputs.size(); ++i)
        part.outputs[i] = written(planned.outputs[i]);
    }
    if (pieces == 1) continue;
    sums.push_back({planned.outputs[0], sum_bytes, pieces});
    sum_bytes += (planned.step->as_product()->shared_bytes + 63) / 64 * 64;
    most_pieces = std::max(most_pieces, pieces);
  }
  // Pieces have copies of their own, to be added in order.
  reserve_copies(most_pieces, sum_bytes);
  for (ProductPart& part : parts)
    for (const Sum& sum : sums)
      if (part.planned->outputs[0] == sum.slot)
        part.outputs[0] = copy_of_sums(part.piece) + sum.offset;
  for (AlignedBuffer& buffer : scratch) buffer.reserve(bytes);
  if (is_by_rows)
    run_by_rows(parts, blocks, kept_bytes);
  else
    run_blocks(parts);
  add_copies(sums);
}

// Small weights stay in the caches of every core, and what matters is where the rows are: blocks
// are in the order of rows, so that a thread begins with those that it has worked on in the stage
// before. Of large weights, or sums over all rows, threads that start together read the same.
void CpuExecutor::Machine::run_blocks(std::span<const ProductPart> parts) {
  struct Task {
    const ProductPart* part;
    std::int64_t block;
    double place;  // of its rows, as a share of all
  };
  const auto middle = [](std::int64_t part, std::int64_t count) {
    return (static_cast<double>(part) + 0.5) / static_cast<double>(count);
  };
  std::vector<Task> tasks;
  bool has_places = true;
  for (const ProductPart& part : parts) {
    const bool is_sum = part.planned->step->rows()->output_widths[0] == 0;
    has_places = has_places && (!is_sum || part.pieces > 1) &&
                 part.planned->step->as_product()->shared_bytes <= kMostCutBytes;
    const std::int64_t row_blocks = part.partition.row_blocks();
    for (std::int64_t block = 0; block < part.partition.count(); ++block)
      tasks.push_back(
          {&part, block,
           is_sum ? middle(part.piece, part.pieces) : middle(block % row_blocks, row_blocks)});
  }
  if (has_places) std::ranges::stable_sort(tasks, {}, &Task::place);
  parallel(
      std::ssize(tasks),
      [&](std::int64_t index, int thread) {
        const auto& [part, block, place] = tasks[static_cast<std::size_t>(index)];
        run_block(*part, part->partition.block(block), thread, nullptr, -1);
      },
      has_places ? ThreadPool::Shares::Ranges : ThreadPool::Shares::Dealt);
}

// Each thread begins with rows of its own, or some threads with the same ones, and keeps what it
// makes of them while it takes their blocks. Who has none left helps with other rows: cores are not
// equally fast, so blocks are small.
void CpuExecutor::Machine::run_by_rows(std::span<const ProductPart> parts, std::int64_t blocks,
                                       std::int64_t kept_bytes) {
  struct Group {  // blocks that read the same rows
    const std::byte* x = nullptr;
    std::int64_t depth = 0, row = 0, rows = 0;
    bool is_kept = false;
    std::vector<std::pair<const ProductPart*, Block>> blocks = {};
    bool reads_same(const Group& other) const {
      return x == other.x && depth == other.depth && row == other.row && rows == other.rows &&
             is_kept == other.is_kept;
    }
  };
  std::vector<Group> groups;
  for (const ProductPart& part : parts) {
    // Blocks of the same columns are neighbours, so that those of the same rows are as far apart as
    // there are cuts of rows.
    std::vector<std::size_t> group_of;
    for (std::int64_t i = 0; i < part.partition.count(); ++i) {
      const Block block = part.partition.block(i);
      if (i < part.partition.row_blocks()) {
        const Group wanted{part.inputs[0], part.extents.depth, block.row, block.rows,
                           part.planned->step->kept_bytes(block.rows) > 0};
        const auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& other) {
          return other.reads_same(wanted);
        });
        group_of.push_back(static_cast<std::size_t>(group - groups.begin()));
        if (group == groups.end()) groups.push_back(wanted);
      }
      const auto row_part = static_cast<std::size_t>(i % part.partition.row_blocks());
      groups[group_of[row_part]].blocks.emplace_back(&part, block);
    }
  }
  kept.resize(scratch.size());
  for (AlignedBuffer& buffer : kept) buffer.reserve(kept_bytes);
  std::vector<const Group*> kept_group(kept.size());  // whose rows a thread has
  std::vector<std::atomic<std::size_t>> taken(groups.size());
  const auto threads = static_cast<std::size_t>(num_threads());
  const std::size_t neighbours = std::max<std::size_t>(1, threads / groups.size());
  parallel(blocks, [&](std::int64_t, int thread) {
    const auto own = static_cast<std::size_t>(thread);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::size_t index = (own * groups.size() / threads + i) % groups.size();
      const Group& group = groups[index];
      const std::size_t mine = taken[index].fetch_add(1, std::memory_order_relaxed);
      if (mine >= group.blocks.size()) continue;
      const auto& [part, block] = group.blocks[mine];
      const Step& step = *part->planned->step;
      if (group.is_kept && kept_group[own] != &group) {
        kept_group[own] = &group;
        time_step(thread, part->index, [&] {
          step.keep_rows(reinterpret_cast<const float*>(group.x) + group.row * group.depth,
                         group.rows, kept[own].data());
        });
      }
      const std::size_t next = mine + neighbours;
      const bool is_same = next < group.blocks.size() && group.blocks[next].first == part;
      return run_block(*part, block, thread, group.is_kept ? kept[own].data() : nullptr,
                       is_same ? group.blocks[next].second.column : -1);
    }
  });
}

}  // namespace lathe::engine

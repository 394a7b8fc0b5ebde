#include <algorithm>
#include <array>
#include <utility>

#include "lathe/engine/cpu/column_pieces.h"
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

bool CpuExecutor::Machine::is_by_rows(const Stage& stage) const {
  return std::ranges::any_of(
      stage.steps, [&](std::size_t index) { return plan.steps[index].step->is_by_rows(); });
}

// Of a stage of so many blocks that go by rows. A block for each thread is not cut any finer.
bool CpuExecutor::Machine::takes_columns(const PlanStep& planned, std::int64_t blocks) const {
  return blocks > num_threads() && planned.step->block_limits().cuts_columns;
}

std::int64_t CpuExecutor::Machine::num_blocks(const Stage& stage, const SymbolValues& sizes) const {
  std::int64_t blocks = 0;
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = plan.steps[index];
    ProductExtents own = extents(*planned.step->as_product(), sizes);
    const DepthCut cut = depth_cut(planned, own.depth);
    own.depth = cut.depth;
    blocks += cut.pieces * partition(planned, own, cut.pieces).count();
  }
  return blocks;
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
  std::int64_t blocks = 0, bytes = 0, sum_bytes = 0, most_pieces = 0;
  for (const std::size_t index : stage.steps) {
    const PlanStep& planned = plan.steps[index];
    const ProductExtents whole = extents(*planned.step->as_product(), sizes);
    const auto [pieces, depth] = depth_cut(planned, whole.depth);
    const Partition& cut = known_partition(index, {whole.rows, whole.columns, depth}, pieces);
    bytes = std::max(bytes, planned.step->block_scratch_bytes(*kernels, cut.largest()));
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
  if (is_by_rows(stage))
    run_by_rows(parts, blocks);
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
// makes of them while it takes their columns. Who has none left helps with other rows.
void CpuExecutor::Machine::run_by_rows(std::span<const ProductPart> parts, std::int64_t blocks) {
  struct Columns {  // blocks of one part, one behind another
    const ProductPart* part = nullptr;
    Partition cut;
    std::int64_t row_block = 0;
    Block merged(std::int64_t first, std::int64_t count) const {
      const auto at = [&](std::int64_t i) { return cut.block(row_block + i * cut.row_blocks()); };
      Block block = at(first);
      const Block last = at(first + count - 1);
      block.columns = last.column + last.columns - block.column;
      return block;
    }
  };
  struct Rows {  // all blocks that read the same
    const std::byte* x = nullptr;
    std::int64_t depth = 0, row = 0, rows = 0;
    bool are_kept = false;
    std::vector<Columns> columns = {};
    bool are_same(const Rows& other) const {
      return x == other.x && depth == other.depth && row == other.row && rows == other.rows &&
             are_kept == other.are_kept;
    }
  };
  std::vector<Rows> all;
  std::vector<ColumnPieces::Group> groups;
  for (const ProductPart& part : parts) {
    const Partition cut =
        takes_columns(*part.planned, blocks) ? part.partition.by_panels() : part.partition;
    const PartitionLimits limits = part.planned->step->block_limits();
    for (std::int64_t i = 0; i < cut.row_blocks(); ++i) {
      Block block = cut.block(i);
      const Rows wanted{part.inputs[0], part.extents.depth, block.row, block.rows,
                        part.planned->step->kept_bytes(block.rows) > 0};
      auto rows = std::ranges::find_if(all, [&](const Rows& r) { return r.are_same(wanted); });
      const auto index = static_cast<std::size_t>(rows - all.begin());
      if (rows == all.end()) {
        rows = all.insert(rows, wanted);
        const double panel = block_cycles(part.extents, cut.grain(), block, limits);
        block.columns = 0;
        const double none = block_cycles(part.extents, cut.grain(), block, limits);
        groups.push_back({.panel_cycles = panel - none, .piece_cycles = none});
      }
      rows->columns.push_back({&part, cut, i});
      groups[index].panels += cut.column_blocks();
    }
  }
  ColumnPieces pieces(groups, num_threads());
  std::int64_t scratch_bytes = 0, kept_bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const Columns& columns : all[i].columns) {
      const Step& step = *columns.part->planned->step;
      Block largest = columns.cut.largest();
      largest.columns =
          std::min(largest.columns * pieces.most_panels(i), columns.part->extents.columns);
      scratch_bytes = std::max(scratch_bytes, step.block_scratch_bytes(*kernels, largest));
      kept_bytes = std::max(kept_bytes, step.kept_bytes(all[i].rows));
    }
  for (AlignedBuffer& buffer : scratch) buffer.reserve(scratch_bytes);
  kept.resize(scratch.size());
  for (AlignedBuffer& buffer : kept) buffer.reserve(kept_bytes);
  std::vector<const Rows*> kept_rows(kept.size());  // those that a thread has

  const auto run_columns = [&](const Rows& rows, const Columns& columns, std::int64_t first,
                               std::int64_t count, std::int64_t next, int thread) {
    const auto own = static_cast<std::size_t>(thread);
    const ProductPart& part = *columns.part;
    if (rows.are_kept && kept_rows[own] != &rows) {
      kept_rows[own] = &rows;
      time_step(thread, part.index, [&] {
        part.planned->step->keep_rows(
            reinterpret_cast<const float*>(rows.x) + rows.row * rows.depth, rows.rows,
            kept[own].data());
      });
    }
    run_block(part, columns.merged(first, count), thread,
              rows.are_kept ? kept[own].data() : nullptr,
              next < columns.cut.column_blocks() ? columns.merged(next, 1).column : -1);
  };
  const auto run_piece = [&](const ColumnPieces::Piece& piece, int thread) {
    const Rows& rows = all[piece.group];
    std::int64_t begin = 0;  // of a part's panels
    for (const Columns& columns : rows.columns) {
      const std::int64_t first = std::max<std::int64_t>(0, piece.first - begin);
      const std::int64_t end =
          std::min(columns.cut.column_blocks(), piece.first + piece.count - begin);
      // Neighbours take as much meanwhile.
      const std::int64_t next = piece.first - begin + piece.count * pieces.neighbours(piece.group);
      if (first < end) run_columns(rows, columns, first, end - first, next, thread);
      begin += columns.cut.column_blocks();
    }
  };
  parallel(num_threads(), [&](std::int64_t task, int thread) {
    while (const auto piece = pieces.take(static_cast<int>(task))) run_piece(*piece, thread);
  });
}

}  // namespace lathe::engine

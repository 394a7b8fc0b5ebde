#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/cpu_plan.h"
#include "lathe/engine/cpu/stage_clock.h"

namespace lathe::engine {

/// Equal pieces of a sum over rows but for the last, so many and so deep.
struct DepthCut {
  std::int64_t pieces = 1, depth = 0;
};

/// What sums over rows may take for their depth to be cut.
inline constexpr std::int64_t kMostCutBytes = std::int64_t{1} << 20;

/// A plan with the memory and threads that it runs on. `cpu_machine.cpp` gets it ready,
/// `cpu_stages.cpp` runs its stages, `cpu_products.cpp` those of products, `cpu_report.cpp` says
/// what became of it.
struct CpuExecutor::Machine {
  CpuPlan plan;
  Graph source;  // as the user wrote it: says what its states are
  State state;   // keeps the weights alive that packed steps and `bases` point to
  std::set<std::string> fixed_states;  // that the plan relies on, beyond their types
  // Computes the states of the graph that come from others; empty where there are none.
  std::unique_ptr<CpuExecutor> parameters;
  std::vector<std::string> parameter_sources, computed;
  const Kernels* kernels = nullptr;
  ThreadPool* pool = nullptr;
  std::vector<const std::byte*> bases;  // of each slot, those of tiles excepted
  SymbolValues capacity, last_sizes;
  std::int64_t unshared_bytes = 0;
  AlignedBuffer arena;
  std::vector<AlignedBuffer> scratch;
  AlignedBuffer shared;             // scratch of whole steps for all threads
  std::vector<AlignedBuffer> kept;  // what each thread makes of a product's rows
  // Copies of what is summed over rows, one for each group of tiles or piece of the depth, and a
  // sum whose copies are at `offset` of each.
  std::vector<AlignedBuffer> group_sums;
  struct Sum {
    int slot = 0;
    std::int64_t offset = 0, copies = 0;
  };
  // The cut of each step that is a product, for the extents it had last.
  struct Cut {
    ProductExtents extents;
    Partition partition;
  };
  std::vector<std::optional<Cut>> cuts;
  Feed last_outputs;  // to be written again if nobody else holds them
  bool states_changed = false;
  bool changes_parameters = true;  // whether a run changes what steps are prepared from
  bool timing = false;
  std::vector<double> seconds;      // [thread][step]
  std::optional<StageClock> clock;  // where timing is on
  double run_seconds = 0;

  void start();
  void compute_parameters();
  void prepare_steps();
  std::int64_t weight_bytes() const;
  void ensure_capacity(const SymbolValues& sizes);
  std::int64_t num_parts(const SymbolValues& sizes) const;
  void place_outputs(const SymbolValues& sizes);
  void run_parts(const Feed& inputs, const SymbolValues& sizes);
  Feed take_outputs();
  void copy_late_updates();
  void run(const Stage& stage, const SymbolValues& sizes);
  void run_rows(const Stage& stage, const SymbolValues& sizes);
  std::int64_t num_tiles(const Stage& stage, std::int64_t rows) const;
  std::int64_t largest_tile(const Stage& stage, std::int64_t rows) const;
  ProductExtents extents(const Product& product, const SymbolValues& sizes) const;
  static DepthCut depth_cut(const PlanStep& planned, std::int64_t depth);
  // Of a piece, where as many are computed at once.
  Partition partition(const PlanStep& planned, const ProductExtents& extents,
                      std::int64_t pieces) const;
  const Partition& known_partition(std::size_t step, const ProductExtents& extents,
                                   std::int64_t pieces);
  bool is_by_rows(const Stage& stage) const;
  bool takes_columns(const PlanStep& planned, std::int64_t blocks) const;
  std::int64_t num_blocks(const Stage& stage, const SymbolValues& sizes) const;
  std::string layout(const PlanStep& planned) const;
  std::string work_cut(const PlanStep& planned) const;
  Size bytes(const PlanStep& planned) const;
  void run_groups(const Stage& stage, std::int64_t rows);
  void fetch_rows(const Stage& stage, std::int64_t begin, std::int64_t rows) const;
  void run_tile(const Stage& stage, std::int64_t begin, std::int64_t rows, int thread,
                std::byte* sums);
  void reserve_copies(std::int64_t copies, std::int64_t bytes);
  std::byte* copy_of_sums(std::int64_t copy);
  void add_copies(const std::vector<Sum>& sums);
  void run_products(const Stage& stage, const SymbolValues& sizes);
  struct ProductPart;
  void run_blocks(std::span<const ProductPart> parts);
  void run_by_rows(std::span<const ProductPart> parts, std::int64_t blocks);
  void run_block(const ProductPart& part, const Block& block, int thread, const std::byte* rows,
                 std::int64_t next_column);
  struct Operands;
  WholeCall whole_call(const PlanStep& planned, const Operands& operands, const SymbolValues& sizes,
                       const ParallelTasks& dealt, const ParallelTasks& by_rows);
  void run_whole(const Stage& stage, const SymbolValues& sizes);
  void run_tasks(const Stage& stage, const SymbolValues& sizes);
  void parallel(std::int64_t tasks, const std::function<void(std::int64_t, int)>& task,
                ThreadPool::Shares shares = ThreadPool::Shares::Dealt);

  // Where the scratch of a stage's steps begins, behind its tiles.
  static std::int64_t step_scratch(const Stage& stage) {
    constexpr std::int64_t kLine = 64;
    return (stage.tile_bytes + kLine - 1) / kLine * kLine;
  }
  int num_threads() const { return pool != nullptr ? pool->num_threads() : 1; }
  double& seconds_of(int thread, std::size_t step) {
    return seconds[static_cast<std::size_t>(thread) * plan.steps.size() + step];
  }
  // What a thread does for a step counts for it, where times are asked for.
  template <typename Work>
  void time_step(int thread, std::size_t step, const Work& work) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = timing ? Clock::now() : Clock::time_point{};
    work();
    if (timing)
      seconds_of(thread, step) += std::chrono::duration<double>(Clock::now() - start).count();
  }
  const std::byte* base(int slot) const { return bases[static_cast<std::size_t>(slot)]; }
  // Where a step writes, or a state's update goes; inputs and other states are only ever read.
  std::byte* written(int slot) const { return const_cast<std::byte*>(base(slot)); }
};

}  // namespace lathe::engine

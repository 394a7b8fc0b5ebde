#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/engine/cpu/cpu_plan_options.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/engine/doubtful_sizes.h"
#include "lathe/engine/symbol_binding.h"

namespace lathe::engine {

/// Where a value lives. Its address is the executor's matter.
struct Slot {
  enum class Kind {
    Input,
    State,
    Arena,
    Tile,  ///< never leaves its stage: in each thread's scratch, one tile of it
  };
  Kind kind = Kind::Arena;
  Type type;                     ///< of bfloat16 where the graph's is of floats: `narrow_values`
  int first = 0, last = 0;       ///< stages
  std::int64_t row_bytes = 0;    ///< set where a row step touches it
  std::int64_t tile_offset = 0;  ///< Tile
  std::int64_t sum_offset = -1;  ///< in a group's sums, for what is summed over rows
  std::size_t arena_index = 0;   ///< Arena
};

/// One kernel call: a node of the lowered graph and where its operands are.
struct PlanStep {
  NodeId node;
  std::unique_ptr<Step> step;
  std::vector<int> inputs;  ///< slots, -1 where absent
  std::vector<int> outputs;
  int stage = 0;
  Size flops;
};

/// Steps that are done before the next stage begins.
struct Stage {
  enum class Kind {
    Rows,      ///< go through the rows together, tile by tile
    Products,  ///< do not need each other, and are computed block by block
    Whole,     ///< one step that needs all of its input and cuts its own work
    Tasks,     ///< do not need each other, and are computed task by task
  };
  Kind kind = Kind::Whole;
  Size rows;           ///< Rows
  std::string reason;  ///< why it does not go on with the stage before it
  std::vector<std::size_t> steps;
  std::int64_t tile_rows = 0;
  std::int64_t tile_bytes = 0;
  /// Of Rows: what tiles read that other stages made, and the bytes of a row of it.
  struct Read {
    int slot;
    std::int64_t row_bytes;
    bool operator==(const Read&) const = default;
  };
  std::vector<Read> reads;
  std::vector<int> sums;  ///< slots of results summed over rows
  std::int64_t sum_bytes = 0;
};

/// What runs in which order and what shares memory with what, for any extents.
struct CpuPlan {
  static constexpr std::size_t kMaxOperands = 64;

  Graph graph;
  GraphInputs inputs;  ///< of the graph
  std::vector<Slot> slots;
  std::vector<PlanStep> steps;
  std::vector<Stage> stages;
  std::map<Value, int> slot_of;
  std::vector<std::size_t> arena_slots;
  /// (value, state) slots of the updates that are copied after the last stage.
  std::vector<std::pair<int, int>> late_updates;
  /// The symbol that counts images, where every step computes each of them by itself; else empty.
  /// Then a run may take some of the images through all stages before the next ones, so that what
  /// one stage makes is still near when another reads it.
  std::string image_symbol;
  /// Such as L-5: to be checked before a run.
  DoubtfulSizes doubtful_sizes;

  std::size_t slot(const Value& value) const { return static_cast<std::size_t>(slot_of.at(value)); }
};

/// Plans a graph that `lower` has made. Fails naming a node whose size cannot be planned for.
CpuPlan make_cpu_plan(Graph lowered, Precision precision = Precision::Float32,
                      const CpuPlanOptions& options = {});

}  // namespace lathe::engine

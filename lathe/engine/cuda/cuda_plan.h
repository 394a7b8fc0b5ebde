#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/engine/doubtful_sizes.h"
#include "lathe/engine/symbol_binding.h"

namespace lathe::engine {

/// Where a value lives.
struct CudaSlot {
  enum class Kind {
    Input,     ///< copied in ahead of a run, together with the others
    State,     ///< stays on the device
    Constant,  ///< computed when planned, stays on the device
    Output,    ///< copied back after a run, together with the others
    Arena,
  };
  Kind kind = Kind::Arena;
  Type type;
  int first = 0, last = 0;  ///< launches
  /// Whether it has memory: one launch may make and read it by itself, and all others may read it
  /// as bfloat16.
  bool is_stored = true;
  int half = -1;            ///< the slot of the same as bfloat16; -1: there is none
  bool is_rounded = false;  ///< holds numbers of bfloat16: its half is as good
};

/// A value that one launch leaves in parts, to be added up by a later one.
struct CudaPartial {
  int slot = -1;
  Size rows;  ///< that it is summed over
  std::function<std::int64_t(std::int64_t capacity)> num_parts;
  int first = 0, last = 0;  ///< launches
};

/// A node and where its operands are.
struct CudaPlanStep {
  NodeId node;
  std::unique_ptr<CudaStep> step;
  std::vector<int> inputs;  ///< slots, -1 where absent
  std::vector<int> outputs;
  std::vector<bool> reads_half;  ///< of each input, whether it is read as bfloat16
  std::vector<int> parts;  ///< of each output, among the plan's partials; -1: it is made whole
};

/// Steps that one launch makes: one, or some of a group.
struct CudaLaunch {
  std::vector<std::size_t> steps;
  CudaGroup group = CudaGroup::None;
  std::vector<int> partials;  ///< of Sums
  std::vector<int> halves;    ///< of Halves: the slots that are copied
  int early = -1;   ///< its early part runs beside the launches from this one on; -1: none
  int joined = -1;  ///< it runs beside those that follow, until this one begins; -1: by itself
  /// The last launch that it, the launch of this number, may still run beside.
  int end(std::size_t number) const { return joined < 0 ? static_cast<int>(number) : joined - 1; }
};

/// Launches that are one where they have a single row (cuda_single_row.h).
struct CudaSingleRow {
  enum class Kind { Products, Attention };
  Kind kind = Kind::Products;
  int first = 0, main = 0, last = 0;  ///< launches; `main` is that of the products or the attention
};

/// What runs in which order and what lives where, for any sizes.
struct CudaPlan {
  Graph graph;
  GraphInputs inputs;  ///< of the graph
  std::vector<CudaSlot> slots;
  std::vector<CudaPlanStep> steps;
  std::vector<CudaLaunch> launches;
  std::vector<CudaPartial> partials;
  std::vector<CudaSingleRow> single_rows;
  std::map<Value, int> slot_of;
  cuda::Precision precision = cuda::Precision::Float32;
  /// Slots whose halves are copied when they are set: no run changes them, or their update does
  /// that for both.
  std::vector<int> resident_halves;
  std::vector<std::pair<int, int>> late_updates;  ///< (value, state) copied after the last launch
  /// Symbols that only count rows of the first axis, of ops that take padding: batches of nearly
  /// the same size share a capture.
  std::vector<std::string> rounded_symbols;
  /// Such as L-5: to be checked before a run.
  DoubtfulSizes doubtful_sizes;

  std::size_t slot(const Value& value) const { return static_cast<std::size_t>(slot_of.at(value)); }
};

/// Plans a graph that `lower` has made. Fails naming the first op that has no kernel.
CudaPlan make_cuda_plan(Graph lowered, cuda::Precision precision = cuda::Precision::Float32);

/// The size that a symbol is rounded up to: steps of an eighth, so that at most that share of the
/// rows is padding and there are few captures; below 8 powers of two, for a single row has kernels
/// of its own.
std::int64_t bucket_of(std::int64_t size);

}  // namespace lathe::engine

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "lathe/engine/cpu/step.h"

/// What the steps of attention have in common: heads, sequences, and how they are shared out.
namespace lathe::engine {

/// Where one sequence's queries and keys start among all rows, and how many there are.
struct AttentionSequence {
  std::int64_t q_start, k_start, q_length, k_length;
};

/// Some queries of one head of one sequence.
struct AttentionTask {
  std::size_t sequence;
  std::int64_t head, q_begin, q_end;
};

/// Attributes and first operands (q, k, v, mask, offsets) of attention, its gradient and their
/// like.
class AttentionShape {
 public:
  /// `first` is the operand that holds the queries.
  AttentionShape(const Graph& graph, NodeId id, std::size_t first);

  /// Operand `index`, counted from q; null where it is absent.
  const std::int32_t* integers(const WholeCall& call, std::size_t index) const;

  std::vector<AttentionSequence> sequences(const WholeCall& call) const;

  /// The mask of one sequence as bytes, written to `room`; null when there is none.
  const std::uint8_t* keep(const WholeCall& call, const AttentionSequence& sequence,
                           float* room) const;

  std::int64_t q_stride() const { return heads * d; }
  std::int64_t k_stride() const { return kv_heads * d; }

  std::int64_t heads, kv_heads, d;
  float scale;
  bool causal;

 private:
  std::size_t first_;
  bool only_first_;  // packed, with one query a sequence: its first token's
};

/// The first query of the tile in which query `row` of `length` is: a kernel's own.
using AttentionTile = std::int64_t (*)(std::int64_t length, std::int64_t row);

/// All queries of all heads, in the order of sequences and heads and in as many tasks as keep the
/// threads busy. Where queries of a head are cut they are at the beginning of a tile.
std::vector<AttentionTask> attention_tasks(const AttentionShape& shape,
                                           const std::vector<AttentionSequence>& sequences,
                                           std::int64_t threads, AttentionTile tile);

/// Keys and values as a kernel packs them, of pairs of a sequence and a head of the keys whose
/// queries are several tasks: packed once, by the first of them.
class PackedPairs {
 public:
  /// Takes `bytes` of `memory` for each pair, and nothing where each is one task.
  PackedPairs(const AttentionShape& shape, const std::vector<AttentionSequence>& sequences,
              const std::vector<AttentionTask>& tasks, std::int64_t bytes, AlignedBuffer& memory);

  /// Those of a task, made by pack(to) if nobody has begun to. Null where each task should pack its
  /// own, and where another thread is at it: to wait for a core that others use too takes longer
  /// than to pack.
  const void* find(const AttentionTask& task, const std::function<void(void*)>& pack);

 private:
  enum State : int { kMissing, kBegun, kThere };
  std::int64_t group_, kv_heads_, bytes_;
  std::byte* memory_ = nullptr;
  std::vector<std::atomic<int>> states_;
};

/// Runs tasks that are in the order of sequences. Where these are about as long as each other, a
/// thread begins with those whose rows it has worked on before. Else the long ones come first,
/// because the last task to start should be a short one.
void run_attention_tasks(const WholeCall& call, const std::vector<AttentionSequence>& sequences,
                         std::vector<AttentionTask> tasks,
                         const std::function<void(const AttentionTask&, int)>& run);

/// A query of a sequence without tokens sees nothing, and the kernels do nothing: its row is zero.
void fill_unseeing(const std::vector<AttentionSequence>& sequences, std::byte* result,
                   std::int64_t row_bytes);

}  // namespace lathe::engine

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/registry.h"
#include "lathe/core/thread_pool.h"
#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/kernels.h"
#include "lathe/engine/cpu/parallel_tasks.h"
#include "lathe/engine/cpu/product_partition.h"
#include "lathe/engine/plan_report.h"
#include "lathe/engine/precision.h"

namespace lathe::engine {

/// How a step walks: each row of its results comes from the same row of some operands and all of
/// others (weights). Steps over the same rows run one after another on a tile that stays in cache.
struct RowSpace {
  Size rows;
  std::vector<std::int64_t> input_widths;  ///< elements a row; 0 for an operand read whole
  /// Elements a row; 0 for a result that sums something over all rows. `run_rows` adds to it, and
  /// the plan sees to it that the sum does not depend on the number of threads.
  std::vector<std::int64_t> output_widths;
};

/// One tile of a row step. A row operand's pointer is at the tile's first row.
struct RowCall {
  const Kernels& kernels;
  std::int64_t rows;
  std::span<const std::byte* const> inputs;  ///< nullptr where an operand is absent
  std::span<std::byte* const> outputs;
  std::byte* scratch = nullptr;  ///< scratch_bytes(rows) on a cache line, for the call alone
  const float* input(std::size_t i) const { return reinterpret_cast<const float*>(inputs[i]); }
  float* output(std::size_t i) const { return reinterpret_cast<float*>(outputs[i]); }
  const std::uint16_t* narrow_input(std::size_t i) const {
    return reinterpret_cast<const std::uint16_t*>(inputs[i]);
  }
};

/// A step that can also compute its first result block by block, each without the others: a matrix
/// product. The plan lets it do so where going through the rows tile by tile would not pay.
struct Product {
  Size rows, columns, depth;      ///< of the result, and of each of its sums
  std::int64_t shared_bytes = 0;  ///< what every tile of rows reads (weights) or adds to (sums)
};

/// One block of a product. Operands are whole.
struct BlockCall {
  const Kernels& kernels;
  const ProductExtents& extents;
  Block block;
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* scratch = nullptr;     ///< block_scratch_bytes on a cache line, for the call alone
  const std::byte* kept = nullptr;  ///< what `keep_rows` made of the block's rows, or null
  std::int64_t next_column = -1;    ///< of the block that its thread may take next, or -1
  const float* input(std::size_t i) const { return reinterpret_cast<const float*>(inputs[i]); }
  float* output(std::size_t i) const { return reinterpret_cast<float*>(outputs[i]); }
  const std::uint16_t* narrow_input(std::size_t i) const {
    return reinterpret_cast<const std::uint16_t*>(inputs[i]);
  }
};

/// One execution of a step that partitions its own work.
struct WholeCall {
  const Kernels& kernels;
  const Graph& graph;
  NodeId node;
  const SymbolValues& symbols;
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::span<AlignedBuffer> scratch;  ///< one for each thread
  AlignedBuffer& shared;             ///< scratch of all threads together
  const ParallelTasks& parallel;     ///< on the plan's threads
  /// For tasks in the order of the rows that they read and write: a thread begins with neighbours,
  /// those whose rows it has worked on in the stages before.
  const ParallelTasks& parallel_by_rows;
};

/// A result that may lie where an operand lies, because the step reads each element before it
/// writes it.
struct InPlace {
  std::size_t output = 0;
  std::size_t input = 0;
};

/// What lying as bfloat16 numbers does to a step's operand or result of floats.
enum class Narrow {
  No,      ///< the step reads or writes floats there
  Can,     ///< it widens what it reads, or rounds what it writes
  Anyway,  ///< nothing: what it reads it rounds, and what it writes are bfloat16 numbers
};

/// A kernel call of a CPU plan.
class Step {
 public:
  virtual ~Step() = default;
  /// Set for steps that work row by row; the others run whole.
  virtual const RowSpace* rows() const { return nullptr; }
  /// What products see of their operands, said before `prepare`.
  virtual void set_precision(Precision /*precision*/) {}
  /// Whether an operand or a result may lie as bfloat16 numbers, once the precision is set.
  virtual Narrow narrow_input(std::size_t /*operand*/) const { return Narrow::No; }
  virtual Narrow narrow_output(std::size_t /*result*/) const { return Narrow::No; }
  /// Says which of those that may do lie so, in all calls: `narrow_values` decides it.
  virtual void set_narrow(const std::vector<bool>& /*inputs*/,
                          const std::vector<bool>& /*outputs*/) {}
  /// Called when the states' values are known; `states[i]` is null where operand i is none or no
  /// state. Packs weights, so that no run has to.
  virtual void prepare(const Kernels& /*kernels*/, std::span<const Tensor* const> /*states*/) {}
  /// Bytes of what `prepare` made of states.
  virtual std::int64_t layout_bytes() const { return 0; }
  /// Whether runs read the bytes of a state that is this operand, and not what `prepare` made of
  /// them.
  virtual bool reads_state(std::size_t /*operand*/) const { return true; }
  /// Results that may overwrite a state that they update or, of whole steps, what nobody needs.
  virtual std::vector<InPlace> in_place() const { return {}; }
  /// Whether a whole step computes each image, the first axis of its results and of all operands
  /// but states, by itself.
  virtual bool is_by_images() const { return false; }
  /// Whether it is the op's definition, for want of a kernel.
  virtual bool is_reference() const { return false; }
  /// What `run_rows` needs beside its operands for so many rows, once prepared.
  virtual std::int64_t scratch_bytes(const Kernels& /*kernels*/, std::int64_t /*rows*/) const {
    return 0;
  }
  /// Which of several kernels it runs by, once prepared.
  virtual KernelChoice choice() const { return {}; }
  virtual void run_rows(const RowCall& /*call*/) const {}
  /// Set for row steps that are products.
  virtual const Product* as_product() const { return nullptr; }
  /// The tile of the kernel that blocks are computed by, once prepared.
  virtual ProductGrain block_grain(const Kernels& kernels) const { return kernels.gemm_grain(); }
  /// How a product may be cut, once prepared.
  virtual PartitionLimits block_limits() const { return {}; }
  /// What `run_block` needs beside its operands for a block of that size.
  virtual std::int64_t block_scratch_bytes(const Kernels& /*kernels*/,
                                           const Block& /*size*/) const {
    return 0;
  }
  /// Whether blocks of the same rows are best taken one behind another by one thread, whose own
  /// cache has them then; else threads that start together read the same weights.
  virtual bool is_by_rows() const { return false; }
  /// Of a step that goes by rows, bytes of what blocks read in place of so many rows of the first
  /// operand, or 0. It is made once for all blocks of these rows that a thread takes one behind
  /// another, of this step and of others that read the same operand: they make the same of it.
  virtual std::int64_t kept_bytes(std::int64_t /*rows*/) const { return 0; }
  /// Makes it; `x` is the first row.
  virtual void keep_rows(const float* /*x*/, std::int64_t /*rows*/, std::byte* /*to*/) const {}
  virtual void run_block(const BlockCall& /*call*/) const {}
  virtual void run_whole(const WholeCall& /*call*/) const {}
  /// Whether a whole step is tasks that need its operands alone. Neighbours that do not need each
  /// other then share a stage: threads meet once for all of them.
  virtual bool has_tasks() const { return false; }
  virtual std::int64_t num_tasks(const WholeCall& /*call*/) const { return 0; }
  virtual void run_task(const WholeCall& /*call*/, std::int64_t /*task*/) const {}
};

/// The CPU's way to compute an op; `make` gives nullptr for a node it cannot do, which then runs by
/// its op's reference kernel.
struct CpuKernel {
  std::string name;  ///< of the op
  std::function<std::unique_ptr<Step>(const Graph&, NodeId)> make;
};

/// The rows and width of a float value whose last axis is constant; nullopt otherwise.
struct RowShape {
  Size rows;
  std::int64_t width = 0;
};
std::optional<RowShape> row_shape(const Type& type);

/// The step of a node by a CPU kernel; nullptr where there is none that can.
std::unique_ptr<Step> make_own_step(const Graph& graph, NodeId id);

/// The step of a node: its CPU kernel's, or its op's reference kernel run whole.
std::unique_ptr<Step> make_step(const Graph& graph, NodeId id);

}  // namespace lathe::engine

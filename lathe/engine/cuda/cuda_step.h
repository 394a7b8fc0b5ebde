#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/registry.h"
#include "lathe/engine/cuda/arguments/row_products.h"
#include "lathe/engine/cuda/kernel_table.h"

namespace lathe::engine {

/// The sizes a captured run is made for, and the precision of its products. Some symbols are
/// rounded up to a bucket, so that one capture serves many batches; how large they really are is
/// read from device memory.
struct CudaSizes {
  SymbolValues bucket;
  std::map<std::string, const std::int32_t*, std::less<>> real;  ///< of the rounded symbols
  cuda::Precision precision = cuda::Precision::Float32;

  std::int64_t capacity(const Size& size) const { return size.evaluate(bucket); }
  cuda::Extent extent(const Size& size) const;
};

/// Where floats lie, and how.
struct CudaOperand {
  const std::byte* data = nullptr;
  cuda::Number as = cuda::Number::F32;
};

/// One launch of a step.
struct CudaCall {
  const cuda::KernelTable& kernels;
  cuda::Gemm* gemm;
  cuda::Stream* stream;
  const Graph& graph;
  NodeId node;
  const CudaSizes& sizes;
  std::span<std::byte* const> inputs;  ///< device memory; nullptr where an operand is absent
  std::span<std::byte* const> outputs;
  std::byte* scratch;
  cuda::Fault fault;
  std::span<const int> input_slots, output_slots;  ///< which values of the plan they are
  std::span<std::byte* const> halves;  ///< the inputs as bfloat16; nullptr: they do not lie so
  std::span<std::byte* const> output_halves;
  std::span<std::byte* const> parts;  ///< where a result is left in parts; nullptr: nowhere
  cuda::Precision precision = cuda::Precision::Float32;
  std::byte* prepared = nullptr;  ///< what the step has made of its states; nullptr: nothing

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  const float* input(std::size_t i) const {
    return has(i) ? reinterpret_cast<const float*>(inputs[i]) : nullptr;
  }
  /// Null where nobody reads it as float.
  float* output(std::size_t i) const { return reinterpret_cast<float*>(outputs[i]); }
  /// Null where nobody reads it as bfloat16.
  std::uint16_t* output_half(std::size_t i) const {
    return reinterpret_cast<std::uint16_t*>(output_halves[i]);
  }
  /// As bfloat16 where it lies so, else as float.
  CudaOperand operand(std::size_t i) const {
    if (halves[i] != nullptr) return {halves[i], cuda::Number::BF16};
    return {inputs[i], cuda::Number::F32};
  }
  /// An operand of 32-bit or 64-bit integers; null data where it is absent.
  cuda::Integers integers(std::size_t i) const;
  const Type& input_type(std::size_t i) const { return graph.type(graph.input(node, i)); }
  const Type& type(std::size_t result) const { return graph.types(node)[result]; }
  std::vector<std::int64_t> dims(const Type& type) const { return type.dims(sizes.bucket); }
  cuda::Extent extent(const Size& size) const { return sizes.extent(size); }
};

/// Steps that share one launch. Those of Rows take each row through all of them; the others run
/// side by side, in the order of a table. Sums and Halves have no steps: the one adds up what
/// others left in parts, the other copies values as bfloat16. Packed are products of one operand
/// with packed weights, which share a launch where it is a single row.
enum class CudaGroup {
  None,
  Indices,
  Formats,
  LearnedSteps,
  Vectors,
  Rows,
  Products,
  Packed,
  Tables,
  Halves,
  Sums,
  Squares,
  Scalars,
  Adamw,
  Sgd
};

/// Rows that a step of the group Rows goes through one by one, and the operands that have the same
/// rows: such a step can follow the one that makes them within a launch.
struct CudaRowFacts {
  Size rows;
  std::int64_t width = 0;
  std::vector<std::size_t> operands;
  std::int64_t vectors = 0, sums = 0;  ///< further rows that it holds
  std::int64_t learned_steps = 0;
};

/// How many parts a result is left in, given the capacity of the rows it is summed over.
struct CudaParts {
  std::size_t output = 0;
  Size rows;
  std::function<std::int64_t(std::int64_t capacity)> count;
};

/// Rows that a product goes through, or sums over.
struct CudaProductRows {
  Size rows;
  bool are_summed = false;
};

/// What a step can do as soon as one of its operands is there, beside other launches: it may write
/// its scratch and one of its results.
struct CudaEarlyPart {
  std::size_t operand = 0;
  std::optional<std::size_t> result;
};

/// Steps that a product can do on the way: a map of its result, which others may read too; the
/// gradient of a map, given its result, which nobody else reads; the sum over rows of the operand
/// that a weight's gradient sums over.
enum class CudaFollower { None, Map, MapGradient, Sum };

class CudaRowProgram;
class CudaProducts;

/// What the members of a group put into the table of its launch.
struct CudaGroupTable {
  std::vector<cuda::IndexOperation> indices;
  std::vector<cuda::EmbeddingGradientArgs> tables;
  std::vector<cuda::QuantizeArgs> formats;
  std::vector<cuda::LearnedStepArgs> learned_steps;
  std::vector<cuda::VectorOperation> vectors;
  std::vector<cuda::SummedParts> sums;
  std::vector<cuda::HalfCopy> halves;
  std::vector<cuda::SquaredTensor> squares;
  std::vector<cuda::ScalarOperation> scalars;
  std::vector<cuda::UpdatedTensor> updates;
  std::int64_t num_blocks = 0;
  std::int64_t used_scratch = 0;      ///< bytes of the launch's scratch
  std::map<int, int> scalar_of = {};  ///< which of `scalars` makes a slot
};

/// A result that may lie where an operand lies.
struct CudaInPlace {
  std::size_t output = 0, input = 0;
};

/// A node of a lowered graph as kernel launches.
class CudaStep {
 public:
  virtual ~CudaStep() = default;
  /// Device memory it needs while it runs. Never less for larger sizes.
  virtual std::int64_t scratch_bytes(const Graph&, NodeId, const CudaSizes&) const { return 0; }
  /// Device memory for what it makes of states, once whenever they change, and how it does that;
  /// none: it works with states as they are.
  virtual std::int64_t prepared_bytes(cuda::Precision) const { return 0; }
  virtual void prepare(const CudaCall&) const {}
  virtual std::vector<CudaInPlace> in_place() const { return {}; }
  virtual CudaGroup group() const { return CudaGroup::None; }
  virtual void add_to(CudaGroupTable&, const CudaCall&) const {}
  /// Of a step of the group Rows.
  virtual const CudaRowFacts* rows() const { return nullptr; }
  virtual bool has_format() const { return false; }
  virtual void add_to(CudaRowProgram&, const CudaCall&) const {}
  /// Operands that it reads as bfloat16 where that is the precision, and results that it rounds to
  /// it and writes so: those of products.
  virtual std::vector<std::size_t> half_operands() const { return {}; }
  virtual std::vector<std::size_t> half_results() const { return {}; }
  /// Operands that it reads as bfloat16 where they hold such numbers anyway.
  virtual std::vector<std::size_t> rounded_operands() const { return {}; }
  /// Whether its result has no other numbers than its first operand.
  virtual bool keeps_numbers() const { return false; }
  /// Whether it can write a result as bfloat16, too.
  virtual bool can_write_half(std::size_t) const { return false; }
  /// What it can be beside a product, within the product's launch.
  virtual CudaFollower follower() const { return CudaFollower::None; }
  /// Of a step of the group Products: whether it lets such a step follow.
  virtual bool takes(CudaFollower) const { return false; }
  virtual void add_to(CudaProducts&, const CudaCall&) const {}
  /// Of a step of the group Products; null: nothing is known of its rows.
  virtual const CudaProductRows* product_rows() const { return nullptr; }
  /// Results that the launch leaves in parts.
  virtual std::vector<CudaParts> parts() const { return {}; }
  /// Of a step of the group Tables.
  virtual std::optional<CudaEarlyPart> early_part() const { return std::nullopt; }
  /// Of a step of no group, or of Tables: whether others that do not read its results may run
  /// beside it, at the cost of the memory that it needs meanwhile.
  virtual bool can_run_beside() const { return false; }
  /// Of a product of a single row with a packed weight: what makes it.
  virtual std::optional<cuda::RowProductsArgs> row_product(const CudaCall&) const {
    return std::nullopt;
  }
  /// Of a rotation: what `cached_attention` needs to do it for a single token.
  virtual std::optional<cuda::TokenRotation> token_rotation(const CudaCall&) const {
    return std::nullopt;
  }
  /// Of attention to caches.
  virtual std::optional<cuda::CachedAttentionArgs> cached_attention(const CudaCall&) const {
    return std::nullopt;
  }
  /// Of a step of no group, or of Packed.
  virtual void launch(const CudaCall&) const {}
};

/// The GPU's way to compute an op; `make` gives nullptr for a node it cannot do. There is no other
/// way: such a node is refused before anything runs.
struct CudaKernel {
  std::string name;  ///< of the op
  std::function<std::unique_ptr<CudaStep>(const Graph&, NodeId)> make;
  /// Whether rows beyond the real ones, up to a bucket, leave the others as they are and come out
  /// as zeros; null: never.
  bool (*takes_padding)(const Graph&, NodeId) = nullptr;
};

/// For records of ops that work row by row of the first axis, or mask what they sum.
inline bool always_takes_padding(const Graph&, NodeId) {
  return true;
}

/// A step whose launch is a function.
template <typename Launch>
class CudaFunctionStep final : public CudaStep {
 public:
  explicit CudaFunctionStep(Launch launch) : launch_(std::move(launch)) {}
  void launch(const CudaCall& call) const override { launch_(call); }

 private:
  Launch launch_;
};
template <typename Launch>
std::unique_ptr<CudaStep> cuda_step(Launch launch) {
  return std::make_unique<CudaFunctionStep<Launch>>(std::move(launch));
}

/// The same with scratch: `bytes(graph, node, sizes)`.
template <typename Bytes, typename Launch>
class CudaScratchStep final : public CudaStep {
 public:
  CudaScratchStep(Bytes bytes, Launch launch)
      : bytes_(std::move(bytes)), launch_(std::move(launch)) {}
  std::int64_t scratch_bytes(const Graph& graph, NodeId id, const CudaSizes& sizes) const override {
    return bytes_(graph, id, sizes);
  }
  void launch(const CudaCall& call) const override { launch_(call); }

 private:
  Bytes bytes_;
  Launch launch_;
};
template <typename Bytes, typename Launch>
std::unique_ptr<CudaStep> cuda_step_with_scratch(Bytes bytes, Launch launch) {
  return std::make_unique<CudaScratchStep<Bytes, Launch>>(std::move(bytes), std::move(launch));
}

/// Adds an operation of single numbers, with operands 0 and 1 of the call.
void add_scalar(CudaGroupTable& table, const CudaCall& call, cuda::ScalarOperation operation);

std::unique_ptr<CudaStep> make_cuda_step(const Graph& graph, NodeId id);

bool is_float(const Graph& graph, Value value);
/// 32 or 64 bits.
bool is_integer(const Graph& graph, Value value);

/// Whether rows are the sequences of a packed batch, which are few: an input has the offsets
/// between them.
bool counts_sequences(const Graph& graph, const Size& rows);

/// Rows and width of a value whose last axis is constant.
struct CudaRows {
  Size rows;
  std::int64_t width = 0;
};
std::optional<CudaRows> cuda_rows(const Type& type);

/// At least cuda::num_row_chunks of this and of any smaller capacity.
constexpr std::int64_t most_row_chunks(std::int64_t capacity) {
  return capacity >= 32 * 128 ? 128 : (capacity + 31) / 32 + 1;
}

}  // namespace lathe::engine

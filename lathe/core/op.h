#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/attribute.h"
#include "lathe/core/registry.h"
#include "lathe/core/tensor.h"
#include "lathe/core/type.h"

namespace lathe {

class Graph;
struct NodeId;
struct Value;
struct PackedSequences;

/// What an operand is to its op: quantizing, pruning, LoRA and hardware ask this, so that every op
/// that multiplies with weights is covered like any other.
enum class OperandRole {
  Other,      ///< ids, masks, offsets, gradients, what is added or normalized
  Input,      ///< what a layer is fed with
  Weight,     ///< what the inputs are multiplied with: a weight where it is a parameter
  Bias,       ///< added to the products
  Table,      ///< rows to look up
  Query,      ///< of attention
  Key,        ///< of attention
  Content,    ///< of attention: what is summed, its "value"
  Statistic,  ///< measured in training and kept: a buffer
  Scale,      ///< of a number format
  Zero,       ///< zero point of a number format
  Codes,      ///< bits of a number format
};

/// One operand of an op.
struct OperandSpec {
  std::string name;
  bool optional = false;  ///< `none` may stand in its place
  bool variadic = false;  ///< the last operand may stand any number of times
  OperandRole role = OperandRole::Other;
};

/// What a shape or cost rule sees of a node: operand types, attributes, the types written on it.
class OpCall {
 public:
  OpCall(const struct Op& op, std::vector<const Type*> inputs, const Attributes& attributes,
         std::span<const Type> declared);
  const AttributeReader& attributes() const { return attributes_; }
  std::size_t num_inputs() const { return inputs_.size(); }
  /// Whether an optional operand is there.
  bool has(std::size_t index) const { return index < inputs_.size() && inputs_[index] != nullptr; }
  const Type& input(std::size_t index) const;
  /// The result types written on the node; empty where they are left to the shape rule.
  std::span<const Type> declared() const { return declared_; }

 private:
  std::vector<const Type*> inputs_;
  AttributeReader attributes_;
  std::span<const Type> declared_;
};

/// What a reference kernel works on. Outputs are allocated, zero-filled and of the inferred shape.
struct KernelCall {
  AttributeReader attributes;
  std::span<const Tensor* const> inputs;  ///< nullptr where an optional operand is absent
  std::span<Tensor> outputs;
  bool has(std::size_t index) const { return index < inputs.size() && inputs[index] != nullptr; }
  const Tensor& input(std::size_t index) const {
    check(has(index), "an operand that is there");
    return *inputs[index];
  }
};

/// What an op is, once for everybody: the place for every property that is the op's own. What a
/// backend or the hardware knows about an op is a record on their side, keyed by its name.
struct Op {
  std::string name;
  std::string summary;
  std::vector<OperandSpec> operands = {};
  std::vector<AttributeSpec> attributes = {};
  int num_results = 1;

  /// The result types from the operands'; fails when they do not fit.
  std::function<std::vector<Type>(const OpCall&)> infer = {};
  /// Floating-point operations of one execution.
  std::function<Size(const OpCall&)> flops = {};
  /// The clear, slow, double-accumulating definition that every other kernel is tested against.
  std::function<void(const KernelCall&)> reference = {};
  /// Adds the gradient with respect to each operand to the graph and returns them in order, none
  /// where there is none (ids, masks, offsets). A result gradient is none where the loss does not
  /// depend on that result; at least one is there.
  std::function<std::vector<Value>(Graph&, NodeId, std::span<const Value> result_gradients)>
      gradient = {};

  /// Result 0 is operand 0 unless the graph is being trained (dropout).
  bool is_identity_in_inference = false;
  /// The attribute that holds a dropout rate, for ops that drop inside themselves.
  std::string dropout_attribute = {};
  /// Swapping its two operands changes nothing.
  bool is_commutative = false;
  /// Each element of the result comes from the same element of its operands, after broadcasting.
  bool is_elementwise = false;
  /// Its result is operand 0's bytes under another name or shape, so nothing need be computed.
  bool is_alias = false;
  /// Its value comes from outside the graph: inputs and states are not computed, merged or removed.
  bool is_source = false;
  /// A loss can be differentiated through it, so it has a `gradient`. Not so sources and constants,
  /// what gives integers, optimizers, and gradients themselves.
  bool is_differentiable = true;

  /// How it survives `pack-sequences`. An op that treats each token alone is rewritten by inferring
  /// its types again; one that knows positions brings a rule that returns the packed value.
  bool is_per_token = false;
  std::function<Value(Graph&, NodeId, const PackedSequences&)> pack = {};

  /// Calls such as `linear(f32[T,8], f32[16,8], f32[16])` that documentation and tests run.
  std::vector<std::string> examples = {};
};

using OpRegistry = Registry<Op>;

}  // namespace lathe

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lathe/compress/integer/integer_format.h"
#include "lathe/core/graph.h"
#include "lathe/core/parameters.h"
#include "lathe/core/registry.h"
#include "lathe/numerics/integer/integer128.h"

/// What the rules of `lower-to-integer{dialect=full}` work on: a quantized graph that is read, an
/// integer graph that grows, and what each value of the first became in the second.
namespace lathe::compress {

/// A value of the quantized graph as a value of the integer graph.
struct IntegerValue {
  Value value;
  std::vector<double> scales;              ///< one, or one for each channel
  std::int64_t channel_axis = -1;          ///< where there are several
  numerics::Integer128 low = 0, high = 0;  ///< the integers that can come out
  bool is_sum = false;                     ///< exact sums that no requant has narrowed

  double scale() const { return scales.front(); }
};

class IntegerLowering {
 public:
  /// `graph` has no dropout and no packed codes.
  IntegerLowering(const Graph& graph, const State& state);

  /// Lowers every node by the rule of its op. Fails naming every place that stays float.
  void run();
  Graph take_graph() { return std::move(integer_); }
  State take_state() { return std::move(integer_state_); }

  // The quantized graph.
  const Graph& graph() const { return graph_; }
  bool is_parameter(Value value) const { return parameters_.contains(value); }
  /// Whether states alone decide it: a parameter, or a statistic that was measured.
  bool is_fixed(Value value) const { return is_parameter(value) || graph_.is(value.node, "state"); }
  /// The floats of what is fixed.
  Tensor parameter(Value value) const;
  /// The quantizer of a parameter, through a mask behind it; none where it is not rounded.
  std::optional<NodeId> parameter_quantizer(Value value) const;
  /// The name of the state that a parameter comes from.
  std::string parameter_name(Value value) const;
  /// The integers of a weight or table; refuses `node` and gives nothing where there are none.
  std::optional<IntegerParameter> integers_of(NodeId node, Value parameter, std::int64_t rows,
                                              bool one_scale);
  /// What a quantizer of an activation gives; refuses it where it has no integers.
  std::optional<IntegerFormat> format_of(NodeId quantizer);

  /// What a value became; nullptr where it is float, which somebody has said or will say.
  const IntegerValue* find(Value value) const;
  /// The same for an operand; where it is float and nobody has said so, says that of `node`.
  const IntegerValue* operand(NodeId node, std::size_t index);
  /// The same where the op needs the integers of one quantizer: no sums, one scale.
  const IntegerValue* rounded_operand(NodeId node, std::size_t index);
  void set(Value value, IntegerValue integer) { values_[value] = std::move(integer); }
  /// The quantizers that read a node's result, where nobody else does; otherwise refuses the node
  /// and gives nothing. What they give is written by who asks.
  std::vector<NodeId> quantizers_of(NodeId node);
  /// Says that a node stays float, and why.
  void refuse(NodeId node, const std::string& reason);
  /// Marks the results of a node as float without a word: somebody in front of it was refused.
  void give_up(NodeId node) { float_.insert(node); }

  // The integer graph.
  Graph& integer_graph() { return integer_; }
  Value add(NodeSpec spec) { return {integer_.add(std::move(spec)), 0}; }
  /// A node of the quantized graph that reads no float: the same on what its operands became.
  void copy(NodeId node);
  /// What an operand that is no float became; none where it is absent.
  Value plain_operand(NodeId node, std::size_t index) const;
  /// A state of integers, stored as the range is, or else as narrowly as they allow. The same name
  /// and integers are one.
  Value add_state(const std::string& name, const std::vector<std::int64_t>& values,
                  std::vector<std::int64_t> dims, const char* role,
                  const std::optional<numerics::IntegerRange>& range = {});
  /// What brings a value to a format: a `requant` of that name, or the value itself where that
  /// would change nothing.
  IntegerValue requant(NodeId place, const std::string& name, const IntegerValue& from,
                       const IntegerFormat& to);
  /// The same integers under a format that they have.
  static IntegerValue in_format(Value value, const IntegerFormat& format);

 private:
  void lower(NodeId node);
  void add_outputs();

  const Graph& graph_;
  const State& state_;
  const Parameters parameters_;
  Graph integer_;
  State integer_state_;
  std::map<Value, IntegerValue> values_;
  std::map<Value, Value> plain_;  // what is no float: ids, masks, offsets
  std::set<NodeId> float_;
  std::vector<std::string> places_;  // that were refused
};

/// How an op becomes integer ops: each in its own file.
struct IntegerRule {
  std::string name;  ///< of the op
  std::function<void(IntegerLowering&, NodeId)> lower;
};

}  // namespace lathe::compress

#pragma once

#include <functional>
#include <string>

#include "lathe/core/graph.h"
#include "lathe/core/registry.h"

namespace lathe::ops {

/// How an op that multiplies with a weight lays out the weight and what it gives, for everybody who
/// works output by output: formats with scales and blocks, corrections, pruning. An op without a
/// record is as a linear is: weight [outputs, inputs], rows of inputs in, rows of outputs out.
struct WeightLayout {
  std::string name;  ///< of the op
  /// The axis of the weight that counts the outputs; empty: the first.
  std::function<std::int64_t(const Graph&, NodeId)> output_axis = {};
  /// The axis of the result that they lie along; -1: the last, and then a row of the result is a
  /// row of the input times the weight.
  std::int64_t result_axis = -1;
};
using WeightLayoutRegistry = Registry<WeightLayout>;

/// The axis of a node's weight that counts its outputs.
std::int64_t weight_axis(const Graph& graph, NodeId node);
/// The axis of a node's result that its outputs lie along; -1: the last.
std::int64_t result_axis(const Graph& graph, NodeId node);

}  // namespace lathe::ops

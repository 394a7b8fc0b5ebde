#pragma once

#include <string>
#include <vector>

#include "lathe/compress/quantization_rules.h"
#include "lathe/core/graph.h"
#include "lathe/core/number_format.h"

/// Quantizers: the `quantize` nodes of a graph. All that is known of one stands in the graph, so
/// that a model read back from its text can be trained on, packed or reported.
namespace lathe::compress {

/// A `quantize` node and what it is for.
struct Quantizer {
  NodeId node;
  TensorRole role = TensorRole::Inputs;
  std::string tensor;               ///< the state or the node whose values it rounds
  std::vector<std::string> layers;  ///< the nodes that read it
  std::string format;
  bool is_parameter = false;  ///< rounds a state, or rows looked up in one
  std::string state;          ///< that state
};

/// Every quantizer, in topological order.
std::vector<Quantizer> find_quantizers(const Graph& graph);

/// An attention whose weights are rounded. They exist within the node only, so their format is an
/// attribute of it and no quantizer.
struct RoundedAttention {
  NodeId node;
  std::string format;
};
/// Every one of them, in topological order.
std::vector<RoundedAttention> find_rounded_attention(const Graph& graph);
/// Makes attention multiply with its weights as they are.
void unround_attention(Graph& graph);

/// Whether a graph rounds anything, or reads codes.
bool is_quantized(const Graph& graph);

/// What `insert_quantizers` did.
struct Insertion {
  int quantizers = 0;               ///< attentions with rounded weights among them
  std::vector<std::string> unused;  ///< places of the rules that matched no layer
};

/// Puts a quantizer in front of every tensor that a rule gives a format to.
///
/// Inputs and outputs are those of linears, and of any op that a rule names by its type or its
/// whole name. A value that several layers read in the same format is rounded once. Rows looked up
/// in a table are rounded after the lookup where that gives the same numbers. Scales that a format
/// needs are added as states `<tensor>.scale` (and `.zero`) and given the values 1 and 0: ranges
/// are somebody else's to choose. A result that has a format of its own is rounded a second time
/// for a reader that wants another. Weights of attention get theirs as the node's `weight_format`.
/// Fails when a tensor had a quantizer before.
Insertion insert_quantizers(Graph& graph, State& state, const std::vector<QuantizationRule>& rules);

/// The graph with every reader of these quantizers reading what they round instead.
void bypass_quantizers(Graph& graph, const std::vector<NodeId>& quantizers);

/// Whether rounding the rows that a lookup chose gives what choosing rounded rows gives: not where
/// the scales are those of the table's rows.
bool commutes_with_lookup(const FormatFacts& facts);

/// The state that is operand `index` of a node; nullptr where the operand is absent. Fails when
/// something else was written there.
const Tensor* state_operand(const Graph& graph, const State& state, NodeId node, std::size_t index);

}  // namespace lathe::compress

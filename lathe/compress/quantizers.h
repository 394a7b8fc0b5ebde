#pragma once

#include <string>
#include <vector>

#include "lathe/compress/quantization_rules.h"
#include "lathe/core/graph.h"
#include "lathe/core/number_format.h"

/// Quantizers: the `quantize` nodes of a graph. All that is known of one stands in the graph, so
/// that a model read back from its text can be trained on, packed or reported.
namespace lathe::compress {

/// The attribute of `attention` that says what its weights are rounded to.
inline constexpr const char* kWeightFormat = "weight_format";

/// A `quantize` node and what it is for.
struct Quantizer {
  NodeId node;
  TensorRole role = TensorRole::Inputs;
  std::string tensor;               ///< the value that it rounds
  std::vector<std::string> layers;  ///< the nodes that work with what it rounds
  std::string format;
  bool is_parameter = false;  ///< rounds a parameter, or rows looked up in one
  Value parameter = kNone;    ///< that parameter, such as `w` or `mul(w, mask)`
  /// The states that it comes from, and the first of them: what it is called in reports.
  std::vector<std::string> sources;
  std::string state;
};

/// Every quantizer, in topological order.
std::vector<Quantizer> find_quantizers(const Graph& graph);

/// The parameter that a quantizer rounds, as the graph computes it from its states.
Tensor parameter_value(const Graph& graph, const State& state, const Quantizer& quantizer);

/// What a format is handed with the values of a `quantize` node; nullptr where it needs none. Fails
/// when something else than a state was written there.
const Tensor* scale_of(const Graph& graph, const State& state, NodeId quantizer);
const Tensor* zero_of(const Graph& graph, const State& state, NodeId quantizer);

/// The values of a parameter as its quantizer's format wants them, with scales and zero points.
struct FormatMatrix {
  Tensor values;      ///< row by row
  Tensor mask;        ///< the same way, where the quantizer reads one
  QuantizeArgs args;  ///< of both; without y
};
FormatMatrix format_matrix(const Graph& graph, const State& state, NodeId quantizer,
                           const Tensor& values);

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

/// The graph with every reader of these quantizers reading what they round instead.
void bypass_quantizers(Graph& graph, const std::vector<NodeId>& quantizers);

/// Whether rounding the rows that a lookup chose gives what choosing rounded rows gives: not where
/// the scales are those of the table's rows.
bool commutes_with_lookup(const FormatFacts& facts);

/// Whether zero is one of the format's numbers: a weight that a mask took out then stays out.
bool has_zero(const NumberFormat& format);

/// Rounds a value in a format without a zero that a mask takes holes out of: the product of a
/// quantizer's result with the mask, which the quantizer leaves out of scales that it makes itself.
/// Where the quantizer has such a product already, that is the one.
Value mask_behind(Graph& graph, NodeId quantizer, Value mask);

}  // namespace lathe::compress

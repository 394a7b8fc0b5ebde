#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/compress/lora_options.h"
#include "lathe/core/graph.h"

/// LoRA (Hu et al. 2021): a linear `y = x . W^T + b` (or a product with a parameter) gets a
/// parallel path of low rank, `y + alpha/rank * (dropout(x) . A^T) . B^T`, and A and B train in
/// place of W.
///
/// All that is known of a path stands in the graph, so that a model read back from its text can be
/// trained on, fused or saved as an adapter. A path is known by its form, whatever its nodes and
/// states are called.
namespace lathe::compress {

/// A path of low rank and the linear it stands beside.
struct LoraPath {
  std::string name;                                              ///< of the linear
  NodeId linear, a, b, dropout, down, up, factor, product, sum;  ///< no node for dropout: none
  /// The mask of the linear's weight, which covers the path too (masked_lora.h), and the product
  /// with it; no nodes where the weight has none. `down` is then B . A, `product` that times
  /// alpha/rank, and `up` the node that multiplies with it.
  NodeId mask = {}, masked = {};
  bool is_rounded = false;  ///< whether a quantizer stands before one of its states
  std::int64_t rank = 0;
  double scaling = 1;  ///< alpha/rank
  double dropout_rate = 0;
};

/// What PEFT calls the states of the linear `name`, and an inserted path's are called.
std::string lora_a_name(std::string_view name);
std::string lora_b_name(std::string_view name);

/// Every path of the graph, in topological order.
std::vector<LoraPath> find_lora(const Graph& graph);

/// The nodes that a path can stand beside: those that multiply rows with a parameter that is a
/// matrix, and are no part of a path themselves.
std::vector<NodeId> adaptable_linears(const Graph& graph);

/// Adds a path to one linear. Fails where its weight is not its own, or is computed in a way that
/// fusing could not undo. Beside a masked weight the path is masked too. The caller gives A and B
/// their values.
void add_lora_path(Graph& graph, NodeId linear, int rank, double scaling, double dropout);

/// Adds a path to every linear whose name a target matches; returns how many. A starts random by
/// `seed`, B with zeros, so the outputs are what they were. Fails when a target matches nothing.
int insert_lora(Graph& graph, State& state, const LoraOptions& options, std::uint64_t seed);

/// Adds every path's product to its linear's weight and takes the path away; returns how many. The
/// graph is then the one from before the insertion. Fails naming a linear whose weight or path is
/// rounded: the sum would be rounded where its parts were not.
int fuse_lora(Graph& graph, State& state);

/// Adds the products of paths to the values of their linears' weights, where `values` has them;
/// masks are left to others.
void add_lora_products(const Graph& graph, const State& state, State& values);

/// Takes every path away and leaves the weights as they are: the model of before the insertion.
void remove_lora(Graph& graph);

}  // namespace lathe::compress

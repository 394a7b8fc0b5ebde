#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/hardware/external/external_layer.h"
#include "lathe/hardware/mapping/parallelism.h"
#include "lathe/hardware/netlist.h"
#include "lathe/numerics/integer/requant.h"

/// What the mappings of ops to blocks work on: an integer graph that is read and a netlist that
/// grows.
namespace lathe::hardware {

/// A value of the graph as a stream: one example is one frame.
struct MappedValue {
  StreamId stream = 0;
  std::vector<std::int64_t> dims;  ///< of the tensor of one example
  /// Which element of the tensor, counted row by row, comes at each place of the frame; empty: they
  /// come row by row. Images come pixel by pixel.
  std::vector<std::int64_t> order = {};
};

/// A place where tensors enter or leave a design; the netlist's inputs and outputs have their
/// order.
struct DesignPort {
  std::string name;                ///< of the graph's input or output
  std::string node;                ///< of the graph, whose result is the integers that pass
  std::vector<std::int64_t> dims;  ///< of one example
  std::vector<std::int64_t> order = {};
  numerics::IntegerRange range = {};
  std::vector<double> scale = {};  ///< what 1 is worth; one, or one for each of the last axis
  /// The node is a mask of ones and then zeros; one number passes, how many are one.
  bool is_length = false;
};

struct MappingOptions {
  std::string name = "top";
  Parallelism parallelism = {};              ///< a layer that is not here has one lane in and out
  SymbolValues symbols = {};                 ///< of sizes such as L; B is one example
  std::vector<ExternalLayer> external = {};  ///< that replace what their nodes are mapped to
};

class GraphMapper {
 public:
  /// `graph` is one of integers.
  GraphMapper(const Graph& graph, const State& state, MappingOptions options);

  /// Maps every node by the mapping of its op. Fails naming every node that has no hardware.
  void run();

  Netlist netlist;
  std::vector<DesignPort> inputs, outputs;
  /// The node that each instance came from, by the instance's number.
  std::vector<NodeId> origins;

  // The graph.
  const Graph& graph() const { return graph_; }
  const MappingOptions& options() const { return options_; }
  std::vector<std::int64_t> example_dims(Value value) const;
  /// The integers of a state; fails where the value is none.
  Values integers(Value value) const;
  bool is_constant(Value value) const { return graph_.is(value.node, "state"); }

  // What was mapped.
  const MappedValue* find(Value value) const;
  const MappedValue& operand(NodeId node, std::size_t index) const;
  const Stream& type(const MappedValue& value) const { return netlist.type(value.stream); }
  /// The stream of an operand in beats of so many lanes.
  StreamId read(NodeId node, std::size_t index, int lanes);
  /// The lanes of a layer that takes vectors of `in` elements and gives those of `out`.
  Lanes lanes(NodeId node, std::int64_t in, std::int64_t out) const;
  /// The lanes in which the first layer behind a value wants it.
  int wanted_lanes(Value value) const;

  // What is added.
  /// Adds an instance that is named after a node; sets what its elements mean from the attributes
  /// of the node `result`.
  StreamId add(NodeId node, Instance instance, NodeId result);
  /// The name of a node in the model, or all of it where another part has that.
  std::string new_name(NodeId node) const { return instance_name(node, ""); }
  /// Says that the instances added since come from a node.
  void claim(NodeId node) { origins.resize(netlist.instances().size(), node); }
  /// How many elements of an example a mask keeps, as a stream of one number that comes from
  /// outside.
  StreamId length_of(Value mask);
  void set(NodeId node, MappedValue value) { values_[{node, 0}] = std::move(value); }
  /// The requant that is the only reader of a node's result, for a block that rounds what it
  /// gives; nothing where there is none.
  std::optional<NodeId> requant_behind(NodeId node) const;
  /// The parameters and the table of multipliers of a block that rounds as a `requant` node says,
  /// or not at all where `node` is another: its width must then hold every result.
  void add_requantization(Instance& instance, NodeId node) const;

  /// Resources and cycles of one layer and what follows it up to the next, with other lanes.
  struct LayerCost {
    std::int64_t cycles = 0;
    Resources resources = {};
  };
  /// Nothing where the layer cannot have these lanes. `run` must have been called.
  std::optional<LayerCost> cost_of(NodeId layer, Lanes lanes) const;
  /// The nodes that have lanes of their own, with the sizes that these divide.
  struct FoldedLayer {
    NodeId node;
    std::int64_t in = 1, out = 1;
  };
  std::vector<FoldedLayer> folded_layers() const;

 private:
  void map(NodeId node);
  const ExternalLayer* external_of(NodeId node) const;
  void map_external(NodeId node, const ExternalLayer& layer);
  void add_outputs();
  std::string instance_name(NodeId node, const std::string& suffix) const;

  const Graph& graph_;
  const State& state_;
  MappingOptions options_;
  std::map<Value, MappedValue> values_;
  std::map<Value, StreamId> lengths_;
  std::set<NodeId> refused_;
  std::vector<std::string> places_;
};

/// How an op becomes blocks: each in its own file.
struct BlockMapping {
  std::string name;  ///< of the op
  std::function<void(GraphMapper&, NodeId)> map;
  /// The sizes of the vectors that the layer takes and gives, where its lanes can be chosen.
  std::function<std::pair<std::int64_t, std::int64_t>(const GraphMapper&, NodeId)> sizes = {};
};

/// What a range and a scale are called: "fixed:8,3", or "8 bits of 0.0173".
std::string meaning_of(const numerics::IntegerRange& range, const std::vector<double>& scale);

}  // namespace lathe::hardware

#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/registry.h"
#include "lathe/io/onnx/export_onnx.h"

namespace lathe::io::onnx {

/// One node of our graph as its writer sees it, and the file that grows behind it.
class ExportCall {
 public:
  /// What is known while a graph is written.
  struct Context {
    const Graph& graph;
    const State& state;
    const std::set<NodeId>& parameters;  ///< nodes that states alone decide
    ExportedModel& target;
    std::map<Value, std::string>& names;  ///< of values that the file has already
  };
  ExportCall(Context context, NodeId node)
      : context_(context),
        graph_(context.graph),
        node_(node),
        target_(context.target),
        names_(context.names) {}

  const Graph& graph() const { return graph_; }
  NodeId node() const { return node_; }
  AttributeReader attributes() const { return graph_.attribute(node_); }
  bool has(std::size_t index) const {
    return index < graph_.inputs(node_).size() && !graph_.input(node_, index).is_none();
  }
  Value operand(std::size_t index) const { return graph_.input(node_, index); }
  const Type& type(std::size_t index) const { return graph_.type(operand(index)); }
  const Type& result_type(std::size_t index = 0) const { return graph_.types(node_)[index]; }

  /// What the file calls an operand, which is written now where it is a parameter.
  std::string input(std::size_t index);
  std::vector<std::string> inputs();
  /// The value of an operand that is a parameter; nullopt where it is computed from inputs.
  std::optional<Tensor> parameter(std::size_t index) const;
  /// The value of a parameter of the graph.
  Tensor evaluate(Value value) const;

  /// Adds a node with one result, and returns what it is called.
  std::string add(std::string op, std::vector<std::string> inputs,
                  std::map<std::string, AttributeValue, std::less<>> attributes = {},
                  std::string_view role = "part");
  std::string constant(Tensor tensor, std::string_view role = "constant");
  std::string number(double value, DType dtype = DType::F32);
  std::string integers(std::vector<std::int64_t> values);
  /// A vector that holds a shape, whatever symbols are in it.
  std::string shape(const Shape& shape);
  std::string cast(const std::string& value, DType from, DType to);

  /// Calls a value of the file the result of the node.
  void give(const std::string& name, std::size_t index = 0) {
    names_[{node_, static_cast<std::int32_t>(index)}] = name;
  }
  /// Adds a node of the file for the whole node, with as many results.
  void give_node(std::string op, std::vector<std::string> inputs,
                 std::map<std::string, AttributeValue, std::less<>> attributes = {},
                 std::string domain = {});
  ExportedModel& target() { return target_; }
  std::string unique(std::string_view role);
  /// The name of one of the graph's values, where the file has no array of that name yet.
  std::string free_name(Value value);

 private:
  std::string symbol(const std::string& name);

  Context context_;
  const Graph& graph_;
  NodeId node_;
  ExportedModel& target_;
  std::map<Value, std::string>& names_;
};

/// A weight as the file has it: whole numbers with their scales where its format allows it, else
/// plain floats. `is_flipped`: a matrix [n,k] as [k,n].
std::string write_weight(ExportCall& call, std::size_t index, bool is_flipped);

/// How an op of ours is written in ONNX's; registered under our op's name.
struct OnnxWriter {
  std::string name;
  void (*write)(ExportCall&);
  bool takes_wide = false;  ///< whole numbers of 64 bits do as well as those of 32
};

using OnnxWriterRegistry = Registry<OnnxWriter>;

}  // namespace lathe::io::onnx

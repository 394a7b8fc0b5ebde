#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/registry.h"
#include "lathe/io/onnx/known.h"
#include "lathe/io/onnx/onnx_model.h"

namespace lathe::io::onnx {

/// One node of an ONNX graph as its mapping sees it: what it reads, and where to add the nodes that
/// mean the same.
class OnnxCall {
 public:
  /// How a value becomes one of the graph that is being made.
  using Materialize = std::function<Value(Known&)>;
  OnnxCall(const OnnxNode& node, std::int64_t opset, Graph& graph, std::vector<Known*> inputs,
           Materialize materialize, Materialize transposed = {});

  const OnnxNode& node() const { return node_; }
  /// The version of the op's domain that the file was written for.
  std::int64_t opset() const { return opset_; }
  Graph& graph() { return graph_; }

  // Attributes, with what stands for one that is absent. Fails on one of another kind.
  bool has_attribute(std::string_view name) const { return node_.attributes.contains(name); }
  std::int64_t integer(std::string_view name, std::int64_t absent) const;
  double real(std::string_view name, double absent) const;
  std::string text(std::string_view name, std::string_view absent) const;
  std::vector<std::int64_t> integers(std::string_view name,
                                     std::vector<std::int64_t> absent = {}) const;

  // Operands.
  std::size_t num_inputs() const { return inputs_.size(); }
  bool has(std::size_t index) const { return index < inputs_.size() && inputs_[index] != nullptr; }
  const Known& known(std::size_t index) const;
  /// The operand in the graph.
  Value value(std::size_t index);
  Type type(std::size_t index);
  /// A constant matrix [k,n] as the weight [n,k] of a layer: one state, stored as ours are.
  Value weight(std::size_t index);
  /// Its value, where it is the same in every run.
  const Tensor* constant(std::size_t index) const;
  /// The same; fails where it is not known, naming `what` it is.
  const Tensor& need_constant(std::size_t index, std::string_view what) const;
  std::vector<std::int64_t> need_integers(std::size_t index, std::string_view what) const;
  double need_number(std::size_t index, std::string_view what) const;
  /// The elements of a shape, which may have symbols in it.
  std::vector<Size> need_sizes(std::size_t index, std::string_view what) const;
  /// An attribute of older opsets that is an operand in newer ones; nullopt where neither is there.
  std::optional<std::vector<std::int64_t>> integers_of(std::string_view attribute,
                                                       std::size_t operand) const;

  // Nodes. They are named after the ONNX node, with `role` behind it where there is one.
  Value add(std::string op, std::vector<Value> inputs, Attributes attributes = {},
            std::vector<Type> types = {}, std::string_view role = {});
  Value reshape(Value x, Shape shape, std::string_view role = {});
  Value transpose(Value x, std::vector<std::int64_t> axes, std::string_view role = {});
  Value cast(Value x, DType dtype);
  /// A number, as an array without axes.
  Value number(double value, DType dtype = DType::F32);
  Value array(const Tensor& tensor, std::string_view role);
  const Type& type_of(Value value) const { return graph_.type(value); }
  /// Makes an operand that is broadcast have the shape given.
  Value broadcast(Value x, const Shape& shape);

  // Results.
  std::size_t num_outputs() const { return node_.outputs.size(); }
  /// Whether anybody could read it.
  bool wants(std::size_t output) const {
    return output < node_.outputs.size() && !node_.outputs[output].empty();
  }
  void give(Value value, std::size_t output = 0);
  void give(Tensor constant, std::size_t output = 0);
  void give(SizeArray sizes, std::size_t output = 0);
  void give(AffineArray array, std::size_t output = 0);
  void give(Known known, std::size_t output);
  std::vector<std::optional<Known>>& results() { return results_; }

  /// Fails with what is not supported of this op.
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail("{} (opset {}): {}", node_.op, opset_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  const OnnxNode& node_;
  std::int64_t opset_;
  Graph& graph_;
  std::vector<Known*> inputs_;
  Materialize materialize_, transposed_;
  std::string name_;
  std::vector<std::optional<Known>> results_;
};

/// An op of ONNX that can be imported: how a node of it is written in our ops. Registered under
/// its name, with the domain and "::" in front where that is not the default one.
struct OnnxOp {
  std::string name;
  void (*map)(OnnxCall&);
  /// Gives the results from what is known of sizes and places alone, and says whether it could;
  /// null where the op has nothing to do with them.
  bool (*fold)(OnnxCall&) = nullptr;
};

using OnnxOpRegistry = Registry<OnnxOp>;

/// The position of an axis that may count from the end; fails where there is none.
std::size_t axis_at(const OnnxCall& call, std::int64_t axis, std::size_t rank);

}  // namespace lathe::io::onnx

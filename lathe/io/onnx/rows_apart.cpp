#include "lathe/io/onnx/rows_apart.h"

#include <optional>
#include <set>

#include "lathe/io/onnx/known.h"

namespace lathe::io::onnx {
namespace {

using Axis = std::optional<std::size_t>;

class Rows {
 public:
  Rows(const Graph& graph, const std::string& symbol) : graph_(graph), symbol_(symbol) {}

  bool stay_apart() {
    for (const NodeId id : graph_.topological_order()) {
      if (!depends_on_rows(id)) continue;
      dependent_.insert(id);
      for (const Type& type : graph_.types(id))
        if (!axis_in(type)) return false;  // they were joined, or meet each other
      if (!graph_.is(id, "input") && !keeps_apart(id)) return false;
    }
    return true;
  }

 private:
  bool depends_on_rows(NodeId id) const {
    if (graph_.is(id, "input")) {
      for (const Size& size : graph_.types(id)[0].shape)
        if (size.depends_on(symbol_)) return true;
      return false;
    }
    for (const Value& value : graph_.inputs(id))
      if (has_rows(value)) return true;
    return false;
  }

  bool has_rows(Value value) const { return !value.is_none() && dependent_.contains(value.node); }

  // The only axis that counts rows, or so many elements of each; nothing where there is none.
  Axis axis_in(const Type& type) const {
    Axis found;
    for (std::size_t axis = 0; axis < type.rank(); ++axis) {
      if (!type.shape[axis].depends_on(symbol_)) continue;
      const std::optional<Size> each = exact_quotient(type.shape[axis], Size::symbol(symbol_));
      if (found || !each || each->depends_on(symbol_)) return std::nullopt;
      found = axis;
    }
    return found;
  }

  // How many elements each row is cut into by the axes in front.
  static Size outer(const Type& type, std::size_t axis) {
    Size product = 1;
    for (std::size_t i = 0; i < axis; ++i) product *= type.shape[i];
    return product;
  }

  bool keeps_apart(NodeId id) const {
    const Op& op = graph_.op(id);
    if (op.is_elementwise || op.name == "broadcast_to" || op.name == "cast" ||
        op.name == "transpose")
      return true;
    for (std::size_t i = 0; i < graph_.inputs(id).size(); ++i) {
      const Value value = graph_.input(id, i);
      // What others than the first are read by is told apart by the shape of the result.
      if (has_rows(value) && (i == 0 || op.name == "concat") &&
          !keeps_apart(id, graph_.type(value), *axis_in(graph_.type(value))))
        return false;
    }
    return true;
  }

  // Of a node whose operand has rows along an axis: whether that axis is none it works along.
  bool keeps_apart(NodeId id, const Type& x, std::size_t rows) const {
    const std::string& op = graph_.op(id).name;
    const AttributeReader attributes = graph_.attribute(id);
    const auto is_rows = [&](std::int64_t axis) {
      return axis == static_cast<std::int64_t>(rows) ||
             axis + static_cast<std::int64_t>(x.rank()) == static_cast<std::int64_t>(rows);
    };
    if (op == "reshape") {
      const Type& y = graph_.types(id)[0];
      return outer(x, rows) == outer(y, *axis_in(y));
    }
    if (op == "crop")
      return attributes.integers("begins")[rows] == 0 &&
             (attributes.integers("steps").empty() || attributes.integers("steps")[rows] == 1);
    if (op == "pad")
      return attributes.integers("pads")[rows] == 0 &&
             attributes.integers("pads")[rows + x.rank()] == 0;
    if (op == "gather_parts")
      return attributes.integer("batch_axes") > static_cast<std::int64_t>(rows);
    if (op == "scatter_parts") return false;
    if (op == "conv2d" || op == "max_pool2d" || op == "avg_pool2d") return rows == 0;
    for (const AttributeSpec& attribute : graph_.op(id).attributes) {
      if (attribute.name == "axis") return !is_rows(attributes.integer("axis"));
      if (attribute.name != "axes") continue;
      for (const std::int64_t axis : attributes.integers("axes"))
        if (is_rows(axis)) return false;
      return true;
    }
    // Layers and norms work along the last axis; products leave what they add up out of their
    // result.
    return op == "matmul" || rows + 1 < x.rank();
  }

  const Graph& graph_;
  const std::string symbol_;
  std::set<NodeId> dependent_;
};

}  // namespace

bool keeps_rows_apart(const Graph& graph, const std::string& symbol) {
  return Rows(graph, symbol).stay_apart();
}

}  // namespace lathe::io::onnx

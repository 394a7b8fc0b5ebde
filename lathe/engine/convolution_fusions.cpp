#include <optional>
#include <set>

#include "lathe/core/pattern.h"
#include "lathe/engine/channels_last.h"
#include "lathe/engine/fusions.h"
#include "lathe/engine/lowered_node.h"

namespace lathe::engine {
namespace {

// Of products of floats and of whole numbers: where the residual is among the operands.
std::optional<std::size_t> residual_operand(const Graph& graph, NodeId id) {
  if (graph.is(id, "image_conv2d")) return 3;
  if (graph.is(id, "image_code_conv2d")) return 7;
  return std::nullopt;
}

bool has_residual(const Graph& graph, NodeId id) {
  const std::size_t index = *residual_operand(graph, id);
  return index < graph.inputs(id).size() && !graph.input(id, index).is_none();
}

// A convolution that a value is, if nobody else reads it and nothing was applied last.
bool is_open(const Graph& graph, Value value) {
  return residual_operand(graph, value.node) && graph.uses(value.node).size() == 1 &&
         graph.attribute(value.node).text("activation") == "none";
}

// A convolution with more operands or another attribute in the place of a node behind it.
std::optional<Value> add_convolution(Graph& graph, const Backend& backend, Match match,
                                     NodeId convolution, std::vector<Value> operands,
                                     Attributes attributes) {
  match.nodes.push_back(convolution);
  return add_lowered(graph, backend, match, graph.op(convolution).name, std::move(operands),
                     std::move(attributes));
}

void fuse_residuals_of_images(Graph& graph, const Backend& backend) {
  const auto fuse = [&](Graph& g, const Match& match, Value y,
                        Value residual) -> std::optional<Value> {
    if (!is_open(g, y) || has_residual(g, y.node) || g.type(residual) != g.type(y))
      return std::nullopt;
    std::vector<Value> operands = g.inputs(y.node);
    const std::size_t place = *residual_operand(g, y.node);
    operands.resize(std::max(operands.size(), place + 1), kNone);
    operands[place] = residual;
    return add_convolution(g, backend, match, y.node, std::move(operands), g.attributes(y.node));
  };
  rewrite(graph, Pattern("add(y, r)"), [&](Graph& g, const Match& match) -> std::optional<Value> {
    if (g.types(match.nodes.front())[0].rank() != 4) return std::nullopt;
    // Of two convolutions the later one takes the other in.
    const bool is_second =
        is_open(g, match["r"]) && (!is_open(g, match["y"]) || match["y"].node < match["r"].node);
    return is_second ? fuse(g, match, match["r"], match["y"])
                     : fuse(g, match, match["y"], match["r"]);
  });
}

void fuse_activations_of_images(Graph& graph, const Backend& backend) {
  std::set<std::string> ops;
  for (const char* const convolution : {"image_conv2d", "image_code_conv2d"})
    for (const NodeId id : graph.nodes_of(convolution))
      for (const NodeId user : graph.users(id))
        if (graph.inputs(user).size() == 1 && graph.op(user).is_elementwise)
          ops.insert(graph.op(user).name);
  for (const std::string& op : ops)
    rewrite(graph, Pattern(op + "(y)"), [&](Graph& g, const Match& match) -> std::optional<Value> {
      const std::optional<std::string> name = activation_name(g, match.nodes.front());
      if (!name || !is_open(g, match["y"])) return std::nullopt;
      Attributes attributes = g.attributes(match["y"].node);
      attributes["activation"] = *name;
      const NodeId convolution = match["y"].node;
      return add_convolution(g, backend, match, convolution, g.inputs(convolution), attributes);
    });
}

// A convolution whose result is wanted in planes alone writes them.
void write_planes(Graph& graph, const Backend& backend) {
  rewrite(
      graph, Pattern("transpose(y)"), [&](Graph& g, const Match& match) -> std::optional<Value> {
        const Value y = match["y"];
        if (!residual_operand(g, y.node) || g.uses(y.node).size() != 1 || has_residual(g, y.node) ||
            g.attribute(match.nodes.front()).integers("axes") !=
                std::vector<std::int64_t>{0, 3, 1, 2})
          return std::nullopt;
        Attributes attributes = g.attributes(y.node);
        attributes["y_last"] = false;
        return add_convolution(g, backend, match, y.node, g.inputs(y.node), attributes);
      });
}

}  // namespace

void fuse_convolutions(Graph& graph, const Backend& backend) {
  fuse_residuals_of_images(graph, backend);
  fuse_activations_of_images(graph, backend);
  write_planes(graph, backend);
}

}  // namespace lathe::engine

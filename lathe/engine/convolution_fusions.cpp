#include <algorithm>
#include <optional>
#include <set>

#include "lathe/core/pass.h"
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

// A residual that is a convolution nobody else reads, with nothing behind it, is computed with the
// one that it is added to.
void fuse_shortcuts_of_images(Graph& graph, const Backend& backend) {
  const auto is_plain = [](const Graph& g, NodeId id) {
    const AttributeReader attributes = g.attribute(id);
    return attributes.flag("x_last") && attributes.flag("y_last") &&
           attributes.integer("groups") == 1;
  };
  for (const NodeId id : graph.nodes_of("image_conv2d")) {
    if (!has_residual(graph, id) || !is_plain(graph, id)) continue;
    const Value residual = graph.input(id, 3);
    if (!graph.is(residual.node, "image_conv2d") || !is_open(graph, residual) ||
        has_residual(graph, residual.node) || !is_plain(graph, residual.node))
      continue;
    std::vector<Value> operands = graph.inputs(id), others = graph.inputs(residual.node);
    operands.resize(8, kNone);
    others.resize(8, kNone);
    operands[3] = kNone;
    others.erase(others.begin() + 3);
    operands.insert(operands.end(), others.begin(), others.end());
    Attributes attributes = graph.attributes(id);
    const AttributeReader shortcut = graph.attribute(residual.node);
    for (const char* const name : {"strides", "pads", "dilations"})
      attributes[std::string("short_") + name] = shortcut.integers(name);
    attributes["short_eps"] = shortcut.real("eps");
    Match match;
    match.nodes = {id, residual.node};
    const std::optional<Value> added = add_lowered(graph, backend, match, "image_summed_conv2d",
                                                   std::move(operands), std::move(attributes));
    if (added) graph.replace_all_uses({id, 0}, *added);
  }
}

// A pool whose convolution nobody else reads becomes a part of it, where it is the first one:
// behind others a backend has rows enough to write.
void fuse_pools_of_images(Graph& graph, const Backend& backend) {
  rewrite(graph, Pattern("image_max_pool2d(y)"),
          [&](Graph& g, const Match& match) -> std::optional<Value> {
            const NodeId convolution = match["y"].node;
            if (!g.is(convolution, "image_conv2d") || g.uses(convolution).size() != 1 ||
                has_residual(g, convolution) || g.attribute(convolution).flag("x_last") ||
                !g.attribute(convolution).flag("y_last"))
              return std::nullopt;
            Attributes attributes = g.attributes(convolution);
            const AttributeReader pool = g.attribute(match.nodes.front());
            for (const char* const name : {"kernel", "strides", "pads"})
              attributes[std::string("pool_") + name] = pool.integers(name);
            Match both = match;
            both.nodes.push_back(convolution);
            return add_lowered(g, backend, both, "image_pooled_conv2d", g.inputs(convolution),
                               std::move(attributes));
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
  run_pass("remove-dead-nodes", graph);  // dead nodes would count as readers
  fuse_pools_of_images(graph, backend);
  fuse_shortcuts_of_images(graph, backend);
  fuse_batch_norms(graph, backend);
  write_planes(graph, backend);
}

}  // namespace lathe::engine

#include <algorithm>
#include <map>
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

// The statistics of a convolution's results are summed while an image of them is near.
void fuse_statistics_of_images(Graph& graph, const Backend& backend) {
  for (const NodeId id : graph.nodes_of("channel_statistics")) {
    const Value y = graph.input(id, 0);
    if (!graph.is(y.node, "image_conv2d") || has_residual(graph, y.node)) continue;
    const AttributeReader attributes = graph.attribute(y.node);
    const std::vector<Value>& operands = graph.inputs(y.node);
    if (operands.size() > 4 || attributes.text("activation") != "none" ||
        !attributes.flag("y_last") || attributes.integer("tile") != 0)
      continue;
    Attributes both = graph.attributes(y.node);
    for (const char* const name : {"y_last", "activation", "tile"}) both.erase(name);
    both["eps"] = graph.attribute(id).real("eps");
    Match match;
    match.nodes = {id, y.node};
    const std::optional<Value> added = add_lowered(
        graph, backend, match, "image_conv2d_statistics",
        {operands[0], operands[1], operands.size() > 2 ? operands[2] : kNone, graph.input(id, 1)},
        std::move(both));
    if (!added) continue;
    for (int result = 0; result < 3; ++result)
      graph.replace_all_uses({id, result}, {added->node, result + 1});
    graph.replace_all_uses(y, *added);
  }
}

// What comes back through relu, and through an addition behind it, is summed for the batch norm in
// front of it where it is made.
void fuse_sums_of_gradients(Graph& graph, const Backend& backend) {
  for (const NodeId id : graph.nodes_of("channel_gradients")) {
    const Value dy = graph.input(id, 0);
    if (!graph.is(dy.node, "map_gradient") || graph.attribute(dy.node).text("function") != "relu")
      continue;
    const Value sum = graph.input(dy.node, 0), relu = graph.input(dy.node, 1);
    std::vector<Value> operands = {sum, kNone, relu};
    const bool is_addition = graph.is(sum.node, "add") && graph.uses(sum.node).size() == 1 &&
                             graph.type(graph.input(sum.node, 0)) == graph.type(sum) &&
                             graph.type(graph.input(sum.node, 1)) == graph.type(sum);
    if (is_addition) operands = {graph.input(sum.node, 0), graph.input(sum.node, 1), relu};
    for (std::size_t i = 1; i < graph.inputs(id).size(); ++i)
      operands.push_back(graph.input(id, i));
    Match match;
    match.nodes = {dy.node, id};
    if (is_addition) match.nodes.push_back(sum.node);
    const std::optional<Value> added = add_lowered(graph, backend, match, "relu_channel_gradients",
                                                   std::move(operands), graph.attributes(id));
    if (!added) continue;
    graph.replace_all_uses(dy, *added);
    for (int result = 0; result < 5; ++result)
      graph.replace_all_uses({id, result}, {added->node, result + 1});
  }
}

// What a batch norm's gradient hands to both gradients of the convolution in front of it, and to
// nobody else, is made for them image by image.
void fuse_gradients_of_images(Graph& graph, const Backend& backend) {
  for (const NodeId norm : graph.nodes_of("normalize_channels_gradient")) {
    std::optional<NodeId> input, weight;
    for (const NodeId user : graph.users(norm)) {
      if (graph.is(user, "image_conv2d_input_gradient")) input = user;
      if (graph.is(user, "image_conv2d_weight_gradient")) weight = user;
    }
    if (!input || !weight || graph.uses(norm).size() != 2) continue;
    const AttributeReader of_input = graph.attribute(*input), of_weight = graph.attribute(*weight);
    if (!of_input.flag("dx_last") || !of_weight.flag("x_last") ||
        graph.types(*input)[0] != graph.type(graph.input(*weight, 1)))
      continue;
    Attributes attributes = graph.attributes(*input);
    for (const char* const name : {"dy_last", "dx_last"}) attributes.erase(name);
    Attributes others = graph.attributes(*weight);
    for (const char* const name : {"dy_last", "x_last"}) others.erase(name);
    if (attributes != others) continue;
    std::vector<Value> operands = {graph.input(norm, 0), graph.input(*weight, 1),
                                   graph.input(*input, 1)};
    for (std::size_t i = 1; i < graph.inputs(norm).size(); ++i)
      operands.push_back(graph.input(norm, i));
    Match match;
    match.nodes = {*input, *weight, norm};
    const std::optional<Value> added =
        add_lowered(graph, backend, match, "image_normed_conv2d_gradients", std::move(operands),
                    std::move(attributes));
    if (!added) continue;
    graph.replace_all_uses({*input, 0}, *added);
    graph.replace_all_uses({*weight, 0}, {added->node, 1});
  }
}

// How often one of a node's results is read.
std::ptrdiff_t num_readers(const Graph& graph, Value value) {
  return std::ranges::count_if(graph.uses(value.node), [&](const Use& use) {
    if (use.kind == Use::Kind::Output) return graph.output(use.output) == value;
    if (use.kind == Use::Kind::StateUpdate) return graph.state_updates().at(use.user) == value;
    return graph.inputs(use.user)[static_cast<std::size_t>(use.operand)] == value;
  });
}

// What comes back from a convolution to relu in front of it is summed for the norm in front of that
// while an image of it is near.
void fuse_relus_of_gradients(Graph& graph, const Backend& backend) {
  std::map<NodeId, std::size_t> places;
  for (const NodeId id : graph.topological_order()) places.emplace(id, places.size());
  for (const NodeId id : graph.nodes_of("relu_channel_gradients")) {
    Value dx = graph.input(id, 0), more = graph.input(id, 1);
    const auto is_gradient = [&](Value value) {
      return !value.is_none() && value.index == 0 &&
             graph.is(value.node, "image_normed_conv2d_gradients");
    };
    if (!is_gradient(dx)) std::swap(dx, more);
    if (!is_gradient(dx) || graph.input(dx.node, 1) != graph.input(id, 2)) continue;
    if (num_readers(graph, dx) != 1) continue;
    // What is added to it must be there by then.
    if (!more.is_none() && places.at(more.node) > places.at(dx.node)) continue;
    std::vector<Value> operands = graph.inputs(dx.node);
    operands.push_back(more);
    for (std::size_t i = 3; i < graph.inputs(id).size(); ++i)
      operands.push_back(graph.input(id, i));
    Attributes attributes = graph.attributes(dx.node);
    attributes["eps"] = graph.attribute(id).real("eps");
    Match match;
    match.nodes = {id, dx.node};
    const std::optional<Value> added =
        add_lowered(graph, backend, match, "image_relu_normed_conv2d_gradients",
                    std::move(operands), std::move(attributes));
    if (!added) continue;
    graph.replace_all_uses({dx.node, 1}, {added->node, 1});
    graph.replace_all_uses({id, 0}, *added);
    for (int result = 1; result < 6; ++result)
      graph.replace_all_uses({id, result}, {added->node, result + 1});
    places[added->node] = places.at(dx.node);
  }
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
  fuse_statistics_of_images(graph, backend);
  fuse_sums_of_gradients(graph, backend);
  fuse_gradients_of_images(graph, backend);
  run_pass("remove-dead-nodes", graph);
  fuse_relus_of_gradients(graph, backend);
  write_planes(graph, backend);
}

}  // namespace lathe::engine

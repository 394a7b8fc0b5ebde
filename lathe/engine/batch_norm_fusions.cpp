#include <algorithm>
#include <map>
#include <optional>

#include "lathe/core/pass.h"
#include "lathe/core/pattern.h"
#include "lathe/engine/channels_last.h"
#include "lathe/engine/lowered_node.h"

// Batch norms as they are trained, and what lies in front of and behind them: a layer's images are
// several times the caches, so that whoever has an image near does all there is to do to it.

namespace lathe::engine {
namespace {

// A batch norm adds a residual and applies relu while it has its results in registers.
void fuse_norms_of_images(Graph& graph, const Backend& backend) {
  const auto is_open = [](const Graph& g, Value value) {
    return g.is(value.node, "normalize_channels") && g.uses(value.node).size() == 1;
  };
  const auto add_fused = [&](Graph& g, Match match, NodeId norm, std::vector<Value> operands,
                             bool has_relu) {
    match.nodes.push_back(norm);
    return add_lowered(g, backend, match, "fused_normalize_channels", std::move(operands),
                       {{"relu", has_relu}});
  };
  rewrite(graph, Pattern("add(y, r)"), [&](Graph& g, const Match& match) -> std::optional<Value> {
    // Of two norms the later one takes the other in.
    const bool is_second =
        is_open(g, match["r"]) && (!is_open(g, match["y"]) || match["y"].node < match["r"].node);
    const Value y = is_second ? match["r"] : match["y"];
    const Value residual = is_second ? match["y"] : match["r"];
    if (!is_open(g, y) || g.type(residual) != g.type(y)) return std::nullopt;
    std::vector<Value> operands = g.inputs(y.node);
    operands.push_back(residual);
    return add_fused(g, match, y.node, std::move(operands), false);
  });
  rewrite(graph, Pattern("relu(y)"), [&](Graph& g, const Match& match) -> std::optional<Value> {
    const Value y = match["y"];
    const bool is_sum = g.is(y.node, "fused_normalize_channels") && g.uses(y.node).size() == 1;
    if (!is_sum && !is_open(g, y)) return std::nullopt;
    return add_fused(g, match, y.node, g.inputs(y.node), true);
  });
}

// The statistics of a convolution's results are summed while an image of them is near.
void fuse_statistics_of_images(Graph& graph, const Backend& backend) {
  for (const NodeId id : graph.nodes_of("channel_statistics")) {
    const Value y = graph.input(id, 0);
    if (!graph.is(y.node, "image_conv2d")) continue;
    const AttributeReader attributes = graph.attribute(y.node);
    const std::vector<Value>& operands = graph.inputs(y.node);
    const bool has_residual = operands.size() > 3 && !operands[3].is_none();
    if (has_residual || operands.size() > 4 || attributes.text("activation") != "none" ||
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

// Relu of a norm, and of a residual with it, is made by the convolution that reads it, image by
// image. Where nobody else reads it but the gradients of that convolution, which have what the norm
// is of before them anyway, they make it again, and it is never written.
void fuse_norms_in_front(Graph& graph, const Backend& backend) {
  constexpr std::size_t kFront = 9, kFrontMean = 11;  // of the gradients
  for (const NodeId norm : graph.nodes_of("fused_normalize_channels")) {
    if (!graph.attribute(norm).flag("relu")) continue;
    const std::vector<Value> of_norm = graph.inputs(norm);  // x, mean, slope, bias, residual
    std::optional<NodeId> convolution, gradients;
    for (const NodeId user : graph.users(norm)) {
      if (graph.is(user, "image_conv2d_statistics")) convolution = user;
      if (graph.is(user, "image_relu_normed_conv2d_gradients") &&
          graph.input(user, kFront) == of_norm[0] && graph.input(user, kFrontMean) == of_norm[1])
        gradients = user;
    }
    if (!convolution) continue;
    const bool is_made_again = gradients && graph.uses(norm).size() == 2 && of_norm.size() == 4;
    std::vector<Value> operands = graph.inputs(*convolution);
    operands[0] = of_norm[0];
    operands.insert(operands.end(), of_norm.begin() + 1, of_norm.end());
    Match match;
    match.nodes = {*convolution, norm};
    const std::optional<Value> added =
        add_lowered(graph, backend, match, "image_normed_conv2d_statistics", std::move(operands),
                    graph.attributes(*convolution));
    if (!added) continue;
    for (int result = 0; result < 4; ++result)
      graph.replace_all_uses({*convolution, result}, {added->node, result});
    graph.replace_all_uses({norm, 0}, {added->node, 4});
    if (!is_made_again) continue;
    operands = graph.inputs(*gradients);
    operands[1] = operands[kFront];
    operands.insert(operands.end(), of_norm.begin() + 2, of_norm.end());
    match.nodes = {*gradients};
    const std::optional<Value> again =
        add_lowered(graph, backend, match, "image_relu_normed_conv2d_gradients",
                    std::move(operands), graph.attributes(*gradients));
    if (!again) continue;
    for (int result = 0; result < 7; ++result)
      graph.replace_all_uses({*gradients, result}, {again->node, result});
  }
}

}  // namespace

void fuse_batch_norms(Graph& graph, const Backend& backend) {
  fuse_norms_of_images(graph, backend);
  fuse_statistics_of_images(graph, backend);
  fuse_sums_of_gradients(graph, backend);
  fuse_gradients_of_images(graph, backend);
  run_pass("remove-dead-nodes", graph);
  fuse_relus_of_gradients(graph, backend);
  run_pass("remove-dead-nodes", graph);
  fuse_norms_in_front(graph, backend);
}

}  // namespace lathe::engine

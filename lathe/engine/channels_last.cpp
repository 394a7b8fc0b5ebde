#include "lathe/engine/channels_last.h"

#include <algorithm>
#include <map>
#include <optional>

#include "lathe/engine/origin.h"

namespace lathe::engine {
namespace {

const std::vector<std::int64_t> kToPlanes = {0, 3, 1, 2};
const std::vector<std::int64_t> kToLast = {0, 2, 3, 1};

// What lies behind a value of planes that is a transpose; nullopt where the value is no such.
std::optional<Value> find_last(const Graph& graph, Value value) {
  if (value.is_none() || !graph.is(value.node, "transpose")) return std::nullopt;
  if (graph.attribute(value.node).integers("axes") != kToPlanes) return std::nullopt;
  return graph.input(value.node, 0);
}

// Rewrites one graph, node by node in topological order.
class LayoutChange {
 public:
  LayoutChange(Graph& graph, const Backend& backend) : graph_(graph), backend_(backend) {}

  void change(NodeId id) {
    const std::string& op = graph_.op(id).name;
    if (op == "conv2d")
      change_convolution(id, 4);
    else if (op == "code_conv2d")
      change_convolution(id, 8);
    else if (op == "conv2d_input_gradient")
      change_gradient(id, {"dy_last"}, "dx_last");
    else if (op == "conv2d_weight_gradient")
      change_gradient(id, {"dy_last", "x_last"}, nullptr);
    else if (op == "max_pool2d" || op == "avg_pool2d")
      change_pool(id, op);
    else if (op == "max_pool2d_gradient")
      change_pool_gradient(id, 2);
    else if (op == "avg_pool2d_gradient")
      change_pool_gradient(id, 1);
    else if (op == "batch_norm")
      change_norm(id);
    else if (op == "normalize_batch")
      change_batch_norm(id);
    else if (op == "normalize_batch_gradient")
      change_batch_norm_gradient(id);
    else if (op == "concat")
      change_concat(id);
    else if (op == "mean")
      change_mean(id);
    else if (op == "reshape")
      change_reshape(id);
    else if (graph_.op(id).is_elementwise || op == "map_gradient")
      change_elementwise(id);
  }

 private:
  // Adds a node for another, or for the part of it that its name says; nothing where the backend
  // cannot run it.
  std::optional<Value> add(NodeId place, NodeSpec spec) {
    spec.name = graph_.name(place) + "/" + (spec.name.empty() ? "last" : spec.name);
    const NodeId added = graph_.insert_before(place, std::move(spec));
    if (!backend_.can_run(graph_, added)) {
      graph_.erase(added);
      return std::nullopt;
    }
    Origin origin;
    if (const Origin* earlier = graph_.find_annotation<Origin>(place))
      origin = *earlier;
    else
      origin.nodes = {graph_.name(place)};
    graph_.annotation<Origin>(added) = std::move(origin);
    return Value{added, 0};
  }

  void put_planes(NodeId id, Value last) {
    const NodeId planes = graph_.insert_before(id, {.name = graph_.name(id) + "/planes",
                                                    .op = "transpose",
                                                    .inputs = {last},
                                                    .attributes = {{"axes", kToPlanes}}});
    graph_.replace_all_uses({id, 0}, {planes, 0});
  }

  // A value in front of a node with its channels last.
  Value as_last(NodeId place, Value value) {
    if (const std::optional<Value> last = find_last(graph_, value)) return *last;
    const auto [turned, is_new] = turned_.try_emplace(value);
    if (is_new)
      turned->second = {graph_.insert_before(place, {.name = graph_.name(value.node) + "/last",
                                                     .op = "transpose",
                                                     .inputs = {value},
                                                     .attributes = {{"axes", kToLast}}}),
                        0};
    return turned->second;
  }

  // With its residual, it has so many operands.
  void change_convolution(NodeId id, std::size_t num_operands) {
    if (graph_.types(id)[0].dtype != DType::F32) return;
    std::vector<Value> operands = graph_.inputs(id);
    operands.resize(num_operands, kNone);
    const std::optional<Value> last = find_last(graph_, operands[0]);
    if (last) operands[0] = *last;
    Attributes attributes = graph_.attributes(id);
    attributes["x_last"] = last.has_value();
    attributes["y_last"] = true;
    if (const std::optional<Value> added = add(id, {.name = {},
                                                    .op = "image_" + graph_.op(id).name,
                                                    .inputs = operands,
                                                    .attributes = attributes}))
      put_planes(id, *added);
  }

  // A gradient, with a flag for each image operand and one for its result if that is images.
  void change_gradient(NodeId id, const std::vector<const char*>& flags, const char* result) {
    std::vector<Value> operands = graph_.inputs(id);
    Attributes attributes = graph_.attributes(id);
    for (std::size_t i = 0; i < flags.size(); ++i) {
      const std::optional<Value> last = find_last(graph_, operands[i]);
      attributes[flags[i]] = last.has_value();
      if (last) operands[i] = *last;
    }
    Type type = graph_.types(id)[0];
    if (result != nullptr) {
      attributes[result] = true;
      type = with_channels_last(type);
    }
    const std::optional<Value> added = add(id, {.name = {},
                                                .op = "image_" + graph_.op(id).name,
                                                .inputs = operands,
                                                .attributes = attributes,
                                                .types = {type}});
    if (!added) return;
    if (result != nullptr)
      put_planes(id, *added);
    else
      graph_.replace_all_uses({id, 0}, *added);
  }

  void change_pool(NodeId id, const std::string& op) {
    const std::optional<Value> last = find_last(graph_, graph_.input(id, 0));
    if (!last) return;
    if (const std::optional<Value> added = add(id, {.name = {},
                                                    .op = "image_" + op,
                                                    .inputs = {*last},
                                                    .attributes = graph_.attributes(id)}))
      put_planes(id, *added);
  }

  // Its first operands are images. If one of them has its channels last, all get it.
  void change_pool_gradient(NodeId id, std::size_t num_images) {
    std::vector<Value> operands = graph_.inputs(id);
    const bool any =
        std::any_of(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(num_images),
                    [&](Value value) { return find_last(graph_, value).has_value(); });
    if (!any) return;
    for (std::size_t i = 0; i < num_images; ++i) operands[i] = as_last(id, operands[i]);
    if (const std::optional<Value> added =
            add(id, {.name = {},
                     .op = "image_" + graph_.op(id).name,
                     .inputs = operands,
                     .attributes = graph_.attributes(id),
                     .types = {with_channels_last(graph_.types(id)[0])}}))
      put_planes(id, *added);
  }

  // Channels of several images, all of which lie last.
  void change_concat(NodeId id) {
    if (graph_.types(id)[0].rank() != 4) return;
    const std::int64_t axis = graph_.attribute(id).integer("axis");
    if (axis != 1 && axis != -3) return;
    std::vector<Value> operands;
    for (const Value& value : graph_.inputs(id)) {
      const std::optional<Value> last = find_last(graph_, value);
      if (!last) return;
      operands.push_back(*last);
    }
    if (const std::optional<Value> added = add(id, {.name = {},
                                                    .op = "concat",
                                                    .inputs = operands,
                                                    .attributes = {{"axis", std::int64_t{3}}}}))
      put_planes(id, *added);
  }

  // A batch norm of given statistics behind a convolution that nobody else reads is a part of it.
  void change_norm(NodeId id) {
    const Value planes = graph_.input(id, 0);
    const std::optional<Value> last = find_last(graph_, planes);
    if (!last || !graph_.state_updates().empty() || !graph_.is(last->node, "image_conv2d") ||
        graph_.uses(last->node).size() != 1 || graph_.uses(planes.node).size() != 1)
      return;
    std::vector<Value> operands = graph_.inputs(last->node);
    if (operands.size() != 4) return;  // it has one
    operands.insert(operands.end(), graph_.inputs(id).begin() + 1, graph_.inputs(id).end());
    Attributes attributes = graph_.attributes(last->node);
    attributes["eps"] = graph_.attribute(id).real("eps");
    const std::optional<Value> added =
        add(id, {.name = {}, .op = "image_conv2d", .inputs = operands, .attributes = attributes});
    if (!added) return;
    Origin& origin = graph_.annotation<Origin>(added->node);
    const std::vector<std::string> before = graph_.find_annotation<Origin>(last->node)->nodes;
    origin.nodes.insert(origin.nodes.begin(), before.begin(), before.end());
    put_planes(id, *added);
  }

  // A batch norm as it is trained, in parts: what goes through all pixels first, and what is done
  // to each, which joins the steps around it.
  void change_batch_norm(NodeId id) {
    const std::optional<Value> last = find_last(graph_, graph_.input(id, 0));
    if (!last) return;
    const std::optional<Value> statistics = add(id, {.name = "statistics",
                                                     .op = "channel_statistics",
                                                     .inputs = {*last, graph_.input(id, 1)},
                                                     .attributes = graph_.attributes(id)});
    if (!statistics) return;
    const Value mean = *statistics, variance{mean.node, 1}, slope{mean.node, 2};
    const std::optional<Value> added = add(id, {.name = {},
                                                .op = "normalize_channels",
                                                .inputs = {*last, mean, slope, graph_.input(id, 2)},
                                                .attributes = {}});
    if (!added) return;
    put_planes(id, *added);
    graph_.replace_all_uses({id, 1}, mean);
    graph_.replace_all_uses({id, 2}, variance);
  }

  // Where no loss depends on the statistics.
  void change_batch_norm_gradient(NodeId id) {
    const std::vector<Value>& operands = graph_.inputs(id);
    for (std::size_t i = 5; i < operands.size(); ++i)
      if (!operands[i].is_none()) return;
    const std::optional<Value> x = find_last(graph_, operands[1]);
    if (!x) return;
    const Value dy = as_last(id, operands[0]), weight = operands[2], mean = operands[3];
    const std::optional<Value> sums = add(id, {.name = "sums",
                                               .op = "channel_gradients",
                                               .inputs = {dy, *x, weight, mean, operands[4]},
                                               .attributes = graph_.attributes(id)});
    if (!sums) return;
    const NodeId made = sums->node;
    const std::optional<Value> added =
        add(id, {.name = {},
                 .op = "normalize_channels_gradient",
                 .inputs = {dy, *x, mean, {made, 2}, {made, 3}, {made, 4}},
                 .attributes = {}});
    if (!added) return;
    put_planes(id, *added);
    graph_.replace_all_uses({id, 1}, {made, 0});
    graph_.replace_all_uses({id, 2}, {made, 1});
  }

  // The mean of a plane is a pool of one window.
  void change_mean(NodeId id) {
    const std::optional<Value> last = find_last(graph_, graph_.input(id, 0));
    const std::vector<std::int64_t>& axes = graph_.attribute(id).integers("axes");
    const bool is_of_planes =
        axes == std::vector<std::int64_t>{2, 3} || axes == std::vector<std::int64_t>{-2, -1};
    if (!last || !is_of_planes) return;
    const Type& type = graph_.type(*last);
    if (!type.axis(1).is_constant() || !type.axis(2).is_constant()) return;
    const std::vector<std::int64_t> kernel = {type.axis(1).constant(), type.axis(2).constant()};
    if (kernel[0] == 0 || kernel[1] == 0) return;
    if (const std::optional<Value> added = add(id, {.name = {},
                                                    .op = "image_avg_pool2d",
                                                    .inputs = {*last},
                                                    .attributes = {{"kernel", kernel}}}))
      put_reshaped(id, *added);
  }

  // Images of one pixel are the same bytes in both layouts.
  void change_reshape(NodeId id) {
    const std::optional<Value> last = find_last(graph_, graph_.input(id, 0));
    if (!last) return;
    const Type& type = graph_.type(*last);
    if (type.axis(1) == Size(1) && type.axis(2) == Size(1)) put_reshaped(id, *last);
  }

  void put_reshaped(NodeId id, Value value) {
    const NodeId reshaped = graph_.insert_before(id, {.name = graph_.name(id) + "/flat",
                                                      .op = "reshape",
                                                      .inputs = {value},
                                                      .types = graph_.types(id)});
    graph_.replace_all_uses({id, 0}, {reshaped, 0});
  }

  // Where all operands are images of one shape and one of them has its channels last, all get it.
  void change_elementwise(NodeId id) {
    const Type& type = graph_.types(id)[0];
    if (graph_.types(id).size() != 1 || type.rank() != 4) return;
    bool any = false;
    for (const Value& value : graph_.inputs(id)) {
      if (value.is_none() || graph_.type(value).shape != type.shape) return;
      any = any || find_last(graph_, value).has_value();
    }
    if (!any) return;
    std::vector<Value> operands;
    for (const Value& value : graph_.inputs(id)) operands.push_back(as_last(id, value));
    if (graph_.is(id, "map_gradient") && graph_.attribute(id).text("function") == "relu")
      operands[1] = relu_of(operands[1]).value_or(operands[1]);
    if (const std::optional<Value> added = add(id, {.name = {},
                                                    .op = graph_.op(id).name,
                                                    .inputs = operands,
                                                    .attributes = graph_.attributes(id)}))
      put_planes(id, *added);
  }

  // What relu made of a value is positive where the value is: its gradient may read either, and
  // what nobody else reads need not leave the cache.
  std::optional<Value> relu_of(Value value) {
    for (const NodeId user : graph_.users(value.node))
      if (graph_.is(user, "relu") && graph_.input(user, 0) == value) return Value{user, 0};
    return std::nullopt;
  }

  Graph& graph_;
  const Backend& backend_;
  std::map<Value, Value> turned_;  // what nobody makes with its channels last, turned once for all
};

}  // namespace

Type with_channels_last(const Type& type) {
  return {type.dtype, {type.shape[0], type.shape[2], type.shape[3], type.shape[1]}};
}

Type with_planes(const Type& type) {
  return {type.dtype, {type.shape[0], type.shape[3], type.shape[1], type.shape[2]}};
}

void use_channels_last(Graph& graph, const Backend& backend) {
  LayoutChange change(graph, backend);
  for (const NodeId id : graph.topological_order()) change.change(id);
}

}  // namespace lathe::engine

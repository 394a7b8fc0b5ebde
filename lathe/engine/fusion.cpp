#include "lathe/engine/fusion.h"

#include "lathe/core/pass.h"
#include "lathe/core/pattern.h"
#include "lathe/engine/cpu/activations.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/engine/sparse_gradients.h"

namespace lathe::engine {

std::string to_text(const Origin& origin) {
  return fmt::format("{}", fmt::join(origin.nodes, " + "));
}

namespace {

std::vector<Type> same_as_linear(const OpCall& call) {
  Type type = call.input(0);
  type.shape.back() = call.input(1).shape[0];
  return {type};
}

const Register fused_linear{Op{
    .name = "fused_linear",
    .summary = "activation(x . weight^T + bias) + residual, in one kernel",
    .operands = {{"x"}, {"weight"}, {"bias", true}, {"residual", true}},
    .attributes = {{"activation", std::string("none"), "an op applied to the sums"}},
    .infer = same_as_linear,
    .flops =
        [](const OpCall& call) {
          return Size(2) * call.input(0).num_elements() * call.input(1).shape[0];
        },
}};

const Register fused_layer_norm{Op{
    .name = "fused_layer_norm",
    .summary = "layer_norm(x + residual), in one kernel",
    .operands = {{"x"}, {"residual"}, {"weight"}, {"bias"}},
    .attributes = {{"eps", 1e-5, "added to the variance"}},
    .infer = [](const OpCall& call) { return std::vector<Type>{call.input(0)}; },
}};

const Register embedding_sum{Op{
    .name = "embedding_sum",
    .summary = "the sum of rows looked up in up to three tables, in one kernel",
    .operands = {{"ids"}, {"table"}, {"more", false, true}},
    .infer =
        [](const OpCall& call) {
          Type type = call.input(1);
          type.shape = call.input(0).shape;
          type.shape.push_back(call.input(1).shape[1]);
          return std::vector<Type>{type};
        },
}};

bool is_read_once(const Graph& graph, Value value) {
  return graph.uses(value.node).size() == 1;
}

// Adds a lowered node in front of the matched root and notes what it came from; nothing where the
// kernel cannot do it (a weight that is no state, ids of 64 bits), because a lowered op has no
// reference kernel to fall back on.
std::optional<Value> add_lowered(Graph& graph, const Match& match, std::string op,
                                 std::vector<Value> inputs, Attributes attributes) {
  const NodeId root = match.nodes.front();
  Origin origin;
  for (auto node = match.nodes.rbegin(); node != match.nodes.rend(); ++node) {
    if (const Origin* earlier = graph.find_annotation<Origin>(*node))
      origin.nodes.insert(origin.nodes.end(), earlier->nodes.begin(), earlier->nodes.end());
    else
      origin.nodes.push_back(graph.name(*node));
  }
  const NodeId added = graph.insert_before(root, {.name = graph.name(root) + "/fused",
                                                  .op = std::move(op),
                                                  .inputs = std::move(inputs),
                                                  .attributes = std::move(attributes)});
  if (!Registry<CpuKernel>::instance().at(graph.op(added).name, "kernel").make(graph, added)) {
    graph.erase(added);
    return std::nullopt;
  }
  graph.annotation<Origin>(added) = std::move(origin);
  return Value{added, 0};
}

void fuse_activations(Graph& graph) {
  for (const Activation& activation : activations()) {
    if (!activation.is_in_epilogue) continue;
    const Pattern pattern(fmt::format("{}(y = linear(x, w, b))", activation.op));
    rewrite(graph, pattern, [&](Graph& g, const Match& match) -> std::optional<Value> {
      const NodeId root = match.nodes.front();
      if (!is_read_once(g, match["y"]) ||
          find_activation(activation.op, g.attribute(root)) != &activation)
        return std::nullopt;
      return add_lowered(g, match, "fused_linear", {match["x"], match["w"], match["b"], kNone},
                         {{"activation", std::string(activation.name)}});
    });
  }
}

void fuse_residuals(Graph& graph) {
  const auto fuse = [](Graph& g, const Match& match) -> std::optional<Value> {
    const Value y = match["y"];
    if (!is_read_once(g, y) || g.type(match["r"]) != g.type(y)) return std::nullopt;
    return add_lowered(g, match, "fused_linear", {match["x"], match["w"], match["b"], match["r"]},
                       g.attributes(y.node));
  };
  rewrite(graph, Pattern("add(y = linear(x, w, b), r)"), fuse);
  rewrite(graph, Pattern("add(y = fused_linear(x, w, b, none), r)"), fuse);
}

void fuse_layer_norms(Graph& graph) {
  rewrite(graph, Pattern("layer_norm(s = add(x, r), w, b)"),
          [](Graph& g, const Match& match) -> std::optional<Value> {
            if (!is_read_once(g, match["s"]) || g.type(match["x"]) != g.type(match["r"]))
              return std::nullopt;
            return add_lowered(g, match, "fused_layer_norm",
                               {match["x"], match["r"], match["w"], match["b"]},
                               g.attributes(match.nodes.front()));
          });
}

void fuse_embeddings(Graph& graph) {
  // Three tables before two, so that the longer sum is not cut short.
  rewrite(
      graph,
      Pattern("add(s = add(e = embedding(i, t), f = embedding(j, u)), "
              "g = embedding(k, v))"),
      [](Graph& g, const Match& match) -> std::optional<Value> {
        for (const char* inner : {"s", "e", "f", "g"})
          if (!is_read_once(g, match[inner])) return std::nullopt;
        if (g.type(match["e"]) != g.type(match["f"]) || g.type(match["s"]) != g.type(match["g"]))
          return std::nullopt;
        return add_lowered(g, match, "embedding_sum",
                           {match["i"], match["t"], match["j"], match["u"], match["k"], match["v"]},
                           {});
      });
  rewrite(graph, Pattern("add(e = embedding(i, t), f = embedding(j, u))"),
          [](Graph& g, const Match& match) -> std::optional<Value> {
            if (!is_read_once(g, match["e"]) || !is_read_once(g, match["f"])) return std::nullopt;
            if (g.type(match["e"]) != g.type(match["f"])) return std::nullopt;
            return add_lowered(g, match, "embedding_sum",
                               {match["i"], match["t"], match["j"], match["u"]}, {});
          });
}

}  // namespace

Graph lower(const Graph& graph) {
  Graph lowered = graph;
  if (graph.state_updates().empty()) {
    run_pass("remove-dropout", lowered);
    run_pass("remove-dead-nodes", lowered);  // a dead reader would keep rows alive
    run_pass("select-rows-early", lowered);
  }
  run_pass("eliminate-common-subexpressions", lowered);
  run_pass("remove-dead-nodes", lowered);
  // Dead nodes would count as readers, so each fusion starts from a clean graph.
  fuse_activations(lowered);
  fuse_residuals(lowered);
  run_pass("remove-dead-nodes", lowered);
  // Before layer norms, which would take the last addition of a sum of embeddings away.
  fuse_embeddings(lowered);
  run_pass("remove-dead-nodes", lowered);
  fuse_layer_norms(lowered);
  run_pass("remove-dead-nodes", lowered);
  make_embedding_gradients_sparse(lowered);
  verify(lowered);
  return lowered;
}

}  // namespace lathe::engine

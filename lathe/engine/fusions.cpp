#include "lathe/engine/fusions.h"

#include <set>

#include "lathe/core/pattern.h"
#include "lathe/engine/lowered_node.h"

namespace lathe::engine {
namespace {

bool is_read_once(const Graph& graph, Value value) {
  return graph.uses(value.node).size() == 1;
}

}  // namespace

std::optional<std::string> activation_name(const Graph& graph, NodeId id) {
  std::string result = graph.op(id).name;
  for (const auto& [name, value] : graph.attributes(id)) {
    if (name != "approximate") return std::nullopt;
    const std::string approximate = graph.attribute(id).text("approximate");
    if (approximate != "none") result += "_" + approximate;
  }
  return result;
}

namespace {

// A product, what it becomes with an activation and a residual behind it, and its operands as a
// pattern has them.
struct FusedProduct {
  std::string op, fused, operands;
  std::size_t num_operands;  // the residual comes behind them
};
const std::vector<FusedProduct>& fused_products() {
  static const std::vector<FusedProduct> products = {
      {"linear", "fused_linear", "x, w, b", 3},
      {"code_linear", "fused_code_linear", "n, s, z, c, l, t, o, b", 8},
      {"packed_linear", "packed_linear", "x, c, l, t, o, b", 6}};
  return products;
}

// The operands of a fused product: all of the product's, none where they are left out, and the
// residual.
std::vector<Value> fused_operands(const Graph& graph, NodeId product, const FusedProduct& kind,
                                  Value residual) {
  std::vector<Value> operands = graph.inputs(product);
  operands.resize(kind.num_operands, kNone);
  operands.push_back(residual);
  return operands;
}

}  // namespace

void fuse_activations(Graph& graph, const Backend& backend) {
  for (const FusedProduct& kind : fused_products()) {
    // Which functions can be fused is the backend's to say, so every op behind a product is tried.
    std::set<std::string> ops;
    for (const NodeId product : graph.nodes_of(kind.op))
      for (const NodeId user : graph.users(product))
        if (graph.inputs(user).size() == 1 && graph.types(user) == graph.types(product))
          ops.insert(graph.op(user).name);
    for (const std::string& op : ops) {
      const Pattern pattern(fmt::format("{}(y = {}({}))", op, kind.op, kind.operands));
      rewrite(graph, pattern, [&](Graph& g, const Match& match) -> std::optional<Value> {
        const std::optional<std::string> name = activation_name(g, match.nodes.front());
        if (!name || !is_read_once(g, match["y"])) return std::nullopt;
        const NodeId product = match["y"].node;
        if (kind.op == kind.fused && g.attribute(product).text("activation") != "none")
          return std::nullopt;
        Attributes attributes = g.attributes(product);
        attributes["activation"] = *name;
        return add_lowered(g, backend, match, kind.fused, fused_operands(g, product, kind, kNone),
                           std::move(attributes));
      });
    }
  }
}

void fuse_residuals(Graph& graph, const Backend& backend) {
  for (const FusedProduct& kind : fused_products()) {
    const auto fuse = [&](Graph& g, const Match& match) -> std::optional<Value> {
      const Value y = match["y"];
      if (!is_read_once(g, y) || g.type(match["r"]) != g.type(y)) return std::nullopt;
      std::vector<Value> operands = fused_operands(g, y.node, kind, match["r"]);
      return add_lowered(g, backend, match, kind.fused, std::move(operands), g.attributes(y.node));
    };
    rewrite(graph, Pattern(fmt::format("add(y = {}({}), r)", kind.op, kind.operands)), fuse);
    rewrite(graph, Pattern(fmt::format("add(y = {}({}, none), r)", kind.fused, kind.operands)),
            fuse);
  }
}

void fuse_layer_norms(Graph& graph, const Backend& backend) {
  rewrite(graph, Pattern("layer_norm(s = add(x, r), w, b)"),
          [&](Graph& g, const Match& match) -> std::optional<Value> {
            if (!is_read_once(g, match["s"]) || g.type(match["x"]) != g.type(match["r"]))
              return std::nullopt;
            return add_lowered(g, backend, match, "fused_layer_norm",
                               {match["x"], match["r"], match["w"], match["b"]},
                               g.attributes(match.nodes.front()));
          });
}

void fuse_embeddings(Graph& graph, const Backend& backend) {
  // Three tables before two, so that the longer sum is not cut short.
  rewrite(
      graph,
      Pattern("add(s = add(e = embedding(i, t), f = embedding(j, u)), "
              "g = embedding(k, v))"),
      [&](Graph& g, const Match& match) -> std::optional<Value> {
        for (const char* inner : {"s", "e", "f", "g"})
          if (!is_read_once(g, match[inner])) return std::nullopt;
        if (g.type(match["e"]) != g.type(match["f"]) || g.type(match["s"]) != g.type(match["g"]))
          return std::nullopt;
        return add_lowered(g, backend, match, "embedding_sum",
                           {match["i"], match["t"], match["j"], match["u"], match["k"], match["v"]},
                           {});
      });
  rewrite(graph, Pattern("add(e = embedding(i, t), f = embedding(j, u))"),
          [&](Graph& g, const Match& match) -> std::optional<Value> {
            if (!is_read_once(g, match["e"]) || !is_read_once(g, match["f"])) return std::nullopt;
            if (g.type(match["e"]) != g.type(match["f"])) return std::nullopt;
            return add_lowered(g, backend, match, "embedding_sum",
                               {match["i"], match["t"], match["j"], match["u"]}, {});
          });
}

}  // namespace lathe::engine

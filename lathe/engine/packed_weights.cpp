#include "lathe/engine/packed_weights.h"

#include "lathe/core/number_format.h"
#include "lathe/core/pattern.h"
#include "lathe/engine/lowered_node.h"

namespace lathe::engine {
namespace {

// Its operands codes, local, scale and zero, with none for what is absent.
std::vector<Value> packed_operands(const Graph& graph, NodeId decode) {
  std::vector<Value> operands = graph.inputs(decode);
  operands.resize(4, kNone);
  return operands;
}

Attributes packed_attributes(const Graph& graph, NodeId decode) {
  return {{"format", graph.attribute(decode).text("format")},
          {"columns", graph.attribute(decode).integer("columns")}};
}

// Whether the decode's rows are the weight's.
bool has_rows_of_weight(const Graph& graph, NodeId decode) {
  return graph.is(decode, "decode") && graph.attribute(decode).integer("axis") <= 0 &&
         graph.types(decode)[0].rank() == 2;
}

// x where `value` is quantize(x) to the decode's own format and that is MXINT8.
Value source_of_codes(const Graph& graph, Value value, NodeId decode) {
  if (!graph.is(value.node, "quantize") || graph.inputs(value.node).size() > 1 ||
      graph.attribute(value.node).integer("axis") >= 0)
    return kNone;
  const std::string format = graph.attribute(decode).text("format");
  const bool is_same = graph.attribute(value.node).text("format") == format;
  const FormatFacts facts = parse_format(format)->facts();
  return is_same && facts.family == "mxint" && facts.element_bits == 8 ? graph.input(value.node, 0)
                                                                       : kNone;
}

}  // namespace

std::set<NodeId> find_packed_weights(const Graph& graph, const Backend& backend) {
  std::set<NodeId> result;
  for (const NodeId id : graph.nodes_of("decode")) {
    bool is_read_packed = has_rows_of_weight(graph, id) && backend.can_run(graph, id);
    for (const Use& use : graph.uses(id))
      is_read_packed = is_read_packed && use.kind == Use::Kind::Operand && use.operand == 1 &&
                       (graph.is(use.user, "linear") || graph.is(use.user, "embedding"));
    if (is_read_packed) result.insert(id);
  }
  return result;
}

void fuse_packed_tables(Graph& graph, const Backend& backend) {
  rewrite(graph, Pattern("embedding(i, t)"),
          [&](Graph& g, const Match& match) -> std::optional<Value> {
            const NodeId decode = match["t"].node;
            if (!has_rows_of_weight(g, decode)) return std::nullopt;
            std::vector<Value> operands = packed_operands(g, decode);
            operands.insert(operands.begin(), match["i"]);
            return add_lowered(g, backend, match, "packed_embedding", std::move(operands),
                               packed_attributes(g, decode));
          });
}

void fuse_packed_linears(Graph& graph, const Backend& backend) {
  const auto fuse = [&](Graph& g, const Match& match) -> std::optional<Value> {
    const NodeId node = match.nodes.front(), decode = g.input(node, 1).node;
    if (!has_rows_of_weight(g, decode)) return std::nullopt;
    const auto operand = [&](std::size_t i) {
      return i < g.inputs(node).size() ? g.input(node, i) : kNone;
    };
    std::vector<Value> operands = packed_operands(g, decode);
    operands.insert(operands.begin(), operand(0));
    operands.push_back(operand(2));
    operands.push_back(operand(3));
    Attributes attributes = packed_attributes(g, decode);
    if (g.is(node, "fused_linear")) attributes["activation"] = g.attribute(node).text("activation");
    const Value source = source_of_codes(g, operand(0), decode);
    if (!source.is_none()) {
      Attributes encoding = attributes;
      encoding["encodes"] = true;
      std::vector<Value> unrounded = operands;
      unrounded[0] = source;
      if (const auto added = add_lowered(g, backend, match, "packed_linear", std::move(unrounded),
                                         std::move(encoding)))
        return added;
    }
    return add_lowered(g, backend, match, "packed_linear", std::move(operands),
                       std::move(attributes));
  };
  rewrite(graph, Pattern("linear(x, w, b)"), fuse);
  rewrite(graph, Pattern("fused_linear(x, w, b, r)"), fuse);
}

}  // namespace lathe::engine

#include "lathe/engine/integer_products.h"

#include <map>

#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
#include "lathe/core/pattern.h"
#include "lathe/engine/lower.h"
#include "lathe/ops/attention_weights.h"
#include "lathe/ops/code_attention.h"
#include "lathe/ops/code_convolution.h"
#include "lathe/ops/code_products.h"

namespace lathe::engine {
namespace {

// A rounding of rows whose scale is one, none or their own.
bool is_encodable(const Graph& graph, NodeId id) {
  if (!graph.is(id, "quantize") || graph.attribute(id).integer("axis") >= 0) return false;
  if (graph.inputs(id).size() > 3 && !graph.input(id, 3).is_none()) return false;
  const FormatFacts facts = parse_format(graph.attribute(id).text("format"))->facts();
  return facts.scale_source != ScaleSource::Given || facts.granularity == Granularity::Tensor;
}

// A weight whose rows are those of its codes.
bool is_packed_matrix(const Graph& graph, NodeId id) {
  return graph.is(id, "decode") && graph.attribute(id).integer("axis") <= 0 &&
         graph.types(id)[0].rank() == 2;
}

// The numbers that quantizers round to: one `encode` for all who read a quantizer.
class Encoder {
 public:
  NodeId encode(Graph& graph, NodeId quantizer) {
    const auto found = encoded_.find(quantizer);
    if (found != encoded_.end()) return found->second;
    const NodeId id = graph.insert_before(
        quantizer, {.name = graph.unique_name(graph.name(quantizer) + "/encoded"),
                    .op = "encode",
                    .inputs = graph.inputs(quantizer),
                    .attributes = {{"format", graph.attribute(quantizer).text("format")}}});
    return encoded_.emplace(quantizer, id).first->second;
  }

 private:
  std::map<NodeId, NodeId> encoded_;
};

// conv2d(quantize(x), decode(codes), b) -> code_conv2d(x, codes, b).
int use_integer_convolutions(Graph& graph) {
  return rewrite(
      graph, Pattern("conv2d(x, w, b)"), [&](Graph& g, const Match& match) -> std::optional<Value> {
        const NodeId convolution = match.nodes.front();
        const NodeId quantizer = match["x"].node, decode = match["w"].node;
        if (!is_encodable(g, quantizer) || !g.is(decode, "decode") ||
            g.attribute(decode).integer("axis") > 0 || g.types(decode)[0].rank() != 4 ||
            g.attribute(convolution).integer("groups") != 1)
          return std::nullopt;
        const std::string x_format = g.attribute(quantizer).text("format");
        const std::string format = g.attribute(decode).text("format");
        const std::int64_t columns = g.attribute(decode).integer("columns");
        const Type& weight = g.types(decode)[0];
        if (Size(columns) != weight.axis(1) * weight.axis(2) * weight.axis(3) ||
            !ops::can_convolve_codes(*parse_format(x_format), *parse_format(format), columns))
          return std::nullopt;
        Attributes attributes = g.attributes(convolution);
        attributes["x_format"] = x_format;
        attributes["format"] = format;
        attributes["columns"] = columns;
        attributes["kernel"] =
            std::vector<std::int64_t>{weight.axis(2).constant(), weight.axis(3).constant()};
        std::vector<Value> operands = {g.input(quantizer, 0), g.input(quantizer, 1)};
        for (std::size_t i = 0; i < 4; ++i)
          operands.push_back(i < g.inputs(decode).size() ? g.input(decode, i) : kNone);
        operands.push_back(match["b"]);
        return Value{
            g.insert_before(convolution, {.name = g.unique_name(g.name(convolution) + "/products"),
                                          .op = "code_conv2d",
                                          .inputs = std::move(operands),
                                          .attributes = std::move(attributes)}),
            0};
      });
}

// linear(quantize(x), decode(codes), b) -> code_linear(encode(x), codes, b).
int use_integer_linears(Graph& graph, Encoder& encoder) {
  return rewrite(
      graph, Pattern("linear(x, w, b)"), [&](Graph& g, const Match& match) -> std::optional<Value> {
        const NodeId linear = match.nodes.front();
        const NodeId quantizer = match["x"].node, decode = match["w"].node;
        if (!is_encodable(g, quantizer) || !is_packed_matrix(g, decode)) return std::nullopt;
        const std::string x_format = g.attribute(quantizer).text("format");
        const std::string format = g.attribute(decode).text("format");
        const std::int64_t columns = g.attribute(decode).integer("columns");
        if (!ops::can_multiply_codes(*parse_format(x_format), *parse_format(format), columns))
          return std::nullopt;
        const NodeId codes = encoder.encode(g, quantizer);
        std::vector<Value> operands = {{codes, 0}, {codes, 1}, {codes, 2}};
        for (std::size_t i = 0; i < 4; ++i)
          operands.push_back(i < g.inputs(decode).size() ? g.input(decode, i) : kNone);
        operands.push_back(match["b"]);
        return Value{
            g.insert_before(
                linear,
                {.name = g.unique_name(g.name(linear) + "/products"),
                 .op = "code_linear",
                 .inputs = std::move(operands),
                 .attributes = {{"x_format", x_format}, {"format", format}, {"columns", columns}}}),
            0};
      });
}

// attention(quantize(q), quantize(k), quantize(v)) -> code_attention(encode(q), ...).
int use_integer_attention(Graph& graph, Encoder& encoder) {
  return rewrite(
      graph, Pattern("attention(q, k, v, mask, offsets, random, examples)"),
      [&](Graph& g, const Match& match) -> std::optional<Value> {
        const NodeId attention = match.nodes.front();
        const NodeId quantizers[] = {match["q"].node, match["k"].node, match["v"].node};
        for (const NodeId id : quantizers)
          if (!is_encodable(g, id) ||
              !ops::can_attend_codes(*parse_format(g.attribute(id).text("format"))))
            return std::nullopt;
        const AttributeReader attributes = g.attribute(attention);
        if (!match["random"].is_none() || !attributes.text("weight_format").empty() ||
            g.types(attention)[0].axis(-1).constant() >
                ops::kWidestCodeHead * attributes.integer("heads"))
          return std::nullopt;
        std::vector<Value> operands(ops::kNumCodeAttentionOperands, kNone);
        for (std::size_t i = 0; i < std::size(quantizers); ++i) {
          const NodeId codes = encoder.encode(g, quantizers[i]);
          operands[ops::kQuery + i] = {codes, 0};
          operands[ops::kQueryScales + i] = {codes, 1};
        }
        operands[ops::kMask] = match["mask"];
        operands[ops::kOffsets] = match["offsets"];
        return Value{
            g.insert_before(attention, {.name = g.unique_name(g.name(attention) + "/products"),
                                        .op = "code_attention",
                                        .inputs = std::move(operands),
                                        .attributes = g.attributes(attention)}),
            0};
      });
}

}  // namespace

int use_integer_products(Graph& graph) {
  Encoder encoder;
  return use_integer_convolutions(graph) + use_integer_linears(graph, encoder) +
         use_integer_attention(graph, encoder);
}

std::set<NodeId> find_kept_weights(const Graph& graph) {
  std::set<NodeId> result;
  for (const NodeId id : graph.nodes_of("decode")) {
    bool is_kept = is_packed_matrix(graph, id);
    if (!is_kept) continue;
    const std::shared_ptr<const NumberFormat> format =
        parse_format(graph.attribute(id).text("format"));
    for (const Use& use : graph.uses(id)) {
      if (use.kind != Use::Kind::Operand || use.operand != 1) {
        is_kept = false;
        break;
      }
      const bool is_linear = graph.is(use.user, "linear") && ops::fits_signed_bytes(*format);
      const bool is_lookup = graph.is(use.user, "embedding") && format->facts().block_rows == 1 &&
                             graph.type(graph.input(use.user, 0)).dtype == DType::I32;
      is_kept = is_kept && (is_linear || is_lookup);
    }
    for (const Value& value : graph.inputs(id))
      is_kept = is_kept && (value.is_none() || graph.is(value.node, "state"));
    if (is_kept) result.insert(id);
  }
  return result;
}

Graph with_integer_products(const Graph& graph) {
  Graph result = graph;
  // Rows are chosen early through ops of one result, so before they are encoded.
  prepare_inference(result);
  use_integer_products(result);
  run_pass("remove-dead-nodes", result);
  return result;
}

}  // namespace lathe::engine

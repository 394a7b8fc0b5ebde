#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/compositions.h"
#include "lathe/hardware/mapping/graph_mapper.h"
#include "lathe/hardware/passes/insert_forks.h"
#include "lathe/ops/integer/integer_result.h"

// Scores, their exponentials, values summed with them, one division for each element: the heads one
// after the other through one unit of each. The lanes are those of a head's elements and of scores.
namespace lathe::hardware::integer_attention_mapping {
namespace {

constexpr int kExponentBits = 15;             // of an exponential, docs/integer.md
constexpr std::int64_t kGoneSteps = 64 * 16;  // from which an exponential is 0

std::int64_t heads_of(const GraphMapper& mapper, NodeId node) {
  return mapper.graph().attribute(node).integer("heads");
}

std::pair<std::int64_t, std::int64_t> sizes(const GraphMapper& mapper, NodeId node) {
  const MappedValue& q = mapper.operand(node, 0);
  return {q.dims.back() / heads_of(mapper, node), q.dims.front()};
}

// A width of which the lowest number is so far below every score that its exponential is 0.
int masked_width(const Element& score, std::int64_t multiplier, std::int64_t shift) {
  for (int width = score.width + 1; width <= 64; ++width) {
    const Wide distance = Wide{score.lowest()} - Element{.width = width}.lowest();
    if ((distance * multiplier) >> shift >= kGoneSteps) return width;
  }
  fail("scores too wide to be masked");
}

void map(GraphMapper& mapper, NodeId node) {
  const Graph& graph = mapper.graph();
  const AttributeReader attributes = graph.attribute(node);
  const std::int64_t heads = heads_of(mapper, node);
  const std::int64_t kv_heads = attributes.integer("kv_heads");
  if (attributes.flag("causal")) fail("causal");
  if (kv_heads != 0 && kv_heads != heads) fail("{} heads share {}", heads, kv_heads);
  if (!graph.input(node, 4).is_none()) fail("packed sequences");
  const MappedValue x = mapper.operand(node, 0);
  if (x.dims.size() != 2) fail("queries of {} axes, and expected two", x.dims.size());
  const auto [head, length] = sizes(mapper, node);
  const Lanes lanes = mapper.lanes(node, head, length);
  if (head % lanes.in != 0) fail("{} lanes do not divide a head of {}", lanes.in, head);

  Netlist& netlist = mapper.netlist;
  const std::string name = mapper.new_name(node);
  const StreamId q = mapper.read(node, 0, lanes.in), k = mapper.read(node, 1, lanes.in),
                 v = mapper.read(node, 2, lanes.in);
  const Element &q_type = netlist.type(q).element, &k_type = netlist.type(k).element,
                &v_type = netlist.type(v).element;
  const auto largest = [](const Element& element) {
    return std::max(-Wide{element.lowest()}, Wide{element.highest()});
  };
  const Wide most_score = largest(q_type) * largest(k_type) * head;
  StreamId scores =
      netlist.add_single({.name = name + ".scores",
                          .block = "matrix_product",
                          .parameters = {{"heads", heads},
                                         {"lanes", lanes.out},
                                         {"width", signed_width(-most_score, most_score)}},
                          .inputs = {q, k}});
  const std::int64_t multiplier = attributes.integer("exponent_multiplier"),
                     shift = attributes.integer("exponent_shift");
  if (const Value mask = graph.input(node, 3); !mask.is_none())
    scores = netlist.add_single(
        {.name = name + ".masked",
         .block = "length_mask",
         .parameters = {{"width", masked_width(netlist.type(scores).element, multiplier, shift)}},
         .inputs = {scores, mapper.length_of(mask)}});
  const ExponentialRows rows = add_exponentials(netlist, name, scores, multiplier, shift);
  const Wide most_sum = ((Wide{1} << kExponentBits) - 1) * largest(v_type) * length;
  const StreamId context =
      netlist.add_single({.name = name + ".context",
                          .block = "matrix_product",
                          .parameters = {{"heads", heads},
                                         {"turned", 1},
                                         {"width", signed_width(-most_sum, most_sum)}},
                          .inputs = {convert_lanes(netlist, rows.exponentials, 1), v}});
  Instance divide{.name = name,
                  .block = "divide",
                  .parameters = {{"multiplier", attributes.integer("multiplier")},
                                 {"shift", attributes.integer("shift")}},
                  .inputs = {context, rows.sums}};
  mapper.add_requantization(divide, node);
  MappedValue y = x;
  y.stream = netlist.add_single(std::move(divide));
  mapper.claim(node);
  netlist.set_meaning(y.stream,
                      meaning_of(ops::integer_range(attributes), attributes.reals(ops::kScale)));
  mapper.set(node, std::move(y));
}

const Register registration{BlockMapping{.name = "integer_attention", .map = map, .sizes = sizes}};

}  // namespace
}  // namespace lathe::hardware::integer_attention_mapping

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/compositions.h"
#include "lathe/hardware/mapping/graph_mapper.h"
#include "lathe/numerics/integer/integer_square_root.h"
#include "lathe/ops/integer/integer_result.h"

namespace lathe::hardware::integer_layer_norm_mapping {
namespace {

// Bits of a normalized element: the root of the size bounds it, and the floor of a root of at least
// 1 makes it at most twice as large.
int normalized_width(const numerics::Normalization& normalization) {
  const auto root = static_cast<std::int64_t>(
      numerics::integer_square_root(static_cast<std::uint64_t>(normalization.size)));
  const Wide most = Wide{2 * (root + 1)} << normalization.fraction;
  return signed_width(-most, most);
}

void map(GraphMapper& mapper, NodeId node) {
  const Graph& graph = mapper.graph();
  const AttributeReader attributes = graph.attribute(node);
  MappedValue value = mapper.operand(node, 0);
  if (mapper.type(value).size != value.dims.back()) fail("rows in several vectors");
  const numerics::IntegerRange range = ops::integer_range(attributes);
  if (range.is_symmetric || ops::integer_rounding(attributes) != IntegerRounding::NearestEven)
    fail("only ranges with their lowest number, rounded to the nearest even");
  const numerics::Normalization normalization{
      .size = value.dims.back(),
      .epsilon = attributes.integer("epsilon"),
      .root_fraction = static_cast<int>(attributes.integer("root_fraction")),
      .fraction = static_cast<int>(attributes.integer("fraction"))};
  const std::vector<double> scale = attributes.reals(ops::kScale);
  value.stream = add_layer_norm(mapper.netlist, mapper.new_name(node), value.stream,
                                {.normalization = normalization,
                                 .normalized_width = normalized_width(normalization),
                                 .factor = mapper.integers(graph.input(node, 1)),
                                 .summand = mapper.integers(graph.input(node, 2)),
                                 .shift = ops::shift_attribute(attributes, "shift"),
                                 .element = {.width = range.width, .is_signed = range.is_signed}});
  mapper.claim(node);
  mapper.netlist.set_meaning(value.stream, meaning_of(range, scale));
  mapper.set(node, std::move(value));
}

const Register registration{BlockMapping{.name = "integer_layer_norm", .map = map}};

}  // namespace
}  // namespace lathe::hardware::integer_layer_norm_mapping

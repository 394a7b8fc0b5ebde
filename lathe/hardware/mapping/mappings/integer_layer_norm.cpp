#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/compositions.h"
#include "lathe/hardware/mapping/graph_mapper.h"
#include "lathe/ops/integer/integer_result.h"

// Rows are divided, and a division takes a cycle for each bit: lanes of its own let it keep up.
namespace lathe::hardware::integer_layer_norm_mapping {
namespace {

std::pair<std::int64_t, std::int64_t> sizes(const GraphMapper& mapper, NodeId node) {
  const std::int64_t size = mapper.operand(node, 0).dims.back();
  return {size, size};
}

void map(GraphMapper& mapper, NodeId node) {
  const Graph& graph = mapper.graph();
  const AttributeReader attributes = graph.attribute(node);
  MappedValue value = mapper.operand(node, 0);
  if (mapper.type(value).size != value.dims.back()) fail("rows in several vectors");
  const Lanes lanes = mapper.lanes(node, value.dims.back(), value.dims.back());
  if (lanes.in != lanes.out)
    fail("{}x{} lanes, and expected as many in as out", lanes.in, lanes.out);
  const numerics::IntegerRange range = ops::integer_range(attributes);
  if (range.is_symmetric || ops::integer_rounding(attributes) != IntegerRounding::NearestEven)
    fail("only ranges with their lowest number, rounded to the nearest even");
  const numerics::Normalization normalization{
      .size = value.dims.back(),
      .epsilon = attributes.integer("epsilon"),
      .root_fraction = static_cast<int>(attributes.integer("root_fraction")),
      .fraction = static_cast<int>(attributes.integer("fraction"))};
  const std::vector<double> scale = attributes.reals(ops::kScale);
  value.stream =
      add_layer_norm(mapper.netlist, mapper.new_name(node), mapper.read(node, 0, lanes.in),
                     {.normalization = normalization,
                      .factor = mapper.integers(graph.input(node, 1)),
                      .summand = mapper.integers(graph.input(node, 2)),
                      .shift = ops::shift_attribute(attributes, "shift"),
                      .element = {.width = range.width, .is_signed = range.is_signed}});
  mapper.claim(node);
  mapper.netlist.set_meaning(value.stream, meaning_of(range, scale));
  mapper.set(node, std::move(value));
}

const Register registration{BlockMapping{.name = "integer_layer_norm", .map = map, .sizes = sizes}};

}  // namespace
}  // namespace lathe::hardware::integer_layer_norm_mapping

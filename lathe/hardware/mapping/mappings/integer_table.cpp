#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"
#include "lathe/ops/integer/integer_result.h"

// The graph's table has entries for what can come; the block's has one for each pattern of the
// stream, of which those that never come repeat the nearest.
namespace lathe::hardware::integer_table_mapping {
namespace {

void map(GraphMapper& mapper, NodeId node) {
  const AttributeReader attributes = mapper.graph().attribute(node);
  MappedValue value = mapper.operand(node, 0);
  const Element& element = mapper.type(value).element;
  if (element.width > 16) fail("a table of 2^{} entries is too large", element.width);
  const Values entries = mapper.integers(mapper.graph().input(node, 1));
  const std::int64_t low = attributes.integer("low"), last = std::ssize(entries) - 1;
  Values table;
  for (std::int64_t x = element.lowest(); x <= element.highest(); ++x)
    table.push_back(entries[static_cast<std::size_t>(std::clamp<std::int64_t>(x - low, 0, last))]);
  const numerics::IntegerRange range = ops::integer_range(attributes);
  value.stream = mapper.add(node,
                            {.name = "",
                             .block = "table_function",
                             .parameters = {{"width", range.width}, {"signed", range.is_signed}},
                             .tables = {{"table", std::move(table)}},
                             .inputs = {value.stream}},
                            node);
  mapper.set(node, std::move(value));
}

const Register registration{BlockMapping{.name = "integer_table", .map = map}};

}  // namespace
}  // namespace lathe::hardware::integer_table_mapping

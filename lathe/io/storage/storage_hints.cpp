#include "lathe/io/storage/storage_hints.h"

#include "lathe/core/role.h"
#include "lathe/models/tensor_names.h"
#include "lathe/numerics/bit_stream.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::io {
namespace {

void add_codes(const Graph& graph, NodeId decode, StorageHints& hints) {
  const NodeId codes = graph.input(decode, operand_index(graph, decode, OperandRole::Codes)).node;
  const std::shared_ptr<const NumberFormat> format = ops::format_of(graph.attribute(decode));
  const std::int64_t columns = graph.attribute(decode).integer("columns");
  const int width = format->facts().element_bits;
  if (width < 1 || width > 32 ||
      format->code_bytes(columns) != numerics::bytes_for_bits(columns * width))
    return;
  hints[graph.name(codes)].width = width;
  hints[graph.name(codes)].columns = columns;
}

// What a product with a mask masks: a state, or the codes that a decode reads.
void add_masked(const Graph& graph, const models::ModelFamily& family, NodeId mask, NodeId product,
                StorageHints& hints) {
  if (!graph.is(product, "mul")) return;
  for (const Value& other : graph.inputs(product)) {
    if (other.node == mask || graph.type(other) != graph.types(mask)[0]) continue;
    NodeId masked = other.node;
    bool is_transposed = models::is_transposed(family, graph.name(mask));
    if (graph.is(masked, "decode")) {
      // Rows of codes are the elements of an axis; only the first and last keep the order.
      const std::int64_t axis = graph.attribute(masked).integer("axis");
      if (axis > 0 && (axis != 1 || graph.types(mask)[0].rank() != 2)) continue;
      is_transposed = is_transposed != (axis == 1);
      masked = graph.input(masked, operand_index(graph, masked, OperandRole::Codes)).node;
    }
    if (!graph.is(masked, "state")) continue;
    StorageHint& hint = hints[graph.name(masked)];
    hint.mask = graph.name(mask);
    hint.is_transposed = is_transposed != models::is_transposed(family, graph.name(masked));
  }
}

}  // namespace

StorageHints storage_hints(const Graph& graph, const models::ModelFamily& family) {
  StorageHints hints;
  for (const NodeId id : graph.nodes_of("decode")) add_codes(graph, id, hints);
  for (const NodeId mask : states_of(graph, StateRole::Mask)) {
    hints.try_emplace(graph.name(mask));
    for (const NodeId user : graph.users(mask)) add_masked(graph, family, mask, user, hints);
  }
  return hints;
}

}  // namespace lathe::io

#include "lathe/core/packed_sequences.h"
#include "lathe/core/pass.h"

namespace lathe {
namespace {

// [B,L,...] becomes [T,...] and [B,...] becomes [S,...]; a shape that has B or L anywhere else
// mixes positions in a way only the op itself could untangle.
Type packed_type(const Type& type, const PackedSequences& packed) {
  Type result = type;
  const Size rows = Size::symbol(packed.rows), length = Size::symbol(packed.length);
  if (result.rank() >= 2 && result.shape[0] == rows && result.shape[1] == length) {
    result.shape.erase(result.shape.begin());
    result.shape[0] = Size::symbol(packed.tokens);
  } else if (result.rank() >= 1 && result.shape[0] == rows) {
    result.shape[0] = Size::symbol(packed.sequences);
  }
  for (const Size& size : result.shape)
    if (size.depends_on(packed.rows) || size.depends_on(packed.length))
      fail("{} mixes rows and positions and cannot be packed", to_text(type));
  return result;
}

bool is_padded(const Type& type, const PackedSequences& packed) {
  for (const Size& size : type.shape)
    if (size.depends_on(packed.rows) || size.depends_on(packed.length)) return true;
  return false;
}

void pack_node(Graph& graph, NodeId id, const PackedSequences& packed) {
  const Op& op = graph.op(id);
  std::vector<Type> types;
  bool touched = false;
  for (const Type& type : graph.types(id)) touched = touched || is_padded(type, packed);
  if (op.is_source) {
    if (!touched) return;
    for (const Type& type : graph.types(id)) types.push_back(packed_type(type, packed));
    graph.set_types(id, std::move(types));
    return;
  }
  if (op.pack) {
    const Value replacement = op.pack(graph, id, packed);
    if (replacement.node == id) return;
    for (std::size_t i = 0; i < graph.types(id).size(); ++i) {
      const auto result = static_cast<std::int32_t>(i);
      graph.replace_all_uses({id, result}, {replacement.node, replacement.index + result});
    }
    const std::string name = graph.name(id);
    graph.erase(id);
    graph.rename(replacement.node, name);  // users know the node by this name
    return;
  }
  // A node whose operands never saw a padded axis is untouched, whatever its op.
  if (!touched && infer_types(graph, id) == graph.types(id)) return;
  if (!op.is_per_token) fail("op {} mixes positions and cannot be packed", op.name);
  // Ops that take their type from what is written (reshape, cast) need it rewritten first.
  for (const Type& type : graph.types(id)) types.push_back(packed_type(type, packed));
  graph.set_types(id, types);
  if (infer_types(graph, id) != types)
    fail("op {} gives another shape when sequences are packed", op.name);
}

PassResult pack_sequences(Graph& graph, PassContext&) {
  PackedSequences packed;
  if (!graph.symbols().contains(packed.length) || graph.num_nodes() == 0) return 0;
  const Type offsets{DType::I32, {Size::symbol(packed.sequences) + Size(1)}};
  const NodeId first = graph.topological_order().front();
  packed.offsets.node = graph.insert_after(
      first, {.name = "offsets", .op = "input", .inputs = {}, .types = {offsets}});
  for (const NodeId id : graph.topological_order())
    with_place(fmt::format("node \"{}\"", graph.name(id)), [&] { pack_node(graph, id, packed); });
  // The mask said which positions are real; offsets say it now.
  run_pass("remove-dead-nodes", graph);
  if (const auto mask = graph.find("attention_mask"); mask && graph.uses(*mask).empty())
    graph.erase(*mask);
  graph.forget_symbol(packed.rows);
  graph.forget_symbol(packed.length);
  return 1;
}

const Register pack_sequences_pass{Pass{
    .name = "pack-sequences",
    .summary = "turn a padded batch [B,L] into a run of tokens [T] with the offsets of sequences",
    .run = pack_sequences,
}};

}  // namespace
}  // namespace lathe

#pragma once

#include <cstdint>

#include "lathe/core/graph.h"
#include "lathe/core/packed_sequences.h"

/// What the ops' pack rules share. A rule sees operands that are packed already: [B,L,..] has
/// become [T,..], and what was one row a sequence, [B,..], is [S,..].
namespace lathe::ops {

/// Whether the axes of the type begin with the run of tokens.
bool is_packed(const Type& type, const PackedSequences& sequences);
/// What becomes of a written type: leading [B,L] or [B*L] is [T], any other B is S. Fails naming
/// the node where positions or padded lengths remain.
Type packed_type(const Graph& graph, NodeId node, const Type& type,
                 const PackedSequences& sequences);
/// The axis of the packed operand that was `axis` before, counted from the front. Fails naming the
/// node when that mixes tokens.
std::int64_t packed_axis(const Graph& graph, NodeId node, const Type& operand, std::int64_t axis,
                         const PackedSequences& sequences);
/// Adds a node named `<node>/packed` in front of `node`.
Value add_packed(Graph& graph, NodeId node, NodeSpec spec);
/// Adds the same op on the same, already packed, operands.
Value repeat_packed(Graph& graph, NodeId node, Attributes attributes, std::vector<Type> types = {});
/// Fails with "node "n": OP cannot be packed: REASON".
[[noreturn]] void refuse_to_pack(const Graph& graph, NodeId node, std::string_view reason);

}  // namespace lathe::ops

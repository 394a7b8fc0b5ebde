#pragma once

#include <cstdint>

#include "lathe/core/graph.h"
#include "lathe/core/packed_sequences.h"

/// What the ops' pack rules share. A rule sees operands that are packed already: [B,L,..] has
/// become [T,..], and what was one row a sequence, [B,..], is [S,..].
namespace lathe::ops {

/// Whether the axes of the type begin with the run of tokens.
bool is_packed(const Type& type, const PackedSequences& sequences);
/// What becomes of a written type: leading [B,L] or [B*L] is [T], any other B is S. Fails where
/// padded lengths remain.
Type packed_type(const Graph& graph, NodeId node, const Type& type,
                 const PackedSequences& sequences);
/// The axis of the packed operand that was `axis` before. Fails when that mixes tokens.
std::int64_t packed_axis(const Graph& graph, NodeId node, const Type& operand, std::int64_t axis,
                         const PackedSequences& sequences);
/// Adds a node named `<node>/packed` in front of `node`, whose results keep the number formats
/// written on those of `node`.
Value add_packed(Graph& graph, NodeId node, NodeSpec spec);
/// The same op on the same, already packed, operands; the node itself if packing changed nothing
/// about it.
Value repeat_packed(Graph& graph, NodeId node, Attributes attributes, std::vector<Type> types = {});
/// The same for an op whose attribute `axis` counts axes of its first operand.
Value repeat_packed_along_axis(Graph& graph, NodeId node, const PackedSequences& sequences);
/// Fails with "OP cannot be packed: REASON"; the pass puts the node's name in front.
[[noreturn]] void refuse_to_pack(const Graph& graph, NodeId node, std::string_view reason);

}  // namespace lathe::ops

#pragma once

#include <optional>

#include "lathe/compress/lora.h"

/// Paths of low rank beside a masked weight. The mask covers W + B . A, or fusing would fill its
/// holes, so B . A is computed as a matrix:
///
///     y + x . (alpha/rank * B . A * mask)^T
///
/// That is as much work for a row as the linear itself; in inference the matrix is computed once.
namespace lathe::compress {

/// Follows such a path from its sum back to the linear; nothing where a node is not what it should
/// be.
std::optional<LoraPath> trace_masked_lora(const Graph& graph, NodeId sum, NodeId linear,
                                          NodeId reader);

/// Makes a plain path one that a mask covers: the state that the linear's weight is multiplied
/// with. Fails where the path is rounded: the matrix B . A would not be.
void cover_lora_path(Graph& graph, const LoraPath& path, NodeId mask);

}  // namespace lathe::compress

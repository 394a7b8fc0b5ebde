#pragma once

#include "lathe/core/graph.h"
#include "lathe/io/storage/stored_weights.h"
#include "lathe/models/family.h"

namespace lathe::io {

/// What a graph tells about its states as the family's files hold them: which are masks, what they
/// mask, and how many bits the codes in rows of bytes have.
StorageHints storage_hints(const Graph& graph, const models::ModelFamily& family);

}  // namespace lathe::io

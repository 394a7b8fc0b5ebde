#pragma once

#include "lathe/generate/add_cache.h"

namespace lathe::generate {

/// Lets a causal language model that reads whole sequences attend to keys and values as a cache of
/// that format would give them back: what it predicts is what it would predict with the cache.
/// Fails where nothing attends to earlier tokens.
void round_keys(Graph& graph, CacheFormat format);

}  // namespace lathe::generate

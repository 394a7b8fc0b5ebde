#pragma once

#include "lathe/experiment/bench/time_graph.h"

namespace lathe::experiment::bench {

/// Attention as one kernel, and as a product, a softmax and a product.
struct AttentionOptions {
  std::int64_t batch = 32, heads = 8, length = 128, head_size = 64;
  bool causal = false;
  Repeats repeats = {};
};
Result time_attention(const AttentionOptions& options, const engine::ExecutionOptions& execution,
                      const Callbacks& callbacks = {});

}  // namespace lathe::experiment::bench

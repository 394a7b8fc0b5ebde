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

/// The form of one kernel. Operands lie in memory as the products of the precision have them, where
/// the device has a kernel that reads them so; that of a CPU rounds floats as it packs them.
Graph fused_attention(const AttentionOptions& options, const engine::ExecutionOptions& execution);

}  // namespace lathe::experiment::bench

#pragma once

#include "lathe/experiment/bench/time_graph.h"

namespace lathe::experiment::bench {

/// One op, one's own perhaps, called as in `gelu(f32[1024,1024])`.
struct OpCallOptions {
  std::string call;
  std::uint64_t seed = 0;
  Repeats repeats = {};
};
/// Times the call and compares what it gives with the op's definition.
Result time_op_call(const OpCallOptions& options, const engine::ExecutionOptions& execution,
                    const Callbacks& callbacks = {});

}  // namespace lathe::experiment::bench

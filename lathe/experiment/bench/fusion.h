#pragma once

#include "lathe/experiment/bench/time_graph.h"

namespace lathe::experiment::bench {

/// A model and three chains as the CPU compiles them, against a kernel for every node: what
/// compiling takes, what it saves, and from which run on it pays.
struct FusionOptions {
  std::string model = "bert-tiny", task = {};
  std::int64_t rows = 8, length = 0;  ///< as CompilationOptions has them
  bool is_training = false;
  std::vector<std::int64_t> iterations = {5, 50, 200};  ///< to add up
  std::uint64_t seed = 0;
  Repeats repeats = {};
};
Result time_fusion(const FusionOptions& options, const engine::ExecutionOptions& execution,
                   const Callbacks& callbacks = {});

}  // namespace lathe::experiment::bench

#pragma once

#include "lathe/experiment/bench/time_graph.h"

namespace lathe::experiment::bench {

/// A step of training a classifier, captured as one graph and kernel by kernel.
struct StepOptions {
  std::string model = "bert-tiny";
  std::int64_t rows = 8, length = 128;
  std::uint64_t seed = 0;
  Repeats repeats = {};
};
Result time_step(const StepOptions& options, const engine::ExecutionOptions& execution,
                 const Callbacks& callbacks = {});

}  // namespace lathe::experiment::bench

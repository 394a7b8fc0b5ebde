#pragma once

#include "lathe/cli/settings.h"
#include "lathe/core/error.h"
#include "lathe/core/thread_pool.h"
#include "lathe/engine/executor.h"

namespace lathe::cli {

/// The flag that `Execution::answering` is told.
inline constexpr const char* kSimulateHelp =
    "multiply floats where a packed model's numbers would be multiplied as whole ones";

/// Where a command's models run, as its settings say: the threads, and what the engine is told.
class Execution {
 public:
  explicit Execution(const Settings& settings)
      : pool_(settings.threads), options_(settings.execution(pool_)) {}
  const engine::ExecutionOptions& options() const { return options_; }
  /// The same for a model that answers and does not learn: what is rounded to whole numbers is
  /// multiplied as such, unless floats are to stand for them.
  engine::ExecutionOptions answering(bool simulates) const {
    engine::ExecutionOptions options = options_;
    if (simulates && options.device == "cuda")
      fail("simulate: {} decides by itself how it multiplies", options.device);
    options.uses_integers = !simulates;
    return options;
  }
  ThreadPool& pool() { return pool_; }

 private:
  ThreadPool pool_;
  engine::ExecutionOptions options_;
};

}  // namespace lathe::cli

#pragma once

#include "lathe/cli/settings.h"
#include "lathe/core/thread_pool.h"
#include "lathe/engine/executor.h"

namespace lathe::cli {

/// Where a command's models run, as its settings say: the threads, and what the engine is told.
class Execution {
 public:
  explicit Execution(const Settings& settings)
      : pool_(settings.threads), options_(settings.execution(pool_)) {}
  const engine::ExecutionOptions& options() const { return options_; }
  ThreadPool& pool() { return pool_; }

 private:
  ThreadPool pool_;
  engine::ExecutionOptions options_;
};

}  // namespace lathe::cli

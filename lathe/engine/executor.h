#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/isa.h"
#include "lathe/core/pass.h"
#include "lathe/core/registry.h"
#include "lathe/core/thread_pool.h"

namespace lathe::engine {

/// How to execute a graph.
struct ExecutionOptions {
  std::string device = "cpu";  ///< an `ExecutorKind`
  ThreadPool* pool = nullptr;  ///< nullptr: the calling thread alone
  Isa isa = best_isa();
};

/// Runs one graph again and again, from the values of its states on.
class Executor {
 public:
  virtual ~Executor() = default;
  /// The graph's outputs by name for these inputs. Fails when an input is missing or does not fit.
  /// When the graph binds states, they take their new values once everything else is computed.
  virtual Feed run(const Feed& inputs) = 0;
  /// The states' values after the last run.
  virtual State state() const = 0;
};

/// A way to execute graphs, known by name: `reference`, `cpu`.
struct ExecutorKind {
  std::string name;
  std::string summary;
  std::unique_ptr<Executor> (*make)(const Graph&, State, const ExecutionOptions&);
};

/// Prepares a graph for execution on `options.device`: checks the states and, where that plans
/// ahead, plans. States
/// that the graph updates are copied, except those that are moved in and shared with nobody.
std::unique_ptr<Executor> make_executor(const Graph& graph, State state,
                                        const ExecutionOptions& options = {});

}  // namespace lathe::engine

#include "lathe/engine/executor.h"

#include "lathe/engine/backend.h"
#include "lathe/engine/symbol_binding.h"

namespace lathe::engine {

std::unique_ptr<Executor> make_executor(const Graph& graph, State state,
                                        const ExecutionOptions& options) {
  const Backend& backend = find_backend(options.device);
  check_precision(backend, options.precision);
  check_state(graph, state);
  return backend.make(graph, std::move(state), options);
}

}  // namespace lathe::engine

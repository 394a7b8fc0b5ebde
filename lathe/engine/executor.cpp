#include "lathe/engine/executor.h"

#include "lathe/engine/symbol_binding.h"

namespace lathe::engine {

std::unique_ptr<Executor> make_executor(const Graph& graph, State state,
                                        const ExecutionOptions& options) {
  const ExecutorKind& record = Registry<ExecutorKind>::instance().at(options.device, "device");
  check_state(graph, state);
  return record.make(graph, std::move(state), options);
}

}  // namespace lathe::engine

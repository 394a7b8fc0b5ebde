#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "lathe/core/graph.h"
#include "lathe/core/registry.h"
#include "lathe/engine/device_measure.h"
#include "lathe/engine/executor.h"

namespace lathe::engine {

/// A way to execute graphs, known by name: `cpu`, `cuda`, `reference`. All that the rest of the
/// engine knows about a device.
struct Backend {
  std::string name;
  std::string summary;
  /// Whether it has a kernel of its own for a node. Of other nodes it runs the op's definition, or
  /// refuses them; `lower` makes no node that it cannot run.
  bool (*can_run)(const Graph&, NodeId) = nullptr;
  /// Whether this machine has what it needs; null: always.
  bool (*is_available)() = nullptr;
  /// Does what the first executor would wait for, where that takes long; null: nothing does. What
  /// is wrong is left for `make` to say.
  void (*warm_up)() = nullptr;
  std::unique_ptr<Executor> (*make)(const Graph&, State, const ExecutionOptions&) = nullptr;
  /// Lowers and plans as `make` does, and lets go of it: what compiling takes without the weights.
  /// Null: it makes no plan.
  void (*plan)(const Graph&, const ExecutionOptions&) = nullptr;
  /// Memory of the host that the device reads by itself, zeros; null: any is as good.
  std::shared_ptr<std::byte[]> (*make_input_memory)(std::int64_t bytes) = nullptr;
  /// What benches measure below graphs; null: nothing.
  std::unique_ptr<DeviceMeasure> (*measure)(ThreadPool*) = nullptr;
  /// Tokens in a batch of texts whose answers alone are wanted: enough to keep the device busy.
  std::int64_t batch_tokens = 4096;
  std::vector<Precision> precisions = {Precision::Float32};
};

/// The backend of that name; fails with the known names and the nearest.
const Backend& find_backend(std::string_view device);

/// Warms a backend up beside what else is to be done before the first executor is made, such as
/// reading data. To be kept until then.
class WarmUp {
 public:
  explicit WarmUp(const Backend& backend);

 private:
  std::jthread thread_;
};

/// Memory of zeros from which the device reads inputs fastest, as `Tensor::view` gives them to an
/// executor. It takes longer to make than other memory: fill it again and again, but not before the
/// run that reads it is finished.
std::shared_ptr<std::byte[]> make_input_memory(const Backend& backend, std::int64_t bytes);

/// Fails where the backend does not compute in that precision.
void check_precision(const Backend& backend, Precision precision);

/// What `--device auto` takes: `cuda` where it is available, else `cpu`.
std::string fastest_device();

/// How many nodes of each op the backend has no kernel for, once the graph is lowered for it.
std::map<std::string, int> count_fallbacks(const Graph& graph, const Backend& backend);

}  // namespace lathe::engine

#include "lathe/experiment/bench/time_graph.h"

#include <chrono>
#include <cmath>
#include <random>

#include "lathe/core/graph_text.h"
#include "lathe/engine/backend.h"

namespace lathe::experiment::bench {

Timing time_runs(engine::Executor& executor, const Feed& feed, const Repeats& repeats,
                 const Callbacks& callbacks, bool replays) {
  // Twice at least: a device captures the second run.
  for (int i = 0; i < std::max(2, repeats.warm_up); ++i) {
    check_stop(callbacks);
    executor.run(feed);
  }
  std::vector<double> seconds = executor.repeat(repeats.samples, replays);
  while (static_cast<int>(seconds.size()) < repeats.samples) {
    check_stop(callbacks);
    const auto start = std::chrono::steady_clock::now();
    executor.run(feed);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    seconds.push_back(taken.count());
  }
  return timing_of(std::move(seconds));
}

Feed made_up_feed(const Graph& graph, const SymbolValues& sizes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Feed feed;
  for (const NodeId id : graph.nodes_of("input")) {
    const Type& type = graph.types(id)[0];
    Tensor values(DType::F32, type.dims(sizes));
    for (float& value : values.mutable_data<float>())
      value = is_floating(type.dtype) ? static_cast<float>(random() >> 40) * 0x1p-23f - 1
                                      : static_cast<float>(random() % 2);
    feed[graph.name(id)] = values.converted(type.dtype);
  }
  return feed;
}

void check_stop(const Callbacks& callbacks) {
  if (callbacks.stops()) throw Interrupted();
}

double copy_bandwidth(const engine::ExecutionOptions& execution, const Callbacks& callbacks,
                      std::int64_t bytes) {
  const engine::Backend& backend = engine::find_backend(execution.device);
  if (backend.measure == nullptr) return 0;
  if (bytes == 0) bytes = std::int64_t{execution.device == "cpu" ? 256 : 1024} << 20;
  const std::unique_ptr<engine::DeviceMeasure> device = backend.measure(execution.pool);
  device->between = [&] { check_stop(callbacks); };
  const Timing time = timing_of(device->time_copy(bytes, 9));
  return 2 * static_cast<double>(bytes) / time.median;
}

double product_peak(const engine::ExecutionOptions& execution, const Callbacks& callbacks) {
  const std::int64_t size = execution.device == "cuda" ? 4096 : 1024;
  if (execution.device == "reference") return 0;
  const Graph graph = parse_graph(fmt::format(
      "x = input() : f32[{0},{0}]\nw = state() : f32[{0},{0}]\ny = linear(x, w)\noutput y <- y",
      size));
  State state{{"w", made_up_feed(graph, {}, 1).at("x")}};
  const auto executor = engine::make_executor(graph, std::move(state), execution);
  const Timing time =
      time_runs(*executor, made_up_feed(graph, {}, 2), {.warm_up = 2, .samples = 5}, callbacks);
  return 2 * std::pow(static_cast<double>(size), 3) / time.low;
}

std::string device_name(const engine::ExecutionOptions& execution) {
  const engine::Backend& backend = engine::find_backend(execution.device);
  return backend.measure == nullptr ? execution.device
                                    : backend.measure(execution.pool)->description();
}

}  // namespace lathe::experiment::bench

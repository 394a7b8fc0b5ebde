#include "lathe/engine/backend.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "lathe/engine/lower.h"
#include "lathe/engine/parameter_graph.h"

namespace lathe::engine {

const Backend& find_backend(std::string_view device) {
  return Registry<Backend>::instance().at(device, "device");
}

void check_precision(const Backend& backend, Precision precision) {
  const std::vector<Precision>& known = backend.precisions;
  if (std::find(known.begin(), known.end(), precision) != known.end()) return;
  std::vector<std::string_view> names;
  for (const Precision one : known) names.push_back(name(one));
  fail("device {} computes in {}: precision {} needs device {}", backend.name,
       fmt::join(names, " and "), name(precision),
       precision == Precision::Bf16 ? "cpu or cuda" : "cuda");
}

std::shared_ptr<std::byte[]> make_input_memory(const Backend& backend, std::int64_t bytes) {
  if (backend.make_input_memory != nullptr) return backend.make_input_memory(bytes);
  return std::make_shared<std::byte[]>(static_cast<std::size_t>(bytes));
}

WarmUp::WarmUp(const Backend& backend) {
  if (backend.warm_up != nullptr) thread_ = std::jthread(backend.warm_up);
}

std::string fastest_device() {
  const Backend* const gpu = Registry<Backend>::instance().find("cuda");
  return gpu != nullptr && gpu->is_available() ? "cuda" : "cpu";
}

std::map<std::string, int> count_fallbacks(const Graph& graph, const Backend& backend) {
  std::map<std::string, int> result;
  const SplitGraph split = split_parameters(graph);
  for (const Graph* part : {&split.parameters, &split.main}) {
    const Graph lowered = lower(*part, backend);
    for (const NodeId id : lowered.topological_order())
      if (!lowered.op(id).is_source && !backend.can_run(lowered, id)) ++result[lowered.op(id).name];
  }
  return result;
}

}  // namespace lathe::engine

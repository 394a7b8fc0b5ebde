#include "lathe/models/fit_config.h"

#include "lathe/models/loss.h"
#include "lathe/models/set_inputs.h"
#include "lathe/models/set_label_count.h"

namespace lathe::models {
namespace {

// Whether the two graphs of the family disagree on a state, and every such state is in `graph` as
// `after` has it.
bool is_borne_out(const Graph& before, const Graph& after, const Graph& graph) {
  bool any = false;
  for (const NodeId id : after.nodes_of("state")) {
    const std::string& name = after.name(id);
    const std::optional<NodeId> was = before.find(name), is = graph.find(name);
    if (was && before.types(*was) == after.types(id)) continue;
    if (!is || graph.types(*is) != after.types(id)) return false;
    any = true;
  }
  return any;
}

}  // namespace

Attributes fit_config(const ModelFamily& family, const Attributes& config, const std::string& task,
                      const Graph& graph) {
  if (family.read_sizes == nullptr) return config;
  const auto build_with = [&](const Attributes& keys) {
    return build(family, keys,
                 {.task = task,
                  .inputs = input_names(graph),
                  .num_labels = label_count(graph).value_or(1),
                  .labels = loss_kind(graph).value_or(LabelKind::Class)});
  };
  Attributes fitted = config;
  for (const auto& [key, value] : family.read_sizes(graph, config)) {
    const auto present = config.find(key);
    if (present != config.end() && present->second == value) continue;
    Attributes changed = fitted;
    changed[key] = value;
    if (is_borne_out(build_with(fitted), build_with(changed), graph)) fitted = std::move(changed);
  }
  return fitted;
}

std::optional<std::int64_t> num_rows(const Graph& graph, std::string_view state) {
  const std::optional<NodeId> id = graph.find(state);
  if (!id || graph.types(*id)[0].rank() == 0) return std::nullopt;
  return graph.types(*id)[0].axis(0).constant();
}

}  // namespace lathe::models

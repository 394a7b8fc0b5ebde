#include "lathe/compress/pruning/mase_pruning.h"

#include "lathe/compress/rule_file.h"

namespace lathe::compress {
namespace {

// One section of MASE's, as it is written.
struct Section {
  double sparsity = 0;
  std::string method = "random", scope = "local", granularity = "elementwise";
};

Section parse_section(const toml::node& node, std::string_view name) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) fail("expected [{}], a table", name);
  Section section;
  bool has_sparsity = false;
  for (const auto& [key, value] : *table) {
    const std::string_view word = key.str();
    const std::optional<std::string> text = value.value<std::string>();
    if (word == "sparsity") {
      const std::optional<double> number = value.value<double>();
      if (!number || value.is_boolean()) fail("{}.sparsity must be a number", name);
      section.sparsity = *number;
      has_sparsity = true;
      continue;
    }
    std::string* const target = word == "method"        ? &section.method
                                : word == "scope"       ? &section.scope
                                : word == "granularity" ? &section.granularity
                                                        : nullptr;
    if (target == nullptr)
      throw unknown_name(fmt::format("key of [{}]", name), word,
                         {"sparsity", "method", "scope", "granularity"});
    if (!text) fail("{}.{} must be a text", name, word);
    *target = *text;
  }
  if (!has_sparsity) fail("{}.sparsity is missing: expected a number, 0 to 1", name);
  if (section.method != "random" && section.method != "l1-norm")
    throw unknown_name(fmt::format("{}.method", name), section.method, {"l1-norm", "random"});
  if (section.scope != "local" && section.scope != "global")
    throw unknown_name(fmt::format("{}.scope", name), section.scope, {"local", "global"});
  if (section.granularity != "elementwise")
    throw unknown_name(fmt::format("{}.granularity", name), section.granularity, {"elementwise"});
  return section;
}

// A sparsity of 0 is how MASE leaves activations alone: both of its sections must be there.
void take_activation(const Section& section, PruningSettings& settings) {
  if (section.sparsity == 0) return;
  if (section.method == "random")
    fail("activation.method random: would drop other inputs in every run: expected l1-norm");
  if (section.scope == "global")
    fail("activation.scope global: each row is ranked by itself: expected local");
  settings.activations = section.sparsity;
}

}  // namespace

bool is_mase_pruning(const toml::table& root) {
  return root.contains("weight") || root.contains("activation");
}

PruningRule parse_mase_pruning(const toml::table& root, const std::string& source) {
  PruningRule rule;
  for (const auto& [key, node] : root)
    with_place(place_of(node, source), [&] {
      if (key == "activation") {
        take_activation(parse_section(node, "activation"), rule.settings);
        return;
      }
      if (key != "weight") throw unknown_name("key", key.str(), {"weight", "activation"});
      const Section section = parse_section(node, "weight");
      rule.settings.sparsity = section.sparsity;
      rule.settings.method = section.method == "l1-norm" ? "l1" : section.method;
      rule.settings.scope = parse_pruning_scope(section.scope);
      rule.settings.granularity = Granularity{};
    });
  rule.place = place_of(*root.begin()->second.as_table(), source);
  return rule;
}

}  // namespace lathe::compress

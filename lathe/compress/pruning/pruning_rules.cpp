#include "lathe/compress/pruning/pruning_rules.h"

#include "lathe/compress/pruning/mase_pruning.h"
#include "lathe/compress/pruning/method.h"
#include "lathe/compress/rule_file.h"

namespace lathe::compress {
namespace {

double number(std::string_view key, const toml::node& node) {
  const std::optional<double> value = node.value<double>();
  if (!value || node.is_boolean()) fail("{} must be a number", key);
  return *value;
}

std::string text(std::string_view key, const toml::node& node) {
  const std::optional<std::string> value = node.value<std::string>();
  if (!value) fail("{} must be a text", key);
  return *value;
}

// Reads one key of a rule into it.
void take_setting(const toml::key& key, const toml::node& node, bool is_default,
                  PruningRule& rule) {
  PruningSettings& settings = rule.settings;
  const std::string_view word = key.str();
  if (!is_default && take_match(key, node, rule.by, rule.match)) return;
  if (word == "sparsity") {
    settings.sparsity = number(word, node);
  } else if (word == "method") {
    settings.method = text(word, node);
    find_pruning_method(*settings.method);
  } else if (word == "granularity") {
    settings.granularity = parse_granularity(text(word, node));
  } else if (word == "scope") {
    settings.scope = parse_pruning_scope(text(word, node));
  } else if (word == "activations") {
    settings.activations = number(word, node);
  } else {
    std::vector<std::string> known{"sparsity", "method", "granularity", "scope", "activations"};
    if (!is_default) known.insert(known.end(), {"by", "match"});
    throw unknown_name("key", word, known);
  }
}

PruningRule parse_pruning_rule(const toml::table& table, bool is_default,
                               const std::string& source) {
  PruningRule rule;
  for (const auto& [key, node] : table)
    with_place(place_of(node, source),
               [&, &key = key, &node = node] { take_setting(key, node, is_default, rule); });
  if (!is_default)
    with_place(place_of(table, source), [&] { check_match_given(rule.by, rule.match); });
  return rule;
}

}  // namespace

PruningSettings filled(PruningSettings settings, const PruningSettings& others) {
  if (!settings.method) settings.method = others.method;
  if (!settings.scope) settings.scope = others.scope;
  if (!settings.activations) settings.activations = others.activations;
  // N:M brings a sparsity of its own.
  const bool brings = settings.granularity && largest_sparsity(*settings.granularity) < 1;
  if (!settings.sparsity && !brings) settings.sparsity = others.sparsity;
  if (!settings.granularity) settings.granularity = others.granularity;
  return settings;
}

void check_settings(const PruningSettings& settings) {
  const Granularity granularity = settings.granularity.value_or(Granularity{});
  if (settings.sparsity) check_sparsity(*settings.sparsity, granularity);
  if (settings.activations && !(*settings.activations >= 0 && *settings.activations < 1))
    fail("activations {:g}: expected a share of each row, 0 or more and below 1",
         *settings.activations);
  if (!settings.method) return;
  const PruningMethod& method = find_pruning_method(*settings.method);
  if (method.granularities && !method.granularities(granularity))
    fail("method {}: prunes {}, not granularity {}", method.name, method.prunes,
         to_text(granularity));
  if (method.prune && settings.scope && *settings.scope != PruningScope::Local)
    fail("scope {}: {} ranks the weights of some columns of a layer: expected local",
         name(*settings.scope), method.name);
}

std::vector<PruningRule> parse_pruning_rules(std::string_view text, const std::string& source) {
  const toml::table root = parse_rule_toml(text, source);
  std::vector<PruningRule> rules =
      is_mase_pruning(root) ? std::vector{parse_mase_pruning(root, source)}
                            : parse_rule_tables<PruningRule>(root, source, parse_pruning_rule,
                                                             {"weight", "activation"});
  if (rules.empty()) fail("{}: holds no rule", source);
  for (const PruningRule& rule : rules)
    with_place(rule.place, [&] {
      check_match(rule.by, rule.match);
      check_settings(rule.settings);
    });
  return rules;
}

}  // namespace lathe::compress

#include "lathe/compress/quantization_rules.h"

#include <toml++/toml.h>

#include <algorithm>
#include <optional>

#include "lathe/compress/mase_rules.h"
#include "lathe/compress/rule_file.h"
#include "lathe/core/number_format.h"
#include "lathe/ops/attention_weight_format.h"

namespace lathe::compress {

std::string_view name(TensorRole role) {
  switch (role) {
    case TensorRole::Weights:
      return "weights";
    case TensorRole::Bias:
      return "bias";
    case TensorRole::Inputs:
      return "inputs";
    case TensorRole::Outputs:
      return "outputs";
    case TensorRole::Embeddings:
      return "embeddings";
    case TensorRole::Attention:
      return "attention";
    case TensorRole::AttentionWeights:
      return "attention_weights";
  }
  return {};
}

void check_format(TensorRole role, std::string_view format) {
  const bool is_float = parse_format(format) == nullptr;
  if (role == TensorRole::AttentionWeights && !is_float) ops::AttentionWeightFormat{format};
}

bool QuantizationRule::matches(std::string_view op, std::string_view layer) const {
  return compress::matches(by, match, op, layer);
}

namespace {

void check_rule(const QuantizationRule& rule) {
  check_match(rule.by, rule.match);
  for (const auto& [role, format] : rule.formats)
    with_place(std::string(name(role)), [&] { check_format(role, format); });
}

// Reads one key of a rule into it.
void take_format(const toml::key& key, const toml::node& node, bool is_default,
                 QuantizationRule& rule) {
  const std::string_view word = key.str();
  if (!is_default && take_match(key, node, rule.by, rule.match)) return;
  const std::optional<std::string> text = node.value<std::string>();
  if (!text) fail("{} must be a text", word);
  std::vector<std::string> known;
  for (const TensorRole role : kTensorRoles) {
    known.emplace_back(name(role));
    if (name(role) != word) continue;
    with_place(std::string(word), [&] { check_format(role, *text); });
    rule.formats[role] = *text;
    return;
  }
  if (!is_default) known.insert(known.end(), {"by", "match"});
  throw unknown_name("key", word, known);
}

QuantizationRule parse_quantization_rule(const toml::table& table, bool is_default,
                                         const std::string& source) {
  QuantizationRule rule;
  for (const auto& [key, node] : table)
    with_place(place_of(node, source),
               [&, &key = key, &node = node] { take_format(key, node, is_default, rule); });
  if (!is_default)
    with_place(place_of(table, source), [&] { check_match_given(rule.by, rule.match); });
  return rule;
}

// by = "type" at the top, then a table for each type, name or pattern; `default` comes last.
std::vector<QuantizationRule> parse_mase(const toml::table& root, const std::string& source) {
  std::vector<QuantizationRule> rules;
  std::optional<QuantizationRule> last;
  const MatchBy by = with_place(place_of(*root.get("by"), source),
                                [&] { return parse_match_by(*root.get("by")); });
  // Tables are kept by name; the first match is the first that was written.
  std::vector<std::pair<std::string, const toml::node*>> written;
  for (const auto& [key, node] : root) written.emplace_back(key.str(), &node);
  std::stable_sort(written.begin(), written.end(), [](const auto& a, const auto& b) {
    return a.second->source().begin < b.second->source().begin;
  });
  for (const auto& [key, each] : written) {
    const toml::node& node = *each;
    if (key == "by") continue;
    const toml::table* table = node.as_table();
    QuantizationRule rule;
    rule.place = place_of(node, source);
    with_place(rule.place, [&] {
      if (table == nullptr) fail("\"{}\" must be a table", key);
      std::string name = key;
      if (const toml::table* inner = (*table)["config"].as_table()) {
        for (const auto& [beside, unread] : *table)
          if (beside != "config")
            fail("{} in [{}]: would do nothing: only {}.config is read", beside.str(), key, key);
        table = inner;
        name += ".config";
      }
      rule.formats = mase_formats(*table, name);
    });
    if (key == "default") {
      last = std::move(rule);
      continue;
    }
    rule.by = by;
    rule.match = key;
    rules.push_back(std::move(rule));
  }
  if (last) rules.push_back(*last);
  return rules;
}

}  // namespace

std::vector<QuantizationRule> parse_quantization_rules(std::string_view text,
                                                       const std::string& source) {
  const toml::table root = parse_rule_toml(text, source);
  std::vector<QuantizationRule> rules =
      root.contains("by")
          ? parse_mase(root, source)
          : parse_rule_tables<QuantizationRule>(root, source, parse_quantization_rule, {"by"});
  if (rules.empty()) fail("{}: holds no rule", source);
  for (const QuantizationRule& rule : rules) with_place(rule.place, [&] { check_rule(rule); });
  return rules;
}

}  // namespace lathe::compress

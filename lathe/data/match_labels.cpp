#include "lathe/data/match_labels.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "lathe/core/error.h"

namespace lathe::data {
namespace {

using Names = std::vector<std::string>;

constexpr std::string_view kLabelPrefix = "LABEL_";

// The number that a name is; none for "01" or "+1", which are names.
std::optional<std::int32_t> as_number(std::string_view name) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc{} || end != name.data() + name.size() || std::to_string(value) != name)
    return std::nullopt;
  return value;
}

std::optional<std::int32_t> position_of(std::string_view name, const Names& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::int32_t>(found - names.begin());
}

bool all_numbers(const Names& names) {
  return std::all_of(names.begin(), names.end(),
                     [](const std::string& name) { return as_number(name).has_value(); });
}

bool all_placeholders(const Names& names) {
  return std::all_of(names.begin(), names.end(), [](std::string_view name) {
    return name.starts_with(kLabelPrefix) && as_number(name.substr(kLabelPrefix.size()));
  });
}

// Where a name that occurs in the data stands among the model's.
std::optional<std::int32_t> match(const std::string& name, const Names& used, const Names& model) {
  const bool by_name = std::all_of(used.begin(), used.end(), [&](const std::string& each) {
    return position_of(each, model).has_value();
  });
  if (by_name) return position_of(name, model);
  if (!all_numbers(used) || all_numbers(model)) return std::nullopt;
  if (all_placeholders(model)) return position_of(fmt::format("{}{}", kLabelPrefix, name), model);
  const std::int32_t number = *as_number(name);
  if (number < 0 || number >= static_cast<std::int32_t>(model.size())) return std::nullopt;
  return number;
}

[[noreturn]] void refuse(const Names& data, const Names& model) {
  fail("the labels of the data are {}, but the model's are {}: expected the same names",
       fmt::join(data, ", "), fmt::join(model, ", "));
}

// The classes of examples, or of their words.
template <typename Use>
void for_each_label(Dataset& dataset, const Use& use) {
  for (Example& example : dataset.examples) {
    use(example.label);
    for (std::int32_t& label : example.word_labels) use(label);
  }
}

// Puts each label's column where the model has it; labels that the data does not know are absent.
Dataset match_sets(Dataset dataset, const Names& model) {
  if (dataset.label_names == model) return dataset;
  std::vector<std::size_t> columns;
  for (const std::string& name : dataset.label_names) {
    const auto position = match(name, dataset.label_names, model);
    if (!position) refuse(dataset.label_names, model);
    columns.push_back(static_cast<std::size_t>(*position));
  }
  std::vector<float> targets(dataset.examples.size() * model.size());
  for (std::size_t i = 0; i < dataset.examples.size(); ++i)
    for (std::size_t label = 0; label < columns.size(); ++label)
      targets[i * model.size() + columns[label]] = dataset.targets[i * columns.size() + label];
  dataset.targets = std::move(targets);
  dataset.label_names = model;
  return dataset;
}

}  // namespace

Dataset match_labels(Dataset dataset, const Names& model_label_names) {
  const Names& model = model_label_names;
  if (dataset.label_kind == LabelKind::Number) return dataset;
  if (std::set<std::string>(model.begin(), model.end()).size() != model.size())
    fail("the model has a label twice: {}", fmt::join(model, ", "));
  if (dataset.label_kind == LabelKind::Set) return match_sets(std::move(dataset), model);
  std::vector<bool> occurs(dataset.label_names.size());
  for_each_label(dataset, [&](std::int32_t label) {
    if (label != kNoLabel) occurs.at(static_cast<std::size_t>(label)) = true;
  });
  Names used;
  for (std::size_t label = 0; label < occurs.size(); ++label)
    if (occurs[label]) used.push_back(dataset.label_names[label]);

  std::vector<std::int32_t> positions(occurs.size(), kNoLabel);
  for (std::size_t label = 0; label < occurs.size(); ++label) {
    if (!occurs[label]) continue;
    const auto position = match(dataset.label_names[label], used, model);
    if (!position) refuse(dataset.label_names, model);
    positions[label] = *position;
  }
  for_each_label(dataset, [&](std::int32_t& label) {
    if (label != kNoLabel) label = positions[static_cast<std::size_t>(label)];
  });
  dataset.label_names = model;
  return dataset;
}

}  // namespace lathe::data

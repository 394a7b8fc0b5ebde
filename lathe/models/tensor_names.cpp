#include "lathe/models/tensor_names.h"

#include <algorithm>

#include "lathe/models/other_names.h"

namespace lathe::models {
namespace {

bool ends_with_any(std::string_view name, const std::vector<std::string>& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const std::string& ending) { return name.ends_with(ending); });
}

}  // namespace

std::vector<std::string> names_in_files(const ModelFamily& family, const std::string& state) {
  const std::string& prefix = family.naming.base_prefix;
  std::vector<std::string> names{state};
  if (!prefix.empty() && state.starts_with(prefix)) names.push_back(state.substr(prefix.size()));
  return names;
}

bool is_transposed(const ModelFamily& family, std::string_view state) {
  return ends_with_any(state, family.naming.transposed);
}

bool is_meaningless(const ModelFamily& family, std::string_view tensor) {
  return ends_with_any(tensor, family.naming.meaningless);
}

std::string current_name(const ModelFamily& family, std::string_view tensor) {
  for (const auto& [old, current] : family.naming.older)
    if (tensor.ends_with(old))
      return std::string(tensor.substr(0, tensor.size() - old.size())) + current;
  return name_from_elsewhere(family, tensor);
}

bool may_be_unread(const ModelFamily& family, std::string_view tensor) {
  return ends_with_any(tensor, family.naming.unread);
}

bool belongs_to_head(const ModelFamily& family, std::string_view state) {
  return std::any_of(family.head_prefixes.begin(), family.head_prefixes.end(),
                     [&](const std::string& prefix) { return state.starts_with(prefix); });
}

}  // namespace lathe::models

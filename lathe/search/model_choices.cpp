#include "lathe/search/model_choices.h"

#include <optional>

#include "lathe/core/error.h"

namespace lathe::search {

models::NamedModel named_builder(const std::string& name) {
  const auto named = models::find_named_model(name);
  if (!named) throw unknown_name("builder", name, models::named_models());
  return *named;
}

bool has_variables(const ArchitectureSpace& space) {
  return space.model.find('{') != std::string::npos;
}

namespace {

// Combinations that can be built as classifiers, the first of them or all.
std::vector<std::string> buildable(const ArchitectureSpace& space, bool is_first_enough) {
  if (!has_variables(space)) return {space.model};
  std::vector<std::string> names;
  std::optional<UserError> first;
  each_combination(space.variables, [&](const VariableValues& values) {
    if (is_first_enough && !names.empty()) return;
    const std::string name = fill_variables(space.model, values);
    try {
      const models::NamedModel named = named_builder(name);
      with_place(name, [&] { models::build(*named.family, named.config, {.task = "classify"}); });
      names.push_back(name);
    } catch (const UserError& error) {
      if (!first) first = error;
    }
  });
  if (names.empty()) throw *first;
  return names;
}

}  // namespace

std::vector<std::string> models_of(const ArchitectureSpace& space) {
  std::vector<std::string> names = buildable(space, false);
  if (!has_variables(space)) return names;
  const std::string& family = named_builder(names.front()).family->name;
  for (const std::string& name : names)
    if (const std::string& other = named_builder(name).family->name; other != family)
      fail("{} is of the family {}, {} of {}: expected one family", names.front(), family, name,
           other);
  return names;
}

std::string first_model_of(const ArchitectureSpace& space) {
  return buildable(space, true).front();
}

}  // namespace lathe::search

#include "lathe/search/model_choices.h"

#include <optional>

#include "lathe/core/error.h"

namespace lathe::search {

models::NamedModel named_builder(const std::string& name) {
  const auto named = models::find_named_model(name);
  if (!named) throw unknown_name("builder", name, models::named_models());
  return *named;
}

void list_models(ArchitectureSpace& space) {
  space.models.clear();
  std::optional<UserError> first;
  each_combination(space.variables, [&](const VariableValues& values) {
    const std::string name = fill_variables(space.model, values);
    try {
      const models::NamedModel named = named_builder(name);
      with_place(name, [&] { models::build(*named.family, named.config, {.task = "classify"}); });
      space.models.push_back(name);
    } catch (const UserError& error) {
      if (!first) first = error;
    }
  });
  if (space.models.empty()) throw *first;
  const std::string& family = named_builder(space.models.front()).family->name;
  for (const std::string& name : space.models)
    if (const std::string& other = named_builder(name).family->name; other != family)
      fail("{} is of the family {}, {} of {}: expected one family", space.models.front(), family,
           name, other);
}

}  // namespace lathe::search

#include "lathe/search/builder_sizes.h"

#include "lathe/search/model_choices.h"

namespace lathe::search {

std::string builder_name(const ArchitectureSpace& space) {
  if (space.variables.empty()) return space.model;
  if (!space.models.empty()) return space.models.front();
  ArchitectureSpace listed = space;
  list_models(listed);
  return listed.models.front();
}

bool has_encoder_sizes(const ArchitectureSpace& space) {
  return space.variables.empty() && named_builder(space.model).family->name == "bert";
}

std::vector<std::int64_t> values_or_default(const ArchitectureSpace& space,
                                            const std::vector<std::int64_t>& values,
                                            const std::string& key) {
  if (!values.empty()) return values;
  const models::NamedModel named = named_builder(space.model);
  return {AttributeReader(named.config, named.family->config).integer(key)};
}

}  // namespace lathe::search

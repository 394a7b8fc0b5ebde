#include "lathe/search/builder_sizes.h"

#include "lathe/search/model_choices.h"

namespace lathe::search {

std::string builder_name(const ArchitectureSpace& space) {
  return first_model_of(space);
}

bool has_encoder_sizes(const ArchitectureSpace& space) {
  return !has_variables(space) && named_builder(space.model).family->name == "bert";
}

std::vector<std::int64_t> values_or_default(const ArchitectureSpace& space,
                                            const std::vector<std::int64_t>& values,
                                            const std::string& key) {
  if (!values.empty()) return values;
  const models::NamedModel named = named_builder(space.model);
  return {AttributeReader(named.config, named.family->config).integer(key)};
}

}  // namespace lathe::search

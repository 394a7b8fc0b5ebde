#include "lathe/search/builder_sizes.h"

#include "lathe/core/error.h"

namespace lathe::search {

models::NamedModel builder_of(const ArchitectureSpace& space) {
  const auto named = models::find_named_model(space.model);
  if (!named) throw unknown_name("builder", space.model, models::named_models());
  if (named->family->name != "bert")
    fail("model {}: is of the family {}; architectures are searched in bert", space.model,
         named->family->name);
  return *named;
}

std::vector<std::int64_t> values_or_default(const ArchitectureSpace& space,
                                            const std::vector<std::int64_t>& values,
                                            const std::string& key) {
  if (!values.empty()) return values;
  const models::NamedModel named = builder_of(space);
  return {AttributeReader(named.config, named.family->config).integer(key)};
}

}  // namespace lathe::search

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lathe/models/family.h"
#include "lathe/search/search_space.h"

namespace lathe::search {

/// The builder that a space of architectures starts from; fails when there is none, or when it is
/// not one whose architectures are searched.
models::NamedModel builder_of(const ArchitectureSpace& space);

/// The values, or where there are none the one that the builder has for the key.
std::vector<std::int64_t> values_or_default(const ArchitectureSpace& space,
                                            const std::vector<std::int64_t>& values,
                                            const std::string& key);

}  // namespace lathe::search

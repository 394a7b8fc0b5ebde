#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lathe/models/family.h"
#include "lathe/search/search_space.h"

namespace lathe::search {

/// The builder that a space of architectures starts from, of several the first; fails when there is
/// none.
std::string builder_name(const ArchitectureSpace& space);

/// Whether the space is of encoders whose sizes and kinds it lists, and not of models whose names
/// have them.
bool has_encoder_sizes(const ArchitectureSpace& space);

/// The values, or where there are none the one that the builder has for the key.
std::vector<std::int64_t> values_or_default(const ArchitectureSpace& space,
                                            const std::vector<std::int64_t>& values,
                                            const std::string& key);

}  // namespace lathe::search

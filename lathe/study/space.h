#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// The space with every distribution validated; fails when a name occurs twice, or when a condition
/// names a parent that does not stand before, or values that the parent cannot have.
Space validated(Space space);

/// Fails, naming the first difference, unless both declare the same parameters.
void require_same(const Space& known, const Space& asked);

/// The space as JSON, as a study keeps it, and back. The text may come from anywhere.
std::string to_json(const Space& space);
Space parse_space(std::string_view json);

}  // namespace lathe::study

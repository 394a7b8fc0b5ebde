#pragma once

#include "lathe/models/family.h"
#include "lathe/search/format_choices.h"
#include "lathe/search/search_space.h"

namespace lathe::search {

/// Fills `models` with all combinations of the variables that can be built as classifiers; fails
/// with the first combination's error when there are none, or where they are of several families.
void list_models(ArchitectureSpace& space);

/// The builder of a name; fails when there is none.
models::NamedModel named_builder(const std::string& name);

}  // namespace lathe::search

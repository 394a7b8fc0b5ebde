#pragma once

#include <string>
#include <vector>

#include "lathe/models/family.h"
#include "lathe/search/format_choices.h"
#include "lathe/search/search_space.h"

namespace lathe::search {

/// Whether the model of a space has variables in braces, and so stands for many.
bool has_variables(const ArchitectureSpace& space);

/// The models that a space stands for: its builder, or with variables all combinations of them that
/// can be built as classifiers. Fails with the first combination's error when there are none, or
/// where they are of several families.
std::vector<std::string> models_of(const ArchitectureSpace& space);

/// The first of them, without a look at the others.
std::string first_model_of(const ArchitectureSpace& space);

/// The builder of a name; fails when there is none.
models::NamedModel named_builder(const std::string& name);

}  // namespace lathe::search

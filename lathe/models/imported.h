#pragma once

#include "lathe/models/family.h"

namespace lathe::models {

/// The family of graphs that other programs made, and that read texts or something else. They
/// cannot be built: a graph is what its file says.
const ModelFamily& imported_family(bool reads_texts);
bool is_imported(const ModelFamily& family);

}  // namespace lathe::models

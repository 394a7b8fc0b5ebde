#pragma once

#include <filesystem>

#include "lathe/search/search_space.h"
#include "lathe/search/trial_data.h"

namespace lathe::search {

/// Weights that all architectures of a space start from, as large as the largest of them, learned
/// from masked words of `train` and `unsup`: for `epochs` epochs in each of which one architecture
/// is cut out, trained and written back, the largest in every other one and one that is drawn in
/// those between. A single run in all: the rate falls once, and moments go on.
///
/// What is in `directory` is that of an earlier call. One that is interrupted begins anew.
io::Model train_supernet(const SearchOptions& options, const ArchitectureSpace& space,
                         const io::Model& base, const std::filesystem::path& directory,
                         const engine::ExecutionOptions& execution,
                         const experiment::Callbacks& callbacks);

}  // namespace lathe::search

#pragma once

#include "lathe/io/model.h"
#include "lathe/search/candidate_space.h"
#include "lathe/search/search_options.h"

namespace lathe::search {

/// The space that a search's options name, with what else they fix. Fails where it has nothing for
/// this kind of search, or what only another has.
SearchSpace space_for(const SearchOptions& options);

/// Its candidates for a model, whose layers choose by themselves where it is trained.
CandidateSpace candidates_of(const SearchSpace& space, const io::Model& model);

}  // namespace lathe::search

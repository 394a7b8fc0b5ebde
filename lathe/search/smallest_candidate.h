#pragma once

#include "lathe/search/candidate_space.h"

namespace lathe::search {

/// Candidates of which one costs least, whatever is counted: the smallest sizes that fit together,
/// projections left out where they may be, the fewest bits, the highest sparsity. There are several
/// where names of models have the sizes.
std::vector<Candidate> smallest_candidates(const CandidateSpace& space);

}  // namespace lathe::search

#pragma once

#include "lathe/search/candidate_space.h"

namespace lathe::search {

/// The candidate that costs least whatever is counted: the smallest sizes that fit together,
/// projections left out where they may be, the fewest bits, the highest sparsity.
Candidate smallest_candidate(const CandidateSpace& space);

}  // namespace lathe::search

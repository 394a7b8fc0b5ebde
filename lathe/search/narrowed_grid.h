#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lathe/search/candidate_space.h"
#include "lathe/study/history.h"

namespace lathe::search {

/// At most `most` points made of the values that took part in trials above `above`, those of the
/// best trial first.
///
/// What others depend on, such as the number of layers, is the best trial's. Of the rest the
/// parameters that matter least are fixed at its values until the grid is small enough. Points that
/// cannot be built are left out. Fails when no complete trial is above.
std::vector<std::vector<std::pair<std::string, study::Choice>>> narrowed_grid(
    const CandidateSpace& space, const std::vector<const study::History*>& histories, int most,
    double above);

}  // namespace lathe::search

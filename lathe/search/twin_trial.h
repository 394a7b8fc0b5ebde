#pragma once

#include <string>

#include "lathe/core/interrupt.h"
#include "lathe/search/known_results.h"

namespace lathe::search {

/// Waits while another worker trains the same model as an earlier trial of the study, whatever
/// process it is in: two that draw the same point at the same time share what one of them makes.
/// What such trials came to is added to `known`. A worker that is not heard of any more is not
/// waited for. Throws Interrupted where `should_stop` says so.
void await_twin(study::Study& study, const std::string& name, const study::Trial& trial,
                const CandidateSpace& space, KnownResults& known, const ShouldStop& should_stop);

}  // namespace lathe::search

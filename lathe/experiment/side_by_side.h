#pragma once

#include <functional>
#include <vector>

#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"

namespace lathe::experiment {

/// Work that needs nothing of its neighbours, with a part of the machine to do it on.
using Job = std::function<void(const engine::ExecutionOptions&, const Callbacks&)>;

/// Does jobs in their order, up to `at_once` of them at a time, each on its own share of the
/// threads; on a GPU they share the device. A job that fails, and a caller that wants to stop, end
/// them all; the error of the first job in order that has one is thrown.
///
/// What jobs tell comes one after another. Of several at once only the number that are done is
/// progress.
void do_side_by_side(const std::vector<Job>& jobs, int at_once,
                     const engine::ExecutionOptions& execution, const Callbacks& callbacks);

}  // namespace lathe::experiment

#pragma once

#include "lathe/engine/cpu/cpu_plan.h"

namespace lathe::engine {

/// Lets values that one step makes and others read lie as bfloat16 numbers where that changes no
/// bit of any result: the step makes such numbers, or all who read them round them. Steps say what
/// they can (`Step::narrow_input`), and are told what is so. Outputs of the graph and updates of
/// states stay as they are. To be done before slots are shared.
void narrow_values(CpuPlan& plan);

}  // namespace lathe::engine

#include "lathe/engine/plan_report.h"

namespace lathe::engine {

std::string kernel_text(const PlannedStep& step) {
  return step.is_reference ? step.op + " (reference)" : step.op;
}

}  // namespace lathe::engine

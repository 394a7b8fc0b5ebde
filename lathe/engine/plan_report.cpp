#include "lathe/engine/plan_report.h"

namespace lathe::engine {

std::string kernel_text(const PlannedStep& step) {
  const std::string choice = step.is_reference ? "reference" : step.choice.kernel;
  return choice.empty() ? step.op : step.op + " (" + choice + ")";
}

}  // namespace lathe::engine

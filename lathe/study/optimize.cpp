#include "lathe/study/study.h"
#include "lathe/study/work.h"

namespace lathe::study {

void Study::optimize(const Objective& objective, const StopRule& rule,
                     const std::vector<Callback>& callbacks) {
  const auto evaluate = [&](Trial& trial, const ShouldStop&) { return objective(trial); };
  if (callbacks.empty()) return work(*this, evaluate, rule);
  work(*this, evaluate, rule, [&](const WorkedTrial& worked) {
    if (worked.ending != Ending::Told) return;
    for (const Callback& callback : callbacks) callback(*this, worked.trial);
  });
}

}  // namespace lathe::study

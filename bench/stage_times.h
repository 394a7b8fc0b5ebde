#pragma once

// Where the time of a plan's stages goes on several threads.

#include <fmt/core.h>

#include <cstdio>

#include "lathe/engine/plan_report.h"

namespace lathe::bench {

/// Prints the milliseconds of a round that each stage took, of `rounds` that were timed and took
/// `seconds` together. A stage is what its threads did on average (in tasks, before their first,
/// behind their last) and what the calling one did alone.
inline void print_stages(const engine::PlanReport& report, int rounds, double seconds) {
  const auto ms = [&](double all) { return 1e3 * all / rounds; };
  double in_stages = 0;
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    const engine::StageTime& stage = report.stages[i];
    const auto each = [&](double all) { return ms(all) / report.threads; };
    std::string names;
    for (const engine::PlannedStep& step : report.steps)
      if (!step.is_for_states && step.stage == static_cast<int>(i))
        names = names.empty() ? step.name : names.substr(0, names.find(" ..")) + " .. " + step.name;
    fmt::print(
        stderr,
        "  stage {:>3} {:>5} tasks, met {:>2} times {:>8.3f} ms {:>5.1f} % busy: tasks {:.3f}, "
        "before {:.3f}, behind {:.3f}, alone {:.3f}  {}\n",
        i, stage.tasks / rounds, stage.meetings / rounds, ms(stage.wall),
        100 * stage.busy / (stage.wall * report.threads), each(stage.busy), each(stage.before),
        each(stage.behind), ms(stage.alone), names);
    in_stages += stage.wall;
  }
  fmt::print(stderr, "  stages {:.3f} ms, the rest of a run {:.3f}, outside of runs {:.3f}\n",
             ms(in_stages), ms(report.run_seconds - in_stages), ms(seconds - report.run_seconds));
}

}  // namespace lathe::bench

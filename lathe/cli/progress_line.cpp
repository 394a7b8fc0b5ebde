#include "lathe/cli/progress_line.h"

#include <fmt/format.h>

#include <cstdio>

#include "lathe/cli/say.h"

namespace lathe::cli {

experiment::Callbacks ProgressLine::callbacks() {
  return {.progress = [this](const experiment::Progress& now) { show(now); },
          .notice =
              [this](const std::string& line) {
                finish();
                say("warning: {}\n", line);
              },
          .should_stop = is_interrupted};
}

void ProgressLine::show(const experiment::Progress& now) {
  if (bar_ == nullptr || activity_ != now.activity) {
    finish();
    activity_ = now.activity;
    bar_ = std::make_unique<report::Progress>(stderr,
                                              report::ProgressOptions{.is_enabled = !is_quiet_,
                                                                      .label = now.activity,
                                                                      .unit = now.unit,
                                                                      .done_before = now.done});
  }
  bar_->update(now.done, now.total, now.note);
}

void ProgressLine::finish() {
  if (bar_ != nullptr) bar_->finish();
  bar_.reset();
}

}  // namespace lathe::cli

#include <fmt/format.h>

#include "lathe/cli/sweep_flags.h"

namespace lathe::cli {

void add_sweep_options(Flags flags, experiment::SweepSettings& options) {
  flags.add_option("--data", options.data, "of a sweep: what to train and measure on");
  flags.add_option("--split", options.split,
                   "of a sweep: what to measure on, such as test [rows held out of train]");
  flags
      .add_option("--validation", options.validation,
                  "of a sweep: rows to hold out, a fifth of train at most [5000]")
      .range(1, std::int64_t{1} << 40);
  flags.add_option(
      "--epochs", [&](const std::string& text) { options.epochs = experiment::parse_epochs(text); },
      "of a sweep: training after each change, a cycle of the rate each; 0: none; 1..8: measured "
      "after each of them [1]");
  flags.add_option(
      "--lr", options.learning_rate,
      fmt::format("of a sweep: learning rate at its highest [{:g}]", options.learning_rate));
  flags.add_option("--batch-size", options.batch_size, "of a sweep: examples in a batch [32]")
      .range(1, std::int64_t{1} << 20);
  flags.add_option("--limit", options.limit, "of a sweep: train on so many examples [all]")
      .range(1, std::int64_t{1} << 40);
  flags.add_option("--jobs", options.jobs, "of a sweep: runs side by side, sharing the device [1]")
      .range(1, 256);
  flags.add_flag("--resume", options.resumes, "go on with the sweep in --out");
}

void complete(experiment::SweepSettings& options, const std::string& model, const std::string& out,
              bool replaces, const Settings& settings) {
  options.model = model;
  options.seed = settings.seed;
  options.out = out;
  options.replaces = replaces;
}

}  // namespace lathe::cli

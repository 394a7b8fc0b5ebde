#include <CLI/App.hpp>

#include "lathe/cli/quantize_flags.h"

namespace lathe::cli {

void add_sweep_options(CLI::App& app, experiment::SweepOptions& options) {
  app.add_option("--sweep", options.formats,
                 "try formats one after another on weights, biases and activations: widths, "
                 "integer-bits, fraction-bits, or \"fixed:{w},{w/2} w=4,6,8\"");
  app.add_option("--data", options.data, "of a sweep: what to train and measure on");
  app.add_option("--split", options.split,
                 "of a sweep: what to measure on, such as test [rows held out of train]");
  app.add_option("--validation", options.validation,
                 "of a sweep: rows to hold out, a fifth of train at most [5000]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--epochs", options.epochs, "of a sweep: training after rounding; 0: none [1]")
      ->check(CLI::Range(0, 1000));
  app.add_option("--lr", options.learning_rate, "of a sweep: learning rate at its highest [2e-4]");
  app.add_option("--batch-size", options.batch_size, "of a sweep: examples in a batch [32]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--limit", options.limit, "of a sweep: train on so many examples [all]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_flag("--resume", options.resumes, "go on with the sweep in --out");
}

}  // namespace lathe::cli

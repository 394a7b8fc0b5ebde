#include <CLI/App.hpp>

#include "lathe/cli/quantize_sweep.h"

namespace lathe::cli {

void add_sweep_options(CLI::App& app, SweepArguments& arguments) {
  app.add_option("--sweep", arguments.sweep,
                 "try formats one after another on weights, biases and activations: widths, "
                 "integer-bits, fraction-bits, or \"fixed:{w},{w/2} w=4,6,8\"");
  app.add_option("--data", arguments.data, "of a sweep: where to train and test");
  app.add_option("--epochs", arguments.epochs, "of a sweep: training after rounding; 0: none [1]")
      ->check(CLI::Range(0, 1000));
  app.add_option("--lr", arguments.lr, "of a sweep: learning rate at its highest [2e-4]");
  app.add_option("--batch-size", arguments.batch_size, "of a sweep: examples in a batch [32]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--limit", arguments.limit, "of a sweep: train on so many examples [all]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_flag("--resume", arguments.resume, "go on with the sweep in --out");
}

}  // namespace lathe::cli

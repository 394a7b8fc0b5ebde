#pragma once

#include <string>

#include "lathe/cli/quantize_arguments.h"

namespace lathe::cli {

/// What `lathe quantize --sweep` takes besides the model and the ranges.
struct SweepArguments {
  std::string sweep;  ///< empty: no sweep
  std::string data;
  std::int64_t epochs = 1;  ///< of training after rounding; 0: none
  double lr = 2e-4;
  std::int64_t batch_size = 32;
  std::int64_t limit = 0;  ///< examples to train on; 0: all
  bool resume = false;
};
void add_sweep_options(CLI::App& app, SweepArguments& arguments);

/// Rounds the model to one format after another, measures it, trains it on, measures it again.
/// `out` then holds results.json, table.md and sweep.svg. What is done is kept: a sweep that was
/// interrupted goes on where it was.
int run_sweep(const std::string& model, const QuantizeArguments& quantize,
              const SweepArguments& sweep, const std::string& out, bool force,
              const Settings& settings);

}  // namespace lathe::cli

#pragma once

#include <string>

#include "lathe/cli/flags.h"
#include "lathe/cli/settings.h"
#include "lathe/experiment/bench/bench_result.h"
#include "lathe/experiment/bench/time_graph.h"

namespace lathe::cli {

/// What every bench understands.
struct BenchArguments {
  experiment::bench::Repeats repeats = {};
  std::string out;  ///< a chart, an .svg
};
void add_bench_options(Flags flags, BenchArguments& arguments);

/// Fails unless the path is empty or ends in .svg.
void check_picture(const std::string& flag, const std::string& path);

/// Progress on standard error where somebody watches, and the wish to stop.
experiment::Callbacks bench_callbacks(const Settings& settings);

/// The result as a table or as JSON, and its chart where one is asked for.
void print_bench(const experiment::bench::Result& result, const BenchArguments& arguments,
                 const Settings& settings);

}  // namespace lathe::cli

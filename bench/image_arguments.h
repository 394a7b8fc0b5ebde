#pragma once

// What benches of networks that see images share: their command line, the numbers that stand for
// images, and a line for each step of a plan.

#include <fmt/core.h>

#include <cstdlib>
#include <span>
#include <string>

#include "bench/rounds.h"
#include "lathe/core/error.h"
#include "lathe/engine/executor.h"

namespace lathe::bench {

/// MODEL BATCH [--threads N] [--seconds S | --rounds N] [--warm-up S] [--each] [--steps]
/// [--device D] [--precision P] [--plain-convolutions], and what a bench adds.
struct ImageArguments {
  std::string model;
  std::int64_t batch = 1;
  int threads = 2;
  bool prints_steps = false;
  RoundOptions rounds;
  engine::ExecutionOptions options;
};

/// `take_own(options, word)` takes the words, `own`, that one bench alone knows.
template <typename Take>
ImageArguments read_image_arguments(int argc, char** argv, const char* bench, const char* own,
                                    Take take_own) {
  if (argc < 3)
    fail(
        "usage: {} BATCH [--threads N] [--seconds S | --rounds N] [--warm-up S] [--each] [--steps] "
        "[--device D] [--precision P] [--plain-convolutions]{}",
        bench, own);
  ImageArguments arguments{
      .model = argv[1], .batch = std::atoll(argv[2]), .rounds = {}, .options = {}};
  if (arguments.batch < 1) fail("{}: expected a number of images, at least 1", argv[2]);
  for (int i = 3; i < argc; ++i) {
    if (arguments.rounds.take(argc, argv, i)) continue;
    const std::string word = argv[i];
    if (word == "--steps")
      arguments.prints_steps = true;
    else if (word == "--plain-convolutions")
      arguments.options.plain_convolutions = true;
    else if (word == "--threads" && i + 1 < argc)
      arguments.threads = std::atoi(argv[++i]);
    else if (word == "--device" && i + 1 < argc)
      arguments.options.device = argv[++i];
    else if (word == "--precision" && i + 1 < argc)
      arguments.options.precision = engine::parse_precision(argv[++i]);
    else if (!take_own(arguments.options, word))
      fail("{}: unknown, or a value is missing", word);
  }
  return arguments;
}

/// The same numbers that the rivals' scripts make up.
inline void make_up(std::span<float> images) {
  for (std::size_t i = 0; i < images.size(); ++i)
    images[i] = static_cast<float>(i * 7919 % 1000) / 500.0f - 1.0f;
}

/// The milliseconds of a round that each step took, of `rounds` that were timed.
inline void print_steps(const engine::PlanReport& report, int rounds) {
  for (const engine::PlannedStep& step : report.steps) {
    const double gflops =
        static_cast<double>(step.flops.evaluate(report.last_sizes)) * rounds / step.seconds / 1e9;
    fmt::print(stderr, "{:>3} {:<36} {:<60} {:>9.3f} ms {:>7.1f} GFLOP/s a thread  {}\n",
               step.stage, kernel_text(step), step.name, step.seconds * 1e3 / rounds, gflops,
               step.choice.reason);
  }
}

}  // namespace lathe::bench

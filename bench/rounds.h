#pragma once

// Rounds of one kind of work, each timed by itself.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/race.h"

namespace lathe::bench {

struct RoundOptions {
  /// Rounds that are not timed come first for so long: cores that slept, threads that were not yet
  /// one on each core and caches that held something else are not what a round is asked about.
  double warm_up = 0.3;
  double seconds = 3;  ///< of timed rounds, at least three
  int rounds = 0;      ///< if not 0, as many instead
  bool prints_each = false;

  /// Takes an option of the command line, argv[i] and its value, and says whether it was one.
  bool take(int argc, char** argv, int& i) {
    const std::string word = argv[i];
    if (word == "--each") return prints_each = true;
    if (i + 1 >= argc) return false;
    if (word == "--warm-up") return warm_up = std::atof(argv[++i]), true;
    if (word == "--seconds") return seconds = std::atof(argv[++i]), true;
    if (word == "--rounds") return rounds = std::atoi(argv[++i]), true;
    return false;
  }
};

/// What `--steps` times, behind the rounds that count: a model of milliseconds often, one of
/// seconds three times.
inline constexpr RoundOptions kRoundsOfSteps{.warm_up = 0, .seconds = 0.5};

struct RoundTimes {
  std::vector<double> seconds;
  double total = 0;
  double best_cpu = 1e30;  ///< of the calling thread

  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double median() const {
    std::vector<double> sorted = seconds;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }
};

template <typename Work>
RoundTimes time_rounds(const RoundOptions& options, Work work) {
  const auto once = [&] {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (double spent = 0; spent < options.warm_up;) {
    const double seconds = once();
    if (options.prints_each) fmt::print(stderr, "{:.2f}* ", 1e3 * seconds);
    spent += seconds;
  }
  RoundTimes times;
  const auto is_done = [&] {
    const auto count = static_cast<int>(times.seconds.size());
    return options.rounds > 0 ? count >= options.rounds
                              : count >= 3 && times.total >= options.seconds;
  };
  while (!is_done()) {
    const double cpu = thread_seconds();
    times.seconds.push_back(once());
    times.best_cpu = std::min(times.best_cpu, thread_seconds() - cpu);
    times.total += times.seconds.back();
    if (options.prints_each) fmt::print(stderr, "{:.2f} ", 1e3 * times.seconds.back());
  }
  if (options.prints_each) fmt::print(stderr, "ms (* not counted)\n");
  return times;
}

}  // namespace lathe::bench

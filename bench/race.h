#pragma once

// Several ways to do the same, timed against each other on one thread.

#include <ctime>
#include <functional>
#include <random>
#include <vector>

namespace lathe::bench {

inline std::vector<float> random_floats(std::int64_t count) {
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

/// The thread's own time: what others take of the processor is not counted.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The seconds that one call of each contender took in each round. They take turns in windows of so
/// many seconds, because the clock of a shared machine drifts by more than they differ.
inline std::vector<std::vector<double>> race(const std::vector<std::function<void()>>& contenders,
                                             int rounds, double window) {
  const auto seconds = [](const std::function<void()>& body, int calls) {
    const double start = thread_seconds();
    for (int i = 0; i < calls; ++i) body();
    return thread_seconds() - start;
  };
  std::vector<int> calls;
  for (const auto& body : contenders) {
    body();
    int count = 1;
    while (seconds(body, count) < window) count *= 2;
    calls.push_back(count);
  }
  std::vector<std::vector<double>> taken(contenders.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < contenders.size(); ++i)
      taken[i].push_back(seconds(contenders[i], calls[i]) / calls[i]);
  return taken;
}

}  // namespace lathe::bench

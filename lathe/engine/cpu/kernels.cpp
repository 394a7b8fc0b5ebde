#include "lathe/engine/cpu/kernels.h"

#include <algorithm>
#include <chrono>

namespace lathe::engine {

namespace avx512 {
extern const Kernels table;
}
namespace avx2 {
extern const Kernels table;
}
namespace plain {
extern const Kernels table;
}

const Kernels& kernels(Isa isa) {
  return choose(isa, plain::table, avx2::table, avx512::table);
}

double fma_peak(Isa isa, double seconds) {
  using Clock = std::chrono::steady_clock;
  const Kernels& table = kernels(isa);
  const auto time = [&](std::int64_t rounds) {
    const auto start = Clock::now();
    const double operations = table.fma_burst(rounds);
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    return std::pair(operations, std::max(elapsed.count(), 1e-9));
  };
  // A window of a few milliseconds is long beside the clock and short beside a time slice.
  constexpr double kWindow = 0.004;
  std::int64_t rounds = 1000;
  while (time(rounds).second < kWindow) rounds *= 2;
  double best = 0;
  double spent = 0;
  do {
    const auto [operations, elapsed] = time(rounds);
    best = std::max(best, operations / elapsed);
    spent += elapsed;
  } while (spent < seconds);
  return best * 1e-9;
}

}  // namespace lathe::engine

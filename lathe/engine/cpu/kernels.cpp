#include "lathe/engine/cpu/kernels.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "lathe/core/error.h"

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

namespace {
constexpr std::array kIsas = {Isa::Plain, Isa::Avx2, Isa::Avx512};
}

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::Plain:
      return "plain";
    case Isa::Avx2:
      return "avx2";
    case Isa::Avx512:
      return "avx512";
  }
  check(false, "isa to be an enumerator");
  return {};
}

std::optional<Isa> parse_isa(std::string_view text) {
  for (const Isa isa : kIsas)
    if (name(isa) == text) return isa;
  return std::nullopt;
}

bool is_supported(Isa isa) {
  // The builtin reads cpuid and, for the wide registers, asks xgetbv whether the system saves them.
  switch (isa) {
    case Isa::Plain:
      return true;
    case Isa::Avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::Avx512:
      return is_supported(Isa::Avx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512dq");
  }
  return false;
}

Isa best_isa() {
  Isa best = Isa::Plain;
  for (const Isa isa : kIsas)
    if (is_supported(isa)) best = isa;
  return best;
}

const Kernels& kernels(Isa isa) {
  check(is_supported(isa), "the instruction set to be one this processor has");
  switch (isa) {
    case Isa::Plain:
      return plain::table;
    case Isa::Avx2:
      return avx2::table;
    case Isa::Avx512:
      return avx512::table;
  }
  check(false, "isa to be an enumerator");
  return plain::table;
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

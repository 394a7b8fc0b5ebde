#include "lathe/core/isa.h"

#include <array>

#include "lathe/core/error.h"

namespace lathe {

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

void require(Isa isa) {
  check(is_supported(isa), "the instruction set to be one this processor has");
}

}  // namespace lathe

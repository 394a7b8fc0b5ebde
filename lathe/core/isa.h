#pragma once

#include <optional>
#include <string_view>

namespace lathe {

/// The instruction sets vector kernels exist for, from the least to the most able.
enum class Isa { Plain, Avx2, Avx512 };

/// "plain", "avx2" or "avx512".
std::string_view name(Isa isa);
std::optional<Isa> parse_isa(std::string_view text);
/// Whether this processor and its operating system can run the path.
bool is_supported(Isa isa);
/// The most able path that is supported here.
Isa best_isa();
/// Fails unless the processor has it.
void require(Isa isa);

/// What belongs to an instruction set that this processor must have, such as its table of kernels.
template <typename T>
const T& choose(Isa isa, const T& plain, const T& avx2, const T& avx512) {
  require(isa);
  return isa == Isa::Avx512 ? avx512 : isa == Isa::Avx2 ? avx2 : plain;
}

}  // namespace lathe

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

}  // namespace lathe

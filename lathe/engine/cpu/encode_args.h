#pragma once

#include <optional>

#include "lathe/core/number_format.h"
#include "lathe/engine/cpu/code_table.h"

namespace lathe::engine {

/// What the kernels need to know of a format to encode rows of so many columns; operands, and
/// scales that are given, are left open. Nothing where it rounds otherwise than the kernels do.
std::optional<EncodeArgs> encode_args(const NumberFormat& format, std::int64_t columns);

}  // namespace lathe::engine

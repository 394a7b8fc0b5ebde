#pragma once

#include <cstdint>

#include "lathe/core/isa.h"
#include "lathe/core/number_format.h"
#include "lathe/core/thread_pool.h"

namespace lathe::numerics {

/// Rows of codes and their scales as an EncodedMatrix has them, in somebody else's memory.
struct PackedRows {
  std::int64_t rows = 0, columns = 0;
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* scales = nullptr;
};

/// Whether a format's numbers are signed bytes in blocks of a row that share a power of two, as
/// those of `mxint:8`.
bool can_unpack(const NumberFormat& format);

/// The numbers of rows in a format that can be unpacked, as `decode` gives them; bfloat16 holds
/// them exactly. `pool` may be null. Large results go past the caches.
void unpack(const NumberFormat& format, const PackedRows& rows, float* y,
            ThreadPool* pool = nullptr, Isa isa = best_isa());
void unpack(const NumberFormat& format, const PackedRows& rows, std::uint16_t* y,
            ThreadPool* pool = nullptr, Isa isa = best_isa());

}  // namespace lathe::numerics

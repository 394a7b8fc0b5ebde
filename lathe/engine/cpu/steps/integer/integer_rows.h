#pragma once

#include <cstdint>
#include <optional>

#include "lathe/core/type.h"

/// What the CPU's integer steps share: rows of integers of any storage, worked on in 64 bits.
namespace lathe::engine {

/// The rows and width of an integer value whose last axis is constant; nullopt otherwise.
struct IntegerRows {
  Size rows;
  std::int64_t width = 0;
  DType dtype = DType::I8;
};
std::optional<IntegerRows> integer_rows(const Type& type);

/// Element `index` of a run of integers.
std::int64_t integer_at(DType dtype, const std::byte* from, std::int64_t index);
/// Copies a run of integers to 64 bits, and back to a storage that holds them.
void widen(DType dtype, const std::byte* from, std::int64_t count, std::int64_t* to);
void narrow(DType dtype, const std::int64_t* from, std::int64_t count, std::byte* to);
/// Copies a run of 8- or 16-bit integers to 16 bits, and zeros behind it up to `padded`.
void to_shorts(DType dtype, const std::byte* from, std::int64_t count, std::int64_t padded,
               std::int16_t* to);
/// `count` rounded up to what the kernels of products of 16-bit integers take.
std::int64_t padded_depth(std::int64_t count);

}  // namespace lathe::engine

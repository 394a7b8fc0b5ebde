#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "lathe/core/dtype.h"

namespace lathe::io {

/// An element type of the safetensors format, in its order of alignment, which orders the data too.
enum class StoredType : std::uint8_t {
  Bool,
  F4,
  F6_E2M3,
  F6_E3M2,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  F8_E4M3Fnuz,
  F8_E5M2Fnuz,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64,
};

/// The name in the file: "F32", "BOOL", "F8_E4M3FNUZ".
std::string_view name(StoredType type);
std::optional<StoredType> parse_stored_type(std::string_view text);
/// Bits of one element: 4, 6 or a multiple of 8.
int bits_of(StoredType type);
/// The tensor dtype with the same elements, or nothing where we compute with none such.
std::optional<DType> dtype_of(StoredType type);
StoredType stored_type_of(DType dtype);

/// Bytes that elements of `type` in shape `dims` take; a UserError when they overflow 64 bits or
/// end inside a byte.
std::uint64_t num_stored_bytes(StoredType type, std::span<const std::int64_t> dims);

}  // namespace lathe::io

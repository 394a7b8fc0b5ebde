#include "lathe/io/stored_type.h"

#include <array>

#include "lathe/core/error.h"

namespace lathe::io {
namespace {

struct Entry {
  std::string_view name;
  int bits;
  std::optional<DType> dtype;
};

// Indexed by StoredType.
constexpr std::array<Entry, 22> kEntries{{
    {"BOOL", 8, DType::Bool},
    {"F4", 4, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
    {"U8", 8, DType::U8},
    {"I8", 8, DType::I8},
    {"F8_E5M2", 8, std::nullopt},
    {"F8_E4M3", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},
    {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt},
    {"I16", 16, DType::I16},
    {"U16", 16, std::nullopt},
    {"F16", 16, DType::F16},
    {"BF16", 16, DType::BF16},
    {"I32", 32, DType::I32},
    {"U32", 32, std::nullopt},
    {"F32", 32, DType::F32},
    {"C64", 64, std::nullopt},
    {"F64", 64, DType::F64},
    {"I64", 64, DType::I64},
    {"U64", 64, std::nullopt},
}};

const Entry& entry(StoredType type) {
  return kEntries.at(static_cast<std::size_t>(type));
}

}  // namespace

std::string_view name(StoredType type) {
  return entry(type).name;
}
int bits_of(StoredType type) {
  return entry(type).bits;
}
std::optional<DType> dtype_of(StoredType type) {
  return entry(type).dtype;
}

std::optional<StoredType> parse_stored_type(std::string_view text) {
  for (std::size_t i = 0; i < kEntries.size(); ++i)
    if (kEntries[i].name == text) return static_cast<StoredType>(i);
  return std::nullopt;
}

StoredType stored_type_of(DType dtype) {
  for (std::size_t i = 0; i < kEntries.size(); ++i)
    if (kEntries[i].dtype == dtype) return static_cast<StoredType>(i);
  throw InternalError("every dtype to have a stored type", std::source_location::current());
}

std::uint64_t num_stored_bytes(StoredType type, std::span<const std::int64_t> dims) {
  std::int64_t num_bits = bits_of(type);
  // The count is checked before the width is applied, so that a zero size cannot hide an overflow.
  std::int64_t count = 1;
  for (const std::int64_t dim : dims)
    if (__builtin_mul_overflow(count, dim, &count))
      fail("shape [{}] has more elements than 64 bits can count", fmt::join(dims, ","));
  if (__builtin_mul_overflow(count, num_bits, &num_bits))
    fail("shape [{}] of {} has more bits than 64 bits can count", fmt::join(dims, ","), name(type));
  if (num_bits % 8 != 0)
    fail("shape [{}] of {} ends inside a byte: {} bits, expected a multiple of 8",
         fmt::join(dims, ","), name(type), num_bits);
  return static_cast<std::uint64_t>(num_bits) / 8;
}

}  // namespace lathe::io

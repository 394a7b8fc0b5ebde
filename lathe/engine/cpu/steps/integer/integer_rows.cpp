#include "lathe/engine/cpu/steps/integer/integer_rows.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/engine/cpu/kernel_table.h"

namespace lathe::engine {
namespace {

// Calls `use` with a null pointer of the element type.
template <typename Use>
void with_element(DType dtype, const Use& use) {
  switch (dtype) {
    case DType::I8:
      return use(static_cast<std::int8_t*>(nullptr));
    case DType::I16:
      return use(static_cast<std::int16_t*>(nullptr));
    case DType::I32:
      return use(static_cast<std::int32_t*>(nullptr));
    case DType::I64:
      return use(static_cast<std::int64_t*>(nullptr));
    default:
      check(false, "a step of signed integers to be made for them alone");
  }
}

bool is_signed_integer(DType dtype) {
  return dtype == DType::I8 || dtype == DType::I16 || dtype == DType::I32 || dtype == DType::I64;
}

}  // namespace

std::optional<IntegerRows> integer_rows(const Type& type) {
  if (!is_signed_integer(type.dtype) || type.shape.empty() || !type.shape.back().is_constant())
    return std::nullopt;
  IntegerRows result{Size(1), type.shape.back().constant(), type.dtype};
  if (result.width == 0) return std::nullopt;
  for (std::size_t axis = 0; axis + 1 < type.rank(); ++axis) result.rows *= type.shape[axis];
  return result;
}

std::int64_t integer_at(DType dtype, const std::byte* from, std::int64_t index) {
  std::int64_t value = 0;
  widen(dtype, from + index * size_of(dtype), 1, &value);
  return value;
}

void widen(DType dtype, const std::byte* from, std::int64_t count, std::int64_t* to) {
  with_element(dtype, [&]<typename Element>(Element*) {
    const auto* const source = reinterpret_cast<const Element*>(from);
    for (std::int64_t i = 0; i < count; ++i) to[i] = source[i];
  });
}

void narrow(DType dtype, const std::int64_t* from, std::int64_t count, std::byte* to) {
  with_element(dtype, [&]<typename Element>(Element*) {
    auto* const target = reinterpret_cast<Element*>(to);
    for (std::int64_t i = 0; i < count; ++i) target[i] = static_cast<Element>(from[i]);
  });
}

void to_shorts(DType dtype, const std::byte* from, std::int64_t count, std::int64_t padded,
               std::int16_t* to) {
  if (dtype == DType::I16) {
    std::copy_n(reinterpret_cast<const std::int16_t*>(from), count, to);
  } else {
    check(dtype == DType::I8, "integers of 8 or 16 bits");
    const auto* const source = reinterpret_cast<const std::int8_t*>(from);
    for (std::int64_t i = 0; i < count; ++i) to[i] = source[i];
  }
  std::fill(to + count, to + padded, std::int16_t{0});
}

std::int64_t padded_depth(std::int64_t count) {
  return (count + kIntegerDepth - 1) / kIntegerDepth * kIntegerDepth;
}

}  // namespace lathe::engine

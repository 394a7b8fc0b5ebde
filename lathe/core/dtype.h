#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lathe {

/// How an element is stored. What number it stands for may be refined by a logical number format.
enum class DType : std::uint8_t { F64, F32, F16, BF16, I64, I32, I16, I8, U8, Bool };

/// The name used in graph text: "f32", "i64", "bool".
std::string_view name(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);
/// Bytes of one element.
std::int64_t size_of(DType dtype);
bool is_floating(DType dtype);

/// The dtype of a C++ element type: dtype_of<float>() is F32.
template <typename T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<double>() {
  return DType::F64;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::F32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::I64;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::I32;
}
template <>
constexpr DType dtype_of<std::int16_t>() {
  return DType::I16;
}
template <>
constexpr DType dtype_of<std::int8_t>() {
  return DType::I8;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::U8;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::Bool;
}

}  // namespace lathe

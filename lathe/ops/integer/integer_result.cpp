#include "lathe/ops/integer/integer_result.h"

#include <array>

namespace lathe::ops {
namespace {

using numerics::IntegerRange;
using numerics::IntegerRounding;

constexpr std::array<std::string_view, 3> kRoundings{"nearest_even", "floor", "half_up"};

template <typename Element>
void store(Tensor& tensor, std::span<const std::int64_t> values) {
  const std::span<Element> elements = tensor.mutable_data<Element>();
  check(elements.size() == values.size(), "an integer for each element");
  for (std::size_t i = 0; i < values.size(); ++i) {
    elements[i] = static_cast<Element>(values[i]);
    check(elements[i] == values[i], "integers that fit their tensor");
  }
}

}  // namespace

std::vector<AttributeSpec> with_integer_result(std::vector<AttributeSpec> own) {
  own.push_back({.name = kWidth,
                 .default_value = std::int64_t{8},
                 .summary = "bits of a result",
                 .required = true});
  own.push_back(
      {.name = kSigned, .default_value = true, .summary = "whether results may be negative"});
  own.push_back({.name = kSymmetric,
                 .default_value = false,
                 .summary = "whether the most negative result is left out"});
  own.push_back(
      {.name = kScale,
       .default_value = std::vector<double>{},
       .summary = "what 1 is worth: one number, or one for each element of the last axis"});
  return own;
}

AttributeSpec rounding_attribute() {
  return {.name = kRounding,
          .default_value = std::string(kRoundings[0]),
          .summary = "\"nearest_even\", \"floor\" or \"half_up\""};
}

std::string_view name(IntegerRounding rounding) {
  return kRoundings[static_cast<std::size_t>(rounding)];
}

IntegerRounding integer_rounding(const AttributeReader& attributes) {
  const std::string& text = attributes.text(kRounding);
  for (std::size_t i = 0; i < kRoundings.size(); ++i)
    if (kRoundings[i] == text) return static_cast<IntegerRounding>(i);
  throw unknown_name("rounding", text, {kRoundings.begin(), kRoundings.end()});
}

IntegerRange integer_range(const AttributeReader& attributes) {
  const IntegerRange range{.width = static_cast<int>(attributes.integer(kWidth)),
                           .is_signed = attributes.flag(kSigned),
                           .is_symmetric = attributes.flag(kSymmetric)};
  const int lowest = range.is_signed ? 2 : 1;
  const int highest = range.is_signed ? 64 : 63;
  if (attributes.integer(kWidth) < lowest || attributes.integer(kWidth) > highest)
    fail("width {} must be {} to {}", attributes.integer(kWidth), lowest, highest);
  if (range.is_symmetric && !range.is_signed) fail("symmetric results must be signed");
  return range;
}

Attributes to_attributes(const IntegerRange& range, const std::vector<double>& scale) {
  Attributes attributes{{kWidth, std::int64_t{range.width}}, {kScale, scale}};
  if (!range.is_signed) attributes[kSigned] = false;
  if (range.is_symmetric) attributes[kSymmetric] = true;
  return attributes;
}

DType storage_of(const IntegerRange& range) {
  const int bits = range.width + (range.is_signed ? 0 : 1);
  return bits <= 8 ? DType::I8 : bits <= 16 ? DType::I16 : bits <= 32 ? DType::I32 : DType::I64;
}

void write_integers(Tensor& tensor, std::span<const std::int64_t> values) {
  switch (tensor.dtype()) {
    case DType::I8:
      return store<std::int8_t>(tensor, values);
    case DType::I16:
      return store<std::int16_t>(tensor, values);
    case DType::I32:
      return store<std::int32_t>(tensor, values);
    case DType::I64:
      return store<std::int64_t>(tensor, values);
    default:
      check(false, "a tensor of signed integers");
  }
}

int shift_attribute(const AttributeReader& attributes, std::string_view attribute) {
  const std::int64_t shift = attributes.integer(attribute);
  if (shift < -62 || shift > 62) fail("{} {} must be -62 to 62", attribute, shift);
  return static_cast<int>(shift);
}

std::int64_t multiplier_attribute(const AttributeReader& attributes, std::string_view attribute) {
  const std::int64_t multiplier = attributes.integer(attribute);
  if (multiplier < 0 || multiplier > INT32_MAX)
    fail("{} {} must be 0 to {}", attribute, multiplier, INT32_MAX);
  return multiplier;
}

}  // namespace lathe::ops

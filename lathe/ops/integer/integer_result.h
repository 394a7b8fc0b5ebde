#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lathe/core/op.h"
#include "lathe/numerics/integer/requant.h"

/// What the ops of integer graphs share (docs/integer.md): the attributes that say which integers
/// come out and what one is worth.
namespace lathe::ops {

/// The names of the attributes.
inline constexpr const char* kWidth = "width";
inline constexpr const char* kSigned = "signed";
inline constexpr const char* kSymmetric = "symmetric";
inline constexpr const char* kScale = "scale";
inline constexpr const char* kRounding = "rounding";

/// `width`, `signed`, `symmetric` and `scale`, behind an op's own.
std::vector<AttributeSpec> with_integer_result(std::vector<AttributeSpec> own);
/// The attribute `rounding`: "nearest_even", "floor" or "half_up".
AttributeSpec rounding_attribute();
std::string_view name(numerics::IntegerRounding rounding);
numerics::IntegerRounding integer_rounding(const AttributeReader& attributes);

/// The integers of a result. Fails on a width that no tensor has.
numerics::IntegerRange integer_range(const AttributeReader& attributes);
/// The attributes that say so.
Attributes to_attributes(const numerics::IntegerRange& range, const std::vector<double>& scale);

/// The narrowest dtype that holds the range.
DType storage_of(const numerics::IntegerRange& range);

/// Stores integers in row-major order; all must fit the tensor's dtype.
void write_integers(Tensor& tensor, std::span<const std::int64_t> values);

/// A shift that an op may have: 0 to 62 to either side.
int shift_attribute(const AttributeReader& attributes, std::string_view attribute);
/// A multiplier that an op may have: 0 to 2^31 - 1.
std::int64_t multiplier_attribute(const AttributeReader& attributes, std::string_view attribute);

}  // namespace lathe::ops

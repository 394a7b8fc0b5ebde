#pragma once

#include <cstdint>

#include "lathe/core/number_format.h"

namespace lathe::numerics {

/// How the bits of a code are to be read as a whole number. Formats without codes, which store
/// floats, have no layout.
enum class CodeLayout { None, Unsigned, TwosComplement };

/// What a format with codes also is, beside a NumberFormat.
class CodedElements {
 public:
  virtual ~CodedElements() = default;
  virtual CodeLayout code_layout() const = 0;
};

inline CodeLayout code_layout(const NumberFormat& format) {
  const auto* coded = dynamic_cast<const CodedElements*>(&format);
  return coded == nullptr ? CodeLayout::None : coded->code_layout();
}

/// The whole number that a pattern of `bits` bits stands for.
inline std::int64_t code_number(std::uint32_t pattern, int bits, CodeLayout layout) {
  const std::int64_t number = pattern;
  const bool is_negative = layout == CodeLayout::TwosComplement && number >> (bits - 1) != 0;
  return is_negative ? number - (std::int64_t{1} << bits) : number;
}

}  // namespace lathe::numerics

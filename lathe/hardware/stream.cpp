#include "lathe/hardware/stream.h"

#include <fmt/format.h>

namespace lathe::hardware {

std::int64_t Element::lowest() const {
  if (!is_signed) return 0;
  return width >= 64 ? INT64_MIN : -(std::int64_t{1} << (width - 1));
}

std::int64_t Element::highest() const {
  const int bits = is_signed ? width - 1 : width;
  return bits >= 63 ? INT64_MAX : (std::int64_t{1} << bits) - 1;
}

std::string Element::text() const {
  const std::string pattern = fmt::format("{}{}", is_signed ? "s" : "u", width);
  return meaning.empty() ? pattern : fmt::format("{} ({})", pattern, meaning);
}

std::string Stream::text() const {
  return fmt::format("{} x {} {}, {} a beat", vectors, size, element.text(), lanes);
}

}  // namespace lathe::hardware

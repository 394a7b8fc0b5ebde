#pragma once

#include <string_view>

namespace lathe::report {

/// How often `part` stands in a drawing.
inline std::size_t count_in(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace lathe::report

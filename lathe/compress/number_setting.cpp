#include "lathe/compress/number_setting.h"

#include <charconv>
#include <cmath>

#include "lathe/core/error.h"

namespace lathe::compress {

double number_setting(std::string_view key, std::string_view value) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number))
    fail("{}=\"{}\": expected a number", key, value);
  return number;
}

}  // namespace lathe::compress

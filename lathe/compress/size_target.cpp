#include "lathe/compress/size_target.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "lathe/core/error.h"

namespace lathe::compress {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {{"", 1},          {"B", 1},         {"kB", 1e3},
                           {"KB", 1e3},      {"MB", 1e6},      {"GB", 1e9},
                           {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};

[[noreturn]] void refuse(std::string_view text) {
  fail("a size of \"{}\": expected a factor such as 10x, or bytes such as 1.5MB or 512KiB", text);
}

}  // namespace

std::int64_t SizeTarget::bytes_for(std::int64_t original) const {
  if (bytes > 0) return bytes;
  return static_cast<std::int64_t>(std::floor(static_cast<double>(original) / factor));
}

SizeTarget parse_size_target(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) refuse(text);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit == "x") {
    if (number < 1) fail("a size of \"{}\": expected a factor of 1 or more", text);
    return {.bytes = 0, .factor = number};
  }
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    const double bytes = std::floor(number * known.bytes);
    if (!(bytes >= 1 && bytes <= 1e18)) refuse(text);
    return {.bytes = static_cast<std::int64_t>(bytes), .factor = 1};
  }
  refuse(text);
}

std::string bytes_text(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1e3) return fmt::format("{} bytes", bytes);
  if (value < 1e6) return fmt::format("{:.3g} kB", value / 1e3);
  if (value < 1e9) return fmt::format("{:.2f} MB", value / 1e6);
  return fmt::format("{:.2f} GB", value / 1e9);
}

}  // namespace lathe::compress

#pragma once

#include <string_view>

namespace lathe::compress {

/// The number that a text `key=value` gives; fails where it is none or is not finite.
double number_setting(std::string_view key, std::string_view value);

}  // namespace lathe::compress

#pragma once

#include <string>
#include <string_view>

namespace lathe {

/// Untrusted text as it may appear in a message: in double quotes, in ASCII with JSON escapes so
/// that nothing in it can drive a terminal or break the line, and shortened when it is long.
std::string quote_text(std::string_view text);

}  // namespace lathe

#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

namespace lathe::cli {

/// Writes to standard error what is said beside the result. Where that cannot be written, nothing
/// is lost that work should end for.
template <typename... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// Hands what was printed so far to whoever reads standard output. Fails where it cannot be
/// written.
inline void flush_output() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
  if (std::ferror(stdout) != 0) throw std::system_error(EIO, std::generic_category());
}

}  // namespace lathe::cli

#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lathe::cli {

/// Reads the lines of a file, or of standard input when `path` is empty or "-", in groups of at
/// most `group` lines, so that answers flow while input is still coming. Splits on \n alone.
void read_lines(const std::string& path, std::size_t group,
                const std::function<void(const std::vector<std::string>&)>& use);

}  // namespace lathe::cli

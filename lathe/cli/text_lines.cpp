#include "lathe/cli/text_lines.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

#include "lathe/cli/settings.h"
#include "lathe/core/error.h"
#include "lathe/core/interrupt.h"

namespace lathe::cli {

void read_lines(const std::string& path, std::size_t group,
                const std::function<void(const std::vector<std::string>&)>& use) {
  const bool is_standard = path.empty() || path == "-";
  std::ifstream file;
  if (!is_standard) {
    errno = 0;
    file.open(path, std::ios::binary);
    if (!file) fail("{}: cannot be read: {}", path, std::strerror(errno));
    file.peek();
    if (file.bad()) fail("{}: cannot be read: is it a directory?", path);
  }
  std::istream& stream = is_standard ? std::cin : file;
  std::vector<std::string> lines;
  // A signal that came while the model was loaded would not end the wait for a first line.
  if (is_interrupted()) throw Interrupted();
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
    // A terminal or pipe that pauses should get its answers now, not when a group is full.
    if (lines.size() < group && stream.rdbuf()->in_avail() > 0) continue;
    use(lines);
    lines.clear();
    if (is_interrupted()) throw Interrupted();
  }
  // A signal ends the wait for a terminal or pipe as if the input had ended.
  if (is_interrupted()) throw Interrupted();
  if (!lines.empty()) use(lines);
}

}  // namespace lathe::cli

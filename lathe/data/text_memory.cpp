#include "lathe/data/text_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace lathe::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostTexts = std::int64_t{1} << 30;
constexpr std::int64_t kShare = 8;

// The number in a file; version 2 of control groups writes "max" for none.
std::int64_t limit_in(const fs::path& file) {
  std::ifstream stream(file);
  std::int64_t limit = 0;
  return stream >> limit ? limit : kNoLimit;
}

}  // namespace

std::int64_t control_group_limit(std::string_view groups, const fs::path& root) {
  std::int64_t least = kNoLimit;
  std::istringstream lines{std::string(groups)};
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,memory:/user", "0::/user"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_second_version = controllers == ",,";
    if (!is_second_version && controllers.find(",memory,") == controllers.npos) continue;
    const fs::path top = is_second_version ? root : root / "memory";
    const char* const file = is_second_version ? "memory.max" : "memory.limit_in_bytes";
    for (fs::path group = fs::path(line.substr(second + 1)).relative_path();;
         group = group.parent_path()) {
      least = std::min(least, limit_in(top / group / file));
      if (group.empty()) break;
    }
  }
  return least;
}

std::int64_t text_memory() {
  std::ostringstream groups;
  groups << std::ifstream("/proc/self/cgroup").rdbuf();
  std::int64_t memory = control_group_limit(groups.str(), "/sys/fs/cgroup");
  const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page > 0) memory = std::min(memory, pages * page);
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    memory = std::min(memory, static_cast<std::int64_t>(limit.rlim_cur));
  return std::min(memory / kShare, kMostTexts);
}

}  // namespace lathe::data

#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace lathe::data {

/// Bytes of texts that are kept in memory: an eighth of what the process may use, 1 GB at most. The
/// rest is for the rows' labels and places, and for what is done with them.
std::int64_t text_memory();

/// The least limit on memory of the control groups that `groups`, in the form of /proc/self/cgroup,
/// names below `root`, their parents included; the largest number where there is none.
std::int64_t control_group_limit(std::string_view groups, const std::filesystem::path& root);

}  // namespace lathe::data

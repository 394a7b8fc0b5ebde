#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lathe::report {

/// Names that belong together because they share a module path.
struct ModuleGroup {
  std::string path;   ///< what its names start with, separator included: "encoder.layer.0."
  std::string title;  ///< the path within the enclosing group: "attention"
  std::vector<std::size_t> members;  ///< indices of the names directly inside, ascending
  std::vector<ModuleGroup> groups;   ///< in the order of their first names

  /// What `name`, which starts with this group's path, is called inside the group.
  std::string_view short_name(std::string_view name) const;
};

/// Groups names such as `encoder.layer.0.attention.query` by their parts between `.` and
/// `/`, at most `max_depth` groups inside each other; the result is the group of everything.
///
/// A group has two names or more. A path that only leads to one group is joined with it, and one
/// that leads to numbered groups (`encoder.layer` before `.0`, `.1`) is no group of its own:
/// boxes around almost everything tell a reader nothing.
ModuleGroup group_by_module(std::span<const std::string> names, int max_depth);

}  // namespace lathe::report

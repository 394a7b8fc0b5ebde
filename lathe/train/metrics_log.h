#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lathe/io/file_descriptor.h"

namespace lathe::train {

/// A file of one JSON object a line, each with the `step` it tells of: what happened in a run, for
/// people and their scripts.
class MetricsLog {
 public:
  /// Opens or creates the file and drops what it says of steps after `last_step`, and a torn last
  /// line: a resumed run tells of those steps again.
  MetricsLog(std::filesystem::path path, std::int64_t last_step);

  /// Appends one line.
  void write(const nlohmann::ordered_json& line);

 private:
  std::filesystem::path path_;
  io::FileDescriptor file_;
};

}  // namespace lathe::train

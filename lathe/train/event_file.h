#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "lathe/io/file_descriptor.h"

namespace lathe::train {

/// Appends scalars to a TensorBoard event file.
///
/// A file is never reopened: a resumed run starts another one in the same directory, which
/// TensorBoard reads in the order of their names.
class EventFile {
 public:
  /// Creates `events.out.tfevents.SECONDS.HOST.PID.N`. A run that continues after `resumed_step`
  /// (0: none) makes TensorBoard forget what an earlier file says of later steps.
  EventFile(const std::filesystem::path& directory, std::int64_t resumed_step);

  void write(std::int64_t step, const std::map<std::string, double>& scalars);
  const std::filesystem::path& path() const { return path_; }

 private:
  void append(const std::string& event);

  std::filesystem::path path_;
  io::FileDescriptor file_;
};

/// CRC-32C (Castagnoli) as event files store it: rotated and offset, so that the checksum of data
/// that holds checksums is not degenerate.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace lathe::train

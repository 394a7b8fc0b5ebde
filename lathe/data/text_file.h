#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lathe::data {

/// No text file is read past this size, decompressed: it bounds what a small hostile .zst can cost.
inline constexpr std::int64_t kMostTextBytes = std::int64_t{8} << 30;

/// Reads a whole file; one whose name ends in ".zst" is decompressed. Errors name the file.
std::string read_text_file(const std::filesystem::path& path,
                           std::int64_t most_bytes = kMostTextBytes);

}  // namespace lathe::data

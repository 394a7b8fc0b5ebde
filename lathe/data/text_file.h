#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::data {

/// No text file is read past this size, decompressed: it bounds what a small hostile .zst
/// or .gz can cost.
inline constexpr std::int64_t kMostTextBytes = std::int64_t{8} << 30;

/// Reads a whole file; one whose name ends in ".zst" or ".gz" is decompressed. Errors name the
/// file.
std::string read_text_file(const std::filesystem::path& path,
                           std::int64_t most_bytes = kMostTextBytes);

/// A text as the bytes of a ".zst" file, as few as zstd can make of it.
std::string compressed_text(std::string_view text);
/// The text that such bytes stand for; fails where they are no sound zstd file.
std::string decompressed_text(std::string_view bytes, std::int64_t most_bytes = kMostTextBytes);

/// The file of that name in a directory, or the same compressed: NAME, NAME.zst or NAME.gz.
std::optional<std::filesystem::path> find_file(const std::filesystem::path& directory,
                                               const std::string& name);

}  // namespace lathe::data

#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// Texts of a model directory, which may lie there compressed: `graph.txt` or `graph.txt.zst`.
namespace lathe::io {

inline constexpr const char* kGraphName = "graph.txt";
inline constexpr const char* kCompressedEnding = ".zst";

/// Whether there is something by that path; where nobody may look there is nothing.
bool is_there(const std::filesystem::path& path);

/// Whether the directory has the text, in one way or the other.
bool has_text(const std::filesystem::path& directory, const std::string& name);
/// Reads a text; the plain one where both are there.
std::string read_text(const std::filesystem::path& directory, const std::string& name);
/// Writes a text, whole or not at all; compressed where that is asked for and
/// worth it.
void write_text(const std::filesystem::path& directory, const std::string& name,
                std::string_view text, bool is_compressed);

}  // namespace lathe::io

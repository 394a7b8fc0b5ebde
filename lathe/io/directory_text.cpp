#include "lathe/io/directory_text.h"

#include "lathe/core/error.h"
#include "lathe/data/text_file.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/directory_access.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;

// A graph's text or a vocabulary is a few megabytes; a hostile file of a few bytes could claim any.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;

// Of a shorter text there is nothing to be gained, and people can read it.
constexpr std::size_t kLeastCompressed = 512;

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool has_text(const fs::path& directory, const std::string& name) {
  return is_there(directory / name) || is_there(directory / (name + kCompressedEnding));
}

std::string read_text(const fs::path& directory, const std::string& name) {
  if (is_there(directory / name) || !has_text(directory, name))
    return std::string(map_beneath(directory, name)->text());
  const fs::path path = directory / (name + kCompressedEnding);
  const auto file = map_beneath(directory, name + kCompressedEnding);
  return with_place(path.string(),
                    [&] { return data::decompressed_text(file->text(), kMostBytes); });
}

void write_text(const fs::path& directory, const std::string& name, std::string_view text,
                bool is_compressed) {
  if (is_compressed && text.size() >= kLeastCompressed)
    if (const std::string bytes = data::compressed_text(text); bytes.size() < text.size())
      return write_atomically(directory / (name + kCompressedEnding), bytes);
  write_atomically(directory / name, text);
}

}  // namespace lathe::io

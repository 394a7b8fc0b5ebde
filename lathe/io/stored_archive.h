#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lathe/io/mapped_file.h"

namespace lathe::io {

/// A zip archive open for reading whose files lie in it as they are, uncompressed. Cheap to copy.
///
/// Sizes and places are checked against the archive before anything is looked at. An entry that is
/// compressed or encrypted is refused when it is asked for.
class StoredArchive {
 public:
  explicit StoredArchive(std::shared_ptr<const MappedFile> file);

  /// Whether a file begins as a zip archive does.
  static bool recognizes(const MappedFile& file);

  const MappedFile& file() const { return *file_; }
  bool has(std::string_view name) const { return entries_->contains(name); }
  /// The bytes of an entry, valid while this archive or a copy of it lives.
  std::span<const std::byte> bytes(std::string_view name) const;
  /// The one entry whose name ends so; fails where there is none, or another.
  const std::string& only_entry(std::string_view ending) const;

 private:
  struct Entry {
    std::uint64_t offset = 0;  ///< of its local header
    std::uint64_t size = 0;
    bool is_plain = false;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  Entries read_entries() const;

  // Shared so that tensors can view the file and copies are cheap; nothing changes once it is read.
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const Entries> entries_;
};

}  // namespace lathe::io

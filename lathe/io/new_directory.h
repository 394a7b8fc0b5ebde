#pragma once

#include <filesystem>

namespace lathe::io {

/// A directory that appears under its name whole or not at all: it is filled aside, in
/// `NAME.tmp-PID`, and renamed by `commit`. Without `commit`, and on any error, what was written is
/// removed and the target untouched.
class NewDirectory {
 public:
  enum class Existing { Refuse, Replace };

  /// Makes the directory to fill, and the target's parents. With `Replace` a target that exists
  /// makes way in `commit`, and stays as it was if that fails.
  explicit NewDirectory(const std::filesystem::path& target, Existing existing = Existing::Refuse);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  /// Where to write.
  const std::filesystem::path& path() const { return aside_; }
  /// Makes the names durable and puts the directory in its place.
  void commit();

 private:
  std::filesystem::path target_, aside_;
  Existing existing_;
};

/// Renames the complete directory `fresh` to `directory`. One that is there makes way, and comes
/// back if that fails.
void replace_directory(const std::filesystem::path& fresh, const std::filesystem::path& directory);

/// Removes a directory, out of sight first: one that is half removed must not pass for whole.
void remove_directory(const std::filesystem::path& directory);

}  // namespace lathe::io

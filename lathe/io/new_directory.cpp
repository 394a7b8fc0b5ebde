#include "lathe/io/new_directory.h"

#include <unistd.h>

#include <utility>

#include "lathe/core/error.h"
#include "lathe/io/atomic_file.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// A name beside a directory that no other process uses.
fs::path beside(const fs::path& directory, const char* purpose) {
  fs::path path = directory;
  path += fmt::format(".{}-{}", purpose, ::getpid());
  return path;
}

// "new/" means "new": with an empty last part, the parent would be the directory itself.
fs::path without_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

void move(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) fail("{}: cannot be renamed from {}: {}", to.string(), from.string(), error.message());
}

}  // namespace

NewDirectory::NewDirectory(const fs::path& target, Existing existing)
    : target_(without_slash(target)), existing_(existing) {
  std::error_code error;
  if (existing == Existing::Refuse && fs::exists(target_, error))
    fail("{}: exists already", target_.string());
  const fs::path parent = parent_of(target_);
  fs::create_directories(parent, error);
  if (error) fail("{}: cannot be created: {}", parent.string(), error.message());
  aside_ = beside(target_, "tmp");
  const bool is_new = fs::create_directory(aside_, error);
  if (error) fail("{}: cannot be created: {}", aside_.string(), error.message());
  if (!is_new) fail("{}: exists already: remove it", std::exchange(aside_, {}).string());
}

NewDirectory::~NewDirectory() {
  std::error_code ignored;
  if (!aside_.empty()) fs::remove_all(aside_, ignored);
}

void NewDirectory::commit() {
  sync_directory(aside_);
  if (existing_ == Existing::Replace)
    replace_directory(aside_, target_);
  else
    move(aside_, target_);
  aside_.clear();
  sync_directory(parent_of(target_));
}

void replace_directory(const fs::path& fresh, const fs::path& directory) {
  const fs::path target = without_slash(directory), old = beside(target, "trash");
  std::error_code error, ignored;
  const bool is_there = fs::exists(target, error);
  if (is_there) move(target, old);
  fs::rename(fresh, target, error);
  if (error) {
    if (is_there) fs::rename(old, target, ignored);
    fail("{}: cannot be renamed from {}: {}", target.string(), fresh.string(), error.message());
  }
  sync_directory(parent_of(target));
  if (is_there) fs::remove_all(old, ignored);
}

void remove_directory(const fs::path& directory) {
  const fs::path target = without_slash(directory), trash = beside(target, "trash");
  std::error_code error;
  fs::remove_all(trash, error);
  move(target, trash);
  fs::remove_all(trash, error);
  if (error) fail("{}: cannot be removed: {}", trash.string(), error.message());
}

}  // namespace lathe::io

#include "lathe/data/list_images.h"

#include <algorithm>
#include <set>

#include "lathe/core/error.h"
#include "lathe/data/image_file.h"

namespace lathe::data {
namespace {

namespace fs = std::filesystem;

// Folders by where they really are.
class Folders {
 public:
  void add(const fs::path& real) { all_.insert(real); }
  bool has(const fs::path& real) const { return all_.contains(real); }
  // Whether a folder is among them, or holds one of them: paths sort part by part, so what lies in
  // a folder stands behind it.
  bool has_part_of(const fs::path& real) const {
    const auto next = all_.lower_bound(real);
    return next != all_.end() &&
           std::mismatch(real.begin(), real.end(), next->begin(), next->end()).first == real.end();
  }

 private:
  std::set<fs::path> all_;
};

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    entries.push_back(*entry);
  if (error) fail("{}: cannot be listed: {}", folder.string(), error.message());
  std::ranges::sort(entries, {}, [](const fs::directory_entry& entry) -> const fs::path& {
    return entry.path();
  });
  return entries;
}

fs::path real_path(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (error) fail("{}: cannot be opened: {}", path.string(), error.message());
  return real;
}

// Links are followed when all that needs none is read, so that it is they that are refused.
class Listing {
 public:
  std::vector<fs::path> operator()(const fs::path& folder) {
    first_ = folder;
    read(folder, real_path(folder));
    for (std::size_t i = 0; i < links_.size(); ++i) follow(fs::path(links_[i]));
    std::ranges::sort(images_);
    return std::move(images_);
  }

 private:
  void read(const fs::path& folder, const fs::path& real) {
    read_.add(real);
    for (const fs::directory_entry& entry : entries_of(folder)) {
      const fs::path& path = entry.path();
      std::error_code error;
      const bool is_link = entry.is_symlink(error);
      if (entry.is_directory(error)) {
        if (is_link)
          links_.push_back(path);
        else
          read(path, real / path.filename());
      } else if (is_image_file(path)) {
        images_.push_back(path);
      } else if (error && is_link && (folder == first_ || !path.has_extension())) {
        // Of a label, or by its name a folder.
        fail("{}: cannot be opened: {}", path.string(), error.message());
      }
    }
  }

  void follow(const fs::path& link) {
    const fs::path real = real_path(link);
    if (read_.has_part_of(real))
      fail("{}: is a link to {}, of which images are read already", link.string(), real.string());
    read(link, real);
  }

  fs::path first_;
  Folders read_;
  std::vector<fs::path> links_, images_;
};

bool holds_images(const fs::path& folder, Folders& seen) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error || seen.has(real)) return false;
  seen.add(real);
  return std::ranges::any_of(entries_of(folder), [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    return entry.is_directory(ignored) ? holds_images(entry.path(), seen)
                                       : names_image(entry.path());
  });
}

}  // namespace

std::vector<fs::path> list_images(const fs::path& folder) {
  return Listing()(folder);
}

bool has_folders_of_images(const fs::path& folder) {
  Folders seen;
  std::error_code ignored;
  seen.add(fs::canonical(folder, ignored));
  return std::ranges::any_of(entries_of(folder), [&](const fs::directory_entry& entry) {
    return entry.is_directory(ignored) && holds_images(entry.path(), seen);
  });
}

}  // namespace lathe::data

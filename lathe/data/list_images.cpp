#include "lathe/data/list_images.h"

#include <set>

#include "lathe/data/image_file.h"

namespace lathe::data {
namespace {

namespace fs = std::filesystem;

// Folders by where they really are.
class Folders {
 public:
  void add(const fs::path& real) { all_.insert(real); }
  bool has(const fs::path& real) const { return all_.contains(real); }

 private:
  std::set<fs::path> all_;
};

bool holds_images(const fs::path& folder, Folders& seen) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error || seen.has(real)) return false;
  seen.add(real);
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) ? holds_images(entry->path(), seen)
                                     : names_image(entry->path()))
      return true;
  }
  return false;
}

}  // namespace

bool has_folders_of_images(const fs::path& folder) {
  Folders seen;
  std::error_code error;
  seen.add(fs::canonical(folder, error));
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && holds_images(entry->path(), seen)) return true;
  }
  return false;
}

}  // namespace lathe::data

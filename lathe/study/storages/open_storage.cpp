#include <array>
#include <utility>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/study/storages/storage.h"

namespace lathe::study {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kKindByEnding = {{
    {".db", "sqlite"},
    {".sqlite", "sqlite"},
    {".sqlite3", "sqlite"},
    {".log", "journal"},
    {".journal", "journal"},
}};

// What stands before the colon, if it looks like a scheme and not like a path.
std::string_view scheme_of(std::string_view url) {
  const std::size_t colon = url.find(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view scheme = url.substr(0, colon);
  return scheme.find('/') == std::string_view::npos ? scheme : std::string_view{};
}

}  // namespace

std::unique_ptr<Storage> open_storage(const std::string& url) {
  const Registry<StorageKind>& kinds = Registry<StorageKind>::instance();
  std::string_view scheme = scheme_of(url);
  if (scheme.empty()) {
    for (const auto& [ending, kind] : kKindByEnding)
      if (url.ends_with(ending))
        return kinds.at(kind, "storage").open(fmt::format("{}:///{}", kind, url));
    fail(
        "{}: expected a URL such as sqlite:///studies.db, or a path ending in .db, .sqlite or .log",
        url.empty() ? "empty storage name" : url);
  }
  // Python's URLs may name a driver: postgresql+psycopg2://...
  std::string plain = url;
  if (const std::size_t plus = scheme.find('+'); plus != std::string_view::npos) {
    plain = fmt::format("{}{}", scheme.substr(0, plus), url.substr(scheme.size()));
    scheme = scheme_of(plain);
  }
  return kinds.at(scheme, "storage").open(plain);
}

}  // namespace lathe::study

#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lathe/core/error.h"
#include "lathe/study/testing/postgresql_server.h"

namespace lathe::study {

/// Where tests open a storage of some kind.
struct StoragePlace {
  std::string url;
  bool is_shared = true;  ///< opening the URL twice gives the same studies
  /// Shared with copies of the place: the last one clears up.
  std::shared_ptr<const void> cleanup = {};
};

/// A new empty place for a kind of storage; nothing when this machine has none (no server).
/// Every registered kind needs a line here.
inline std::optional<StoragePlace> storage_place(std::string_view kind) {
  static std::atomic<int> count = 0;
  const auto in_folder = [&](std::string_view file) {
    const auto folder = std::filesystem::temp_directory_path() /
                        fmt::format("lathe_storage_{}_{}", getpid(), count++);
    std::filesystem::create_directories(folder);
    return StoragePlace{.url = fmt::format("{}:///{}", kind, (folder / file).string()),
                        .cleanup = {nullptr, [folder](const void*) {
                                      std::error_code ignored;
                                      std::filesystem::remove_all(folder, ignored);
                                    }}};
  };
  if (kind == "memory") return StoragePlace{.url = "memory:", .is_shared = false};
  if (kind == "sqlite") return in_folder("studies.db");
  if (kind == "journal") return in_folder("studies.log");
  if (kind == "postgresql") {
    PostgresqlServer* server = PostgresqlServer::shared();
    if (server == nullptr) return {};
    return StoragePlace{.url = server->new_schema()};
  }
  fail("storage \"{}\": tests do not know how to open one", kind);
}

}  // namespace lathe::study

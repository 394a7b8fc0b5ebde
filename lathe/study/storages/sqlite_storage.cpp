// `sqlite:///FILE`: one file in Optuna's schema.
#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/study/storages/sql_storage.h"
#include "lathe/study/storages/sqlite_connection.h"

namespace lathe::study {
namespace {

// sqlite:///studies.db is a file here, sqlite:////data/studies.db one from the root.
std::unique_ptr<Storage> open_sqlite(const std::string& url) {
  constexpr std::string_view kPrefix = "sqlite:///";
  if (!url.starts_with(kPrefix)) fail("{}: expected sqlite:///FILE", url);
  const std::string file = url.substr(kPrefix.size());
  return std::make_unique<SqlStorage>(url, [file] { return connect_sqlite(file); });
}

const Register sqlite_storage{StorageKind{
    .name = "sqlite",
    .summary = "sqlite:///FILE: one file in Optuna's schema",
    .open = open_sqlite,
}};

}  // namespace
}  // namespace lathe::study

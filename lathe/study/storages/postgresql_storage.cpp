// `postgresql://USER@HOST/DATABASE`: tables in Optuna's schema, for any number of machines.
#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/study/storages/postgresql_connection.h"
#include "lathe/study/storages/sql_storage.h"

namespace lathe::study {
namespace {

std::unique_ptr<Storage> open_postgresql(const std::string& url) {
  return std::make_unique<SqlStorage>(describe_postgresql(url),
                                      [url] { return connect_postgresql(url); });
}

const Register postgresql_storage{StorageKind{
    .name = "postgresql",
    .summary = "postgresql://USER@HOST/DATABASE: a server, for any number of machines",
    .open = open_postgresql,
}};

}  // namespace
}  // namespace lathe::study

#pragma once

#include <libpq-fe.h>

#include <string>
#include <vector>

#include "lathe/study/storages/sql_connection.h"

namespace lathe::study {

/// The values of a call as libpq wants them: texts that end with a zero, or null. Points into the
/// values, which must outlive it.
class PostgresqlValues {
 public:
  explicit PostgresqlValues(const std::vector<SqlValue>& values);
  int size() const { return static_cast<int>(pointers_.size()); }
  const char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<const char*> pointers_;
};

/// The rows of a result, numbers as numbers and the rest as text.
SqlResult read_postgresql_rows(const PGresult* result);

}  // namespace lathe::study

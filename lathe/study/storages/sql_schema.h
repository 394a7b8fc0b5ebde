#pragma once

#include "lathe/study/storages/sql_connection.h"

namespace lathe::study {

/// The newest revision of Optuna's tables, which is the one we create.
inline constexpr const char* kSchemaRevision = "v3.2.0.a";

/// Creates Optuna's tables where there are none; fails when those that are there have a revision
/// that we do not know.
///
/// Revision v3.0.0.d (Optuna 3.0 and 3.1) lacks only an index and is used as it is: it keeps its
/// revision, so that the Optuna that made it still opens it. Indexes that are missing are added
/// where we may, for without them a claim reads every trial.
void prepare_schema(SqlConnection& connection);

}  // namespace lathe::study

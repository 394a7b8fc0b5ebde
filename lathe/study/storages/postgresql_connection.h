#pragma once

#include <memory>
#include <string>

#include "lathe/study/storages/sql_connection.h"

namespace lathe::study {

/// Connects to the server that a libpq URL names; fails when it does not answer.
///
/// Statements are prepared once and travel together: a batch costs one round trip, a commit goes
/// with the last of them. A worker that is frozen in the middle of a transaction loses it after ten
/// seconds, so that it cannot keep the others waiting for ever.
std::unique_ptr<SqlConnection> connect_postgresql(const std::string& url);

/// The URL as messages show it: who, where and which database, never the password.
std::string describe_postgresql(const std::string& url);

}  // namespace lathe::study

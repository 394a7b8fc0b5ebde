#pragma once

#include <memory>
#include <string>

#include "lathe/study/storages/sql_connection.h"

namespace lathe::study {

/// Opens an SQLite file, creating it where there is none. On a local disk it keeps a write-ahead
/// log; a commit is on the disk when it returns (synchronous=FULL). A reader or writer that finds
/// the file locked waits up to a minute.
std::unique_ptr<SqlConnection> connect_sqlite(const std::string& file);

}  // namespace lathe::study

#pragma once

#include <chrono>
#include <string>

#include "lathe/study/storages/sql_connection.h"
#include "lathe/study/storages/storage.h"

namespace lathe::study {

/// What is done to a study and its workers.
struct Chaos {
  std::string kind = "sqlite";  ///< or postgresql, journal
  int workers = 8;
  int trials = 1000;
  double seconds = 0.3;  ///< that a trial takes
  std::chrono::milliseconds lease{2000};
  int kills = 100;   ///< of workers, with SIGKILL
  int freezes = 20;  ///< of workers, past their lease
  int crashes = 5;   ///< of the server, where there is one
  unsigned seed = 1;
};

inline constexpr const char* kStudyName = "chaos";

/// Works until every trial of the study is finished, and writes to the log whether each of its
/// results was accepted. Ends with an exit code.
int run_worker(const std::string& url, const Chaos& chaos, const std::string& log);

/// A statement that counts what must not be.
struct Invariant {
  const char* name;
  const char* count;
};

/// Writes the finished study of a storage without tables to a new SQLite file, for the invariants.
/// Fails when a trial's number is not its place.
void copy_to_tables(Storage& storage, const std::string& file);

/// Reads the logs of the workers into a table and prints each invariant. The number that are
/// broken.
int check_invariants(SqlConnection& connection, const std::string& folder, int num_trials);

}  // namespace lathe::study

#include "lathe/study/storages/sqlite_connection.h"

#include <sqlite3.h>
#include <sys/vfs.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <unordered_map>

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

constexpr int kBusyMilliseconds = 60'000;

const SqlDialect& sqlite_dialect() {
  static const SqlDialect dialect{
      // A transaction that writes has the file to itself: there is nothing more to lock.
      .for_update = "",
      .skip_locked = "",
      .now = "CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)",
      .any_of = "IN (SELECT value FROM json_each($1))",
      .num_tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1",
      .num_indexes = "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name = $1",
      .key = "INTEGER NOT NULL PRIMARY KEY",
      .real = "FLOAT",
      .time = "DATETIME",
      .direction = "VARCHAR(8)",
      .state = "VARCHAR(8)",
      .value_type = "VARCHAR(7)",
      .intermediate_value_type = "VARCHAR(7)",
  };
  return dialect;
}

// The log of WAL mode is shared memory, which machines that share a disk do not have in common.
bool is_on_local_disk(const std::string& file) {
  constexpr std::array<unsigned, 7> kRemote = {
      0x6969,      // NFS
      0xFF534D42,  // CIFS
      0xFE534D42,  // SMB 2
      0x517B,      // SMB
      0x65735546,  // FUSE: sshfs and the like
      0x01021997,  // 9P
      0x0BD00BD0,  // Lustre
  };
  struct statfs info {};
  if (statfs(file.c_str(), &info) != 0) return false;
  return std::ranges::find(kRemote, static_cast<unsigned>(info.f_type)) == kRemote.end();
}

// Waits for whoever holds the lock. SQLite's own waits grow to 100 ms, by which time eight workers
// leave the file idle between them; these stay short, and differ so that nobody is always late.
int wait_for_lock(void* /*unused*/, int num_waits) {
  const long pause_us = num_waits < 10 ? 500 + 100 * num_waits : 2000 + 500 * (num_waits % 7);
  // The pauses are counted rather than the time, which passes also while a process is frozen.
  if (static_cast<long>(num_waits) * pause_us > kBusyMilliseconds * 1000L) return 0;
  const timespec pause{.tv_sec = 0, .tv_nsec = pause_us * 1000};
  nanosleep(&pause, nullptr);
  return 1;
}

class SqliteConnection final : public SqlConnection {
 public:
  explicit SqliteConnection(const std::string& file);
  ~SqliteConnection() override;
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  const SqlDialect& dialect() const override { return sqlite_dialect(); }
  void begin(Access access) override {
    execute(access == Access::Write ? "BEGIN IMMEDIATE" : "BEGIN");
  }
  SqlResult execute(const std::string& text, const std::vector<SqlValue>& values) override;
  std::vector<SqlResult> run(std::span<const SqlCall> calls) override;
  void commit(std::span<const SqlCall> calls) override;
  void rollback() noexcept override;
  void reconnect() override {}

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  using Prepared = std::unique_ptr<sqlite3_stmt, Finalize>;

  void open(const std::string& file, int flags);
  Prepared prepare(const std::string& text);
  SqlResult step(sqlite3_stmt* statement, const std::vector<SqlValue>& values);
  void execute(const char* text) { execute(std::string(text), {}); }
  [[noreturn]] void give_up(int code);

  std::unique_ptr<sqlite3, Close> database_;
  std::unordered_map<const SqlStatement*, Prepared> prepared_;
  Prepared commit_;
  bool is_writable_ = true;
};

void SqliteConnection::give_up(int code) {
  switch (code & 0xFF) {
    case SQLITE_CONSTRAINT:
      if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY)
        throw SqlDuplicate{};
      break;
    case SQLITE_NOTADB:
      fail("not an SQLite file");
    case SQLITE_CORRUPT:
      fail("the file is damaged: {}", sqlite3_errmsg(database_.get()));
    case SQLITE_BUSY:
      fail("locked by another program for more than {} seconds", kBusyMilliseconds / 1000);
    case SQLITE_CANTOPEN: {
      const int error = sqlite3_system_errno(database_.get());
      fail("cannot be opened: {}", error != 0 ? std::strerror(error) : "not a file");
    }
    case SQLITE_READONLY:
      fail("cannot be written: the file or its folder is read-only");
    case SQLITE_IOERR: {
      const int error = sqlite3_system_errno(database_.get());
      fail("cannot be read or written: {}",
           error != 0 ? std::strerror(error) : sqlite3_errmsg(database_.get()));
    }
    case SQLITE_FULL:
      fail("cannot be written: the disk is full");
    default:
      break;
  }
  fail("{}", sqlite3_errmsg(database_.get()));
}

void SqliteConnection::open(const std::string& file, int flags) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &database, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(database);
  if (code != SQLITE_OK) give_up(code);
  sqlite3_extended_result_codes(database, 1);
  sqlite3_busy_handler(database, wait_for_lock, nullptr);
}

SqliteConnection::SqliteConnection(const std::string& file) {
  // Without this, "" and ":memory:" would be databases that vanish.
  if (file.empty() || file == ":memory:") fail("expected a file, such as sqlite:///studies.db");
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) fail("cannot be opened: it is a folder");
  open(file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  is_writable_ = sqlite3_db_readonly(database_.get(), "main") == 0;
  execute("PRAGMA synchronous = FULL");
  if (!is_writable_ || !is_on_local_disk(file)) return;
  try {
    execute("PRAGMA journal_mode = WAL");
  } catch (const UserError&) {
    // Somebody reads an older file right now; it works without. A file that is no database fails
    // here as well, and then again with the first statement, which says so.
  }
}

SqliteConnection::~SqliteConnection() {
  rollback();
  // Viewers that read only the main file then see everything. Where others are at work it fails,
  // and they will do it.
  if (!database_ || !is_writable_) return;
  sqlite3_busy_timeout(database_.get(), 100);
  sqlite3_wal_checkpoint_v2(database_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
}

SqliteConnection::Prepared SqliteConnection::prepare(const std::string& text) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database_.get(), text.data(), static_cast<int>(text.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) give_up(code);
  return Prepared(statement);
}

SqlResult SqliteConnection::step(sqlite3_stmt* statement, const std::vector<SqlValue>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    // The places have names, $1 and so on; SQLite numbers them in the order they appear.
    const int place = sqlite3_bind_parameter_index(statement, fmt::format("${}", i + 1).c_str());
    check(place > 0, "a statement to have a place for each value");
    int code = SQLITE_OK;
    if (const auto* whole = std::get_if<std::int64_t>(&values[i]))
      code = sqlite3_bind_int64(statement, place, *whole);
    else if (const auto* number = std::get_if<double>(&values[i]))
      code = sqlite3_bind_double(statement, place, *number);
    else if (const auto* text = std::get_if<std::string>(&values[i]))
      code = sqlite3_bind_text64(statement, place, text->data(), text->size(), SQLITE_STATIC,
                                 SQLITE_UTF8);
    else
      code = sqlite3_bind_null(statement, place);
    if (code != SQLITE_OK) give_up(code);
  }
  SqlResult result;
  const int num_columns = sqlite3_column_count(statement);
  result.num_columns = static_cast<std::size_t>(num_columns);
  int code = SQLITE_OK;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    for (int i = 0; i < num_columns; ++i) {
      switch (sqlite3_column_type(statement, i)) {
        case SQLITE_NULL:
          result.values.emplace_back();
          break;
        case SQLITE_INTEGER:
          result.values.emplace_back(sqlite3_column_int64(statement, i));
          break;
        case SQLITE_FLOAT:
          result.values.emplace_back(sqlite3_column_double(statement, i));
          break;
        default: {
          const auto* text = static_cast<const char*>(sqlite3_column_blob(statement, i));
          const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, i));
          result.values.emplace_back(text == nullptr ? std::string() : std::string(text, size));
        }
      }
    }
  }
  if (code == SQLITE_DONE) result.num_changed = sqlite3_changes64(database_.get());
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  if (code != SQLITE_DONE) give_up(code);
  return result;
}

SqlResult SqliteConnection::execute(const std::string& text, const std::vector<SqlValue>& values) {
  return step(prepare(text).get(), values);
}

std::vector<SqlResult> SqliteConnection::run(std::span<const SqlCall> calls) {
  std::vector<SqlResult> results;
  results.reserve(calls.size());
  for (const SqlCall& call : calls) {
    Prepared& statement = prepared_[call.statement];
    if (!statement) statement = prepare(call.statement->text);
    results.push_back(step(statement.get(), call.values));
  }
  return results;
}

void SqliteConnection::commit(std::span<const SqlCall> calls) {
  run(calls);
  if (!commit_) commit_ = prepare("COMMIT");
  step(commit_.get(), {});
}

void SqliteConnection::rollback() noexcept {
  // Some errors have ended the transaction already.
  if (database_ && sqlite3_get_autocommit(database_.get()) == 0)
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

}  // namespace

std::unique_ptr<SqlConnection> connect_sqlite(const std::string& file) {
  return std::make_unique<SqliteConnection>(file);
}

}  // namespace lathe::study

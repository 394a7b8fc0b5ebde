#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lathe::study {

/// A value that is bound to a statement or read from a row: NULL, whole number, number, text.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

/// A statement with places $1, $2, ... for values. A connection prepares it once and knows it by
/// its address, so it must outlive the connection.
struct SqlStatement {
  std::string text;
};

/// A statement and the values for its places.
struct SqlCall {
  const SqlStatement* statement;
  std::vector<SqlValue> values = {};
};

/// One row of a result. The readers fail with `column` in the message when the stored value is of
/// another type: what is in a database was written by others.
class SqlRow {
 public:
  explicit SqlRow(std::span<const SqlValue> values) : values_(values) {}
  bool is_null(std::size_t index) const;
  std::int64_t whole(std::size_t index, std::string_view column) const;
  double number(std::size_t index, std::string_view column) const;
  const std::string& text(std::size_t index, std::string_view column) const;

 private:
  std::span<const SqlValue> values_;
};

/// The rows that a statement gave, and how many it changed.
struct SqlResult {
  std::size_t num_columns = 0;
  std::vector<SqlValue> values = {};  ///< row after row
  std::int64_t num_changed = 0;

  std::size_t num_rows() const { return num_columns == 0 ? 0 : values.size() / num_columns; }
  SqlRow row(std::size_t index) const {
    return SqlRow(std::span(values).subspan(index * num_columns, num_columns));
  }
};

/// What the two databases spell differently, as pieces of SQL.
struct SqlDialect {
  std::string for_update;   ///< at the end of a SELECT: nobody else may write these rows now
  std::string skip_locked;  ///< the same, passing over rows that somebody else holds
  std::string now;          ///< the database's own clock: milliseconds since 1970 in UTC
  std::string any_of;       ///< "= any of the list in place $1"
  std::string num_tables;   ///< SELECT how many tables have the name $1
  std::string num_indexes;  ///< SELECT how many indexes have the name $1
  std::string key;          ///< the type of a key that counts up by itself
  std::string real;
  std::string time;
  std::string direction, state, value_type, intermediate_value_type;  ///< the types of these
  std::vector<std::string> preparation = {};  ///< before the tables: named types, a lock
  char list_open = '[', list_close = ']';     ///< how a list of numbers is written as one text
};

/// The work of a transaction must be done again: a deadlock, or the connection broke.
struct SqlInterruption {
  std::string reason;
  /// True when the answer to a commit was lost: what was written is there, or is not.
  bool may_be_committed = false;
};
/// A row with that key is there already.
struct SqlDuplicate {};

/// One connection to a database.
///
/// Calls fail with UserError (whose text does not say which database: the caller knows), or throw
/// SqlInterruption or SqlDuplicate; after any of them the transaction is gone.
class SqlConnection {
 public:
  enum class Access { Read, Write };

  virtual ~SqlConnection() = default;
  virtual const SqlDialect& dialect() const = 0;

  /// Starts a transaction. One that writes keeps other writers away from what it locks.
  virtual void begin(Access access) = 0;
  /// Runs one statement that is needed once, such as one that creates a table.
  virtual SqlResult execute(const std::string& text, const std::vector<SqlValue>& values = {}) = 0;
  /// Runs the calls in order, on their way together where that saves time.
  virtual std::vector<SqlResult> run(std::span<const SqlCall> calls) = 0;
  /// Runs the calls and ends the transaction; it is on the disk when this returns.
  virtual void commit(std::span<const SqlCall> calls) = 0;
  /// Forgets the transaction, if there is one.
  virtual void rollback() noexcept = 0;
  /// Makes a connection that broke work again; throws SqlInterruption while it cannot be done.
  virtual void reconnect() = 0;

  SqlResult run(const SqlCall& call) { return std::move(run(std::span(&call, 1)).front()); }
};

}  // namespace lathe::study

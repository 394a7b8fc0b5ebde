#include "lathe/study/storages/postgresql_connection.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "lathe/core/error.h"
#include "lathe/study/storages/postgresql_values.h"

namespace lathe::study {
namespace {

std::string create_type(std::string_view name, std::string_view words) {
  return fmt::format(
      "DO $$ BEGIN CREATE TYPE {} AS ENUM ({}); "
      "EXCEPTION WHEN duplicate_object THEN NULL; END $$",
      name, words);
}

const SqlDialect& postgresql_dialect() {
  static const SqlDialect dialect{
      .for_update = " FOR UPDATE",
      .skip_locked = " FOR UPDATE SKIP LOCKED",
      // The clock now, not when the transaction began.
      .now = "CAST(1000 * EXTRACT(EPOCH FROM clock_timestamp()) AS bigint)",
      .any_of = "= ANY (CAST($1 AS integer[]))",
      .num_tables = "SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass($1)",
      .num_indexes = "SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass($1)",
      .key = "SERIAL PRIMARY KEY",
      .real = "DOUBLE PRECISION",
      .time = "TIMESTAMP WITHOUT TIME ZONE",
      .direction = "studydirection",
      .state = "trialstate",
      .value_type = "trialvaluetype",
      .intermediate_value_type = "trialintermediatevaluetype",
      .preparation = {"SELECT pg_advisory_xact_lock(1818326117)",  // any number that nobody has
                      create_type("studydirection", "'NOT_SET', 'MINIMIZE', 'MAXIMIZE'"),
                      create_type("trialstate",
                                  "'RUNNING', 'COMPLETE', 'PRUNED', 'FAIL', 'WAITING'"),
                      create_type("trialvaluetype", "'FINITE', 'INF_POS', 'INF_NEG'"),
                      create_type("trialintermediatevaluetype",
                                  "'FINITE', 'INF_POS', 'INF_NEG', 'NAN'")},
      .list_open = '{',
      .list_close = '}',
  };
  return dialect;
}

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Connection = std::unique_ptr<PGconn, Finish>;
using Result = std::unique_ptr<PGresult, Clear>;

std::string first_line(const char* message) {
  std::string_view text = message == nullptr ? "" : message;
  text = text.substr(0, text.find('\n'));
  return text.empty() ? "the connection broke" : std::string(text);
}

class PostgresqlConnection final : public SqlConnection {
 public:
  explicit PostgresqlConnection(std::string url) : url_(std::move(url)) {
    try {
      connect();
    } catch (const SqlInterruption& interruption) {
      fail("{}", interruption.reason);
    }
  }

  const SqlDialect& dialect() const override { return postgresql_dialect(); }
  void begin(Access access) override;
  SqlResult execute(const std::string& text, const std::vector<SqlValue>& values) override;
  std::vector<SqlResult> run(std::span<const SqlCall> calls) override;
  void commit(std::span<const SqlCall> calls) override;
  void rollback() noexcept override;
  void reconnect() override;

 private:
  void connect();
  std::vector<SqlResult> send(std::span<const SqlCall> calls, bool is_last);
  // What the server works on: a statement that it prepares, or nullptr for a call.
  using Queue = std::vector<const SqlStatement*>;
  void add(const SqlCall& call, const PostgresqlValues& values, Queue& queue);
  std::vector<SqlResult> receive(const Queue& queue);
  [[noreturn]] void give_up(const PGresult* result);

  std::string url_;
  Connection connection_;
  std::unordered_map<const SqlStatement*, std::string> names_;  // of prepared statements
  int num_prepared_ = 0;
  bool must_begin_ = false;  // with the next batch
  bool must_commit_ = false;
  bool is_commit_unanswered_ = false;
  const SqlStatement begin_{"BEGIN ISOLATION LEVEL READ COMMITTED"};
  const SqlStatement commit_{"COMMIT"};
};

void PostgresqlConnection::connect() {
  // What stands before the URL is a default that it may change, what stands behind is not.
  constexpr std::array<const char*, 6> kKeys = {
      "connect_timeout", "tcp_user_timeout",          "dbname",
      "client_encoding", "fallback_application_name", nullptr};
  const std::array<const char*, 6> values = {"10", "30000", url_.c_str(), "UTF8", "lathe", nullptr};
  names_.clear();
  must_begin_ = must_commit_ = false;
  connection_.reset(PQconnectdbParams(kKeys.data(), values.data(), 1));
  if (PQstatus(connection_.get()) != CONNECTION_OK)
    throw SqlInterruption{first_line(PQerrorMessage(connection_.get()))};
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
  // Plans are made while the tables are still small enough to be read whole, and kept when they no
  // longer are; every statement of ours has an index to go by.
  // Whatever PGTZ and the server's settings say, times are in UTC.
  const Result result(PQexec(connection_.get(),
                             "SET TIME ZONE 'UTC'; "
                             "SET datestyle = ISO; SET extra_float_digits = 3; "
                             "SET enable_seqscan = off; "
                             "SET idle_in_transaction_session_timeout = 10000"));
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) give_up(result.get());
}

void PostgresqlConnection::reconnect() {
  if (PQstatus(connection_.get()) == CONNECTION_OK &&
      PQtransactionStatus(connection_.get()) == PQTRANS_IDLE)
    return;
  connect();
}

void PostgresqlConnection::give_up(const PGresult* result) {
  const char* field = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const std::string_view state = field == nullptr ? "" : field;
  const char* primary =
      result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const std::string message =
      first_line(primary != nullptr ? primary : PQerrorMessage(connection_.get()));
  constexpr std::array<std::string_view, 4> kGone = {
      "57P01", "57P02", "57P03",  // the server stops, crashed or starts
      "25P03"};                   // we were frozen in a transaction
  // Without a code it is not the server that speaks: libpq could not send. (It may not have noticed
  // yet that the connection is gone.)
  if (state.empty() || PQstatus(connection_.get()) == CONNECTION_BAD || state.starts_with("08") ||
      std::ranges::find(kGone, state) != kGone.end()) {
    const bool may_be_committed = std::exchange(is_commit_unanswered_, false);
    connection_.reset();
    throw SqlInterruption{message, may_be_committed};
  }
  is_commit_unanswered_ = false;
  if (state == "40001" || state == "40P01") throw SqlInterruption{message};
  if (state == "23505" || state == "42P07" || state == "42710") throw SqlDuplicate{};
  fail("{}", message);
}

void PostgresqlConnection::begin(Access access) {
  if (!connection_) throw SqlInterruption{"not connected"};
  // Statements that only read are a transaction of their own each.
  must_begin_ = access == Access::Write;
  must_commit_ = false;
}

SqlResult PostgresqlConnection::execute(const std::string& text,
                                        const std::vector<SqlValue>& values) {
  if (must_begin_) run(std::span<const SqlCall>());
  const PostgresqlValues bound(values);
  const Result result(PQexecParams(connection_.get(), text.c_str(), bound.size(), nullptr,
                                   bound.data(), nullptr, nullptr, 0));
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) give_up(result.get());
  return read_postgresql_rows(result.get());
}

std::vector<SqlResult> PostgresqlConnection::run(std::span<const SqlCall> calls) {
  return send(calls, false);
}

void PostgresqlConnection::commit(std::span<const SqlCall> calls) {
  send(calls, must_commit_ || must_begin_);
  must_commit_ = false;
}

void PostgresqlConnection::add(const SqlCall& call, const PostgresqlValues& values, Queue& queue) {
  std::string& name = names_[call.statement];
  if (name.empty()) {
    // On its first use a statement is prepared in the same round trip.
    name = fmt::format("{}{}", call.statement == &commit_ ? "commit" : "s", ++num_prepared_);
    if (PQsendPrepare(connection_.get(), name.c_str(), call.statement->text.c_str(), 0, nullptr) ==
        0)
      give_up(nullptr);
    queue.push_back(call.statement);
  }
  if (PQsendQueryPrepared(connection_.get(), name.c_str(), values.size(), values.data(), nullptr,
                          nullptr, 0) == 0)
    give_up(nullptr);
  queue.push_back(nullptr);
}

// Results come in the order in which things were queued. After an error the server passes over
// everything else up to the end of the batch.
std::vector<SqlResult> PostgresqlConnection::receive(const Queue& queue) {
  std::vector<SqlResult> results;
  Result error;
  for (const SqlStatement* prepared : queue) {
    Result result(PQgetResult(connection_.get()));
    const ExecStatusType status = PQresultStatus(result.get());
    if (PQstatus(connection_.get()) == CONNECTION_BAD) give_up(result.get());
    if (status == PGRES_FATAL_ERROR)
      error = std::move(result);
    else if (prepared == nullptr && status != PGRES_PIPELINE_ABORTED)
      results.push_back(read_postgresql_rows(result.get()));
    while (Result(PQgetResult(connection_.get()))) {
    }
  }
  const Result end(PQgetResult(connection_.get()));
  if (PQresultStatus(end.get()) != PGRES_PIPELINE_SYNC) give_up(end.get());
  if (PQexitPipelineMode(connection_.get()) == 0) give_up(nullptr);
  if (error) {
    // Which of the new statements were prepared before the error is not worth finding out: names
    // are not used twice.
    for (const SqlStatement* prepared : queue) names_.erase(prepared);
    give_up(error.get());
  }
  return results;
}

std::vector<SqlResult> PostgresqlConnection::send(std::span<const SqlCall> calls, bool is_last) {
  std::vector<SqlCall> batch;
  batch.reserve(calls.size() + 2);
  const bool is_first = std::exchange(must_begin_, false);
  if (is_first) batch.push_back({&begin_});
  batch.insert(batch.end(), calls.begin(), calls.end());
  if (is_last) batch.push_back({&commit_});
  must_commit_ = must_commit_ || is_first;
  // Before anything is under way, since it fails on texts that cannot be sent.
  std::vector<PostgresqlValues> values;
  values.reserve(batch.size());
  for (const SqlCall& call : batch) values.emplace_back(call.values);

  if (PQenterPipelineMode(connection_.get()) == 0) give_up(nullptr);
  is_commit_unanswered_ = is_last;
  Queue queue;
  for (std::size_t i = 0; i < batch.size(); ++i) add(batch[i], values[i], queue);
  if (PQpipelineSync(connection_.get()) == 0) give_up(nullptr);
  std::vector<SqlResult> results = receive(queue);
  is_commit_unanswered_ = false;
  if (is_last) results.pop_back();
  if (is_first) results.erase(results.begin());
  return results;
}

void PostgresqlConnection::rollback() noexcept {
  must_begin_ = must_commit_ = false;
  if (connection_ && PQtransactionStatus(connection_.get()) != PQTRANS_IDLE)
    PQclear(PQexec(connection_.get(), "ROLLBACK"));
}

}  // namespace

std::unique_ptr<SqlConnection> connect_postgresql(const std::string& url) {
  return std::make_unique<PostgresqlConnection>(url);
}

std::string describe_postgresql(const std::string& url) {
  struct Free {
    void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
  };
  // The parser's own message may quote the password.
  const std::unique_ptr<PQconninfoOption, Free> options(PQconninfoParse(url.c_str(), nullptr));
  if (!options) fail("not a PostgreSQL URL, expected postgresql://USER@HOST:PORT/DATABASE");
  std::string user, host, port, base;
  for (const PQconninfoOption* each = options.get(); each->keyword != nullptr; ++each) {
    const std::string_view key = each->keyword;
    const std::string value = each->val == nullptr ? "" : each->val;
    if (key == "user") user = value;
    if (key == "host") host = value;
    if (key == "port") port = value;
    if (key == "dbname") base = value;
  }
  const bool is_socket = host.starts_with('/');
  return fmt::format("postgresql://{}{}{}{}{}/{}{}", user, user.empty() ? "" : "@",
                     is_socket ? "" : host, port.empty() ? "" : ":", port, base,
                     is_socket ? "?host=" + host : "");
}

}  // namespace lathe::study

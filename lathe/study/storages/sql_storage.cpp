#include "lathe/study/storages/sql_storage.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "lathe/study/storages/sql_schema.h"

namespace lathe::study {
namespace {

// How long a server may be away before its workers give up; a restart takes seconds.
constexpr double kPatienceSeconds = 60;

std::string_view name_of(Direction direction) {
  return direction == Direction::Minimize ? "MINIMIZE" : "MAXIMIZE";
}

Direction parse_direction(const std::string& text) {
  if (text == "MINIMIZE") return Direction::Minimize;
  if (text == "MAXIMIZE") return Direction::Maximize;
  fail("study_directions.direction is \"{}\", expected MINIMIZE or MAXIMIZE", text);
}

// The tables hold names of up to 512 characters; SQLite would not object, but other readers would.
void require_short(std::string_view what, std::string_view name) {
  const auto is_first_byte = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  if (std::ranges::count_if(name, is_first_byte) > 512)
    fail("the {} \"{}...\" has more than 512 characters", what, name.substr(0, 20));
}

void add_attributes(const SqlStatement& statement, std::int64_t id, const Attributes& attributes,
                    std::vector<SqlCall>& calls) {
  for (const auto& [key, value] : attributes) {
    require_short("attribute", key);
    calls.push_back({&statement, {id, key, value}});
  }
}

Attributes read_attributes(const SqlResult& rows) {
  Attributes result;
  for (std::size_t i = 0; i < rows.num_rows(); ++i)
    result[rows.row(i).text(0, "key")] = rows.row(i).text(1, "value_json");
  return result;
}

}  // namespace

SqlStorage::SqlStorage(const std::string& description, const Connect& connect)
    : SqlStorage(description, connect, with_place(description, connect)) {}

SqlStorage::SqlStorage(const std::string& description, const Connect& connect,
                       std::unique_ptr<SqlConnection> connection)
    : description_(description),
      connect_(connect),
      statements_(connection->dialect()),
      connection_(std::move(connection)) {
  with_place(description_, [&] {
    double waited_s = 0;
    for (;;) {
      try {
        return prepare_schema(*connection_);
      } catch (const SqlInterruption& interruption) {
        recover(interruption, waited_s);
      } catch (const SqlDuplicate&) {
        // Somebody creates the same tables at this moment.
        recover({"the tables are being created by somebody else"}, waited_s);
      }
    }
  });
}

void SqlStorage::recover(const SqlInterruption& interruption, double& waited_s) {
  connection_->rollback();
  std::string reason = interruption.reason;
  for (double pause_s = 0.005;; pause_s = std::min(2 * pause_s, 0.5)) {
    // Time that passed while the process was frozen does not count, so pauses are added up.
    if (waited_s > kPatienceSeconds)
      fail("gave up after {:.0f} seconds: {}", kPatienceSeconds, reason);
    std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
    waited_s += pause_s;
    try {
      return connection_->reconnect();
    } catch (const SqlInterruption& again) {
      reason = again.reason;
    }
  }
}

void SqlStorage::require_study(const SqlResult& found, StudyId study) const {
  if (found.num_rows() == 0) fail("there is no study {}", study);
}

StudyId SqlStorage::create_study(const std::string& name, const std::vector<Direction>& directions,
                                 const Attributes& user_attributes,
                                 const Attributes& system_attributes) {
  return transact(Access::Write, [&](bool may_be_done) {
    require_short("study name", name);
    const SqlResult found = connection_->run({&statements_.find_study, {name}});
    if (found.num_rows() > 0) {
      const StudyId id = found.row(0).whole(0, "studies.study_id");
      if (may_be_done) {
        const StudyRecord record = read_study(id);
        if (record.directions == directions && record.user_attributes == user_attributes &&
            record.system_attributes == system_attributes)
          return id;
      }
      fail("there is already a study \"{}\"", name);
    }
    try {
      const StudyId id =
          connection_->run({&statements_.insert_study, {name}}).row(0).whole(0, "studies.study_id");
      std::vector<SqlCall> calls;
      for (std::size_t i = 0; i < directions.size(); ++i)
        calls.push_back({&statements_.insert_direction,
                         {id, static_cast<std::int64_t>(i), std::string(name_of(directions[i]))}});
      add_attributes(statements_.set_study_user, id, user_attributes, calls);
      add_attributes(statements_.set_study_system, id, system_attributes, calls);
      connection_->commit(calls);
      return id;
    } catch (const SqlDuplicate&) {
      fail("there is already a study \"{}\"", name);
    }
  });
}

std::optional<StudyId> SqlStorage::find_study(std::string_view name) {
  return transact(Access::Read, [&](bool) -> std::optional<StudyId> {
    const SqlResult found = connection_->run({&statements_.find_study, {std::string(name)}});
    if (found.num_rows() == 0) return {};
    return found.row(0).whole(0, "studies.study_id");
  });
}

StudyRecord SqlStorage::read_study(StudyId study) {
  const std::vector<SqlCall> calls = {{&statements_.study_name, {study}},
                                      {&statements_.directions, {study}},
                                      {&statements_.study_user_attributes, {study}},
                                      {&statements_.study_system_attributes, {study}}};
  const std::vector<SqlResult> found = connection_->run(calls);
  require_study(found[0], study);
  StudyRecord record{.id = study,
                     .name = found[0].row(0).text(0, "studies.study_name"),
                     .directions = {},
                     .user_attributes = read_attributes(found[2]),
                     .system_attributes = read_attributes(found[3])};
  for (std::size_t i = 0; i < found[1].num_rows(); ++i)
    record.directions.push_back(
        parse_direction(found[1].row(i).text(0, "study_directions.direction")));
  if (record.directions.empty()) fail("study \"{}\" has no directions", record.name);
  return record;
}

std::vector<StudyRecord> SqlStorage::studies() {
  return transact(Access::Read, [&](bool) {
    const SqlResult found = connection_->run({&statements_.all_studies, {}});
    std::vector<StudyRecord> result;
    for (std::size_t i = 0; i < found.num_rows(); ++i)
      result.push_back(read_study(found.row(i).whole(0, "studies.study_id")));
    return result;
  });
}

StudyRecord SqlStorage::study(StudyId study) {
  return transact(Access::Read, [&](bool) { return read_study(study); });
}

void SqlStorage::delete_study(StudyId study) {
  transact(Access::Write, [&](bool may_be_done) {
    const SqlResult found = connection_->run({&statements_.lock_study, {study}});
    if (may_be_done && found.num_rows() == 0) return true;
    require_study(found, study);
    std::vector<SqlCall> calls;
    for (const SqlStatement& statement : statements_.delete_study)
      calls.push_back({&statement, {study}});
    connection_->commit(calls);
    return true;
  });
  parameters_.erase(study);
}

void SqlStorage::set_study_attributes(StudyId study, const Attributes& user_attributes,
                                      const Attributes& system_attributes) {
  transact(Access::Write, [&](bool) {
    require_study(connection_->run({&statements_.lock_study, {study}}), study);
    std::vector<SqlCall> calls;
    add_attributes(statements_.set_study_user, study, user_attributes, calls);
    add_attributes(statements_.set_study_system, study, system_attributes, calls);
    connection_->commit(calls);
    return true;
  });
}

}  // namespace lathe::study

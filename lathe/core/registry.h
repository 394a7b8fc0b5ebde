#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/core/error.h"

namespace lathe {

/// What exists of one kind of record (Op, Pass, ...), by name. Filled by `Register` objects before
/// main, read-only afterwards; listings are sorted by name.
template <typename Record>
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  void add(Record record) {
    std::string name = record.name;
    const bool is_new = records_.emplace(std::move(name), std::move(record)).second;
    check(is_new, "every registered name to be unique");
  }
  /// The record of that name, or nullptr.
  const Record* find(std::string_view name) const {
    const auto found = records_.find(name);
    return found == records_.end() ? nullptr : &found->second;
  }
  /// The record of that name; fails with the nearest name. `kind` is what a user calls it.
  const Record& at(std::string_view name, std::string_view kind) const {
    if (const Record* record = find(name)) return *record;
    throw unknown_name(kind, name, names());
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, record] : records_) result.push_back(name);
    return result;
  }
  const std::map<std::string, Record, std::less<>>& all() const { return records_; }

 private:
  std::map<std::string, Record, std::less<>> records_;
};

/// Registers a record: `const Register registration{Pass{...}};` in the record's own file.
struct Register {
  template <typename Record>
  explicit Register(Record record) {
    Registry<Record>::instance().add(std::move(record));
  }
};

}  // namespace lathe

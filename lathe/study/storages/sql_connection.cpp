#include "lathe/study/storages/sql_connection.h"

#include <array>
#include <cmath>

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

[[noreturn]] void fail_type(const SqlValue& found, std::string_view column, const char* expected) {
  constexpr std::array<const char*, 4> kKinds = {"nothing", "a whole number", "a number", "a text"};
  fail("{} holds {}, expected {}", column, kKinds.at(found.index()), expected);
}

}  // namespace

bool SqlRow::is_null(std::size_t index) const {
  return std::holds_alternative<std::monostate>(values_[index]);
}

std::int64_t SqlRow::whole(std::size_t index, std::string_view column) const {
  if (const auto* value = std::get_if<std::int64_t>(&values_[index])) return *value;
  fail_type(values_[index], column, "a whole number");
}

double SqlRow::number(std::size_t index, std::string_view column) const {
  if (const auto* value = std::get_if<double>(&values_[index])) return *value;
  // A column of real numbers may give 1.0 back as 1.
  if (const auto* value = std::get_if<std::int64_t>(&values_[index]))
    return static_cast<double>(*value);
  fail_type(values_[index], column, "a number");
}

const std::string& SqlRow::text(std::size_t index, std::string_view column) const {
  if (const auto* value = std::get_if<std::string>(&values_[index])) return *value;
  fail_type(values_[index], column, "a text");
}

}  // namespace lathe::study

#include "lathe/study/storages/postgresql_values.h"

#include <fmt/format.h>

#include <charconv>

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

template <typename Number>
SqlValue parse_cell(std::string_view text) {
  Number value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size())
    fail("the server sent \"{}\" for a number", text);
  return value;
}

}  // namespace

PostgresqlValues::PostgresqlValues(const std::vector<SqlValue>& values) : texts_(values.size()) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    pointers_.push_back(nullptr);
    if (const auto* whole = std::get_if<std::int64_t>(&values[i])) {
      texts_[i] = std::to_string(*whole);
    } else if (const auto* number = std::get_if<double>(&values[i])) {
      texts_[i] = fmt::format("{}", *number);
    } else if (const auto* text = std::get_if<std::string>(&values[i])) {
      if (text->find('\0') != std::string::npos)
        fail("a text with a zero byte cannot be stored: \"{}...\"", text->c_str());
      pointers_[i] = text->c_str();
      continue;
    } else {
      continue;
    }
    pointers_[i] = texts_[i].c_str();
  }
}

SqlResult read_postgresql_rows(const PGresult* result) {
  // The server's numbers for its types; they never change.
  enum Type : Oid { Int8 = 20, Int2 = 21, Int4 = 23, Float4 = 700, Float8 = 701 };
  const int num_columns = PQnfields(result);
  const int num_rows = PQntuples(result);
  SqlResult rows{.num_columns = static_cast<std::size_t>(num_columns)};
  rows.values.reserve(static_cast<std::size_t>(num_rows) * rows.num_columns);
  for (int row = 0; row < num_rows; ++row) {
    for (int column = 0; column < num_columns; ++column) {
      const std::string_view text(PQgetvalue(result, row, column),
                                  static_cast<std::size_t>(PQgetlength(result, row, column)));
      const Oid type = PQftype(result, column);
      if (PQgetisnull(result, row, column) != 0)
        rows.values.emplace_back();
      else if (type == Int2 || type == Int4 || type == Int8)
        rows.values.push_back(parse_cell<std::int64_t>(text));
      else if (type == Float4 || type == Float8)
        rows.values.push_back(parse_cell<double>(text));
      else
        rows.values.emplace_back(std::string(text));
    }
  }
  return rows;
}

}  // namespace lathe::study

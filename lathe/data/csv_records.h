#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::data {

/// Reads CSV (RFC 4180) one record at a time; a quoted field may hold commas, line ends and doubled
/// quotes. A UserError starts with the line number.
class CsvRecords {
 public:
  explicit CsvRecords(std::string_view contents);

  bool at_end() const { return rest_.empty(); }
  /// The line at which the next record starts.
  std::int64_t line() const { return line_; }
  std::vector<std::string> next();

 private:
  bool consume(char expected);
  std::string plain_field();
  std::string quoted_field();

  std::string_view rest_;
  std::int64_t line_ = 1;
};

/// The columns of a header that have one of these names in any case.
std::vector<std::size_t> columns_named(const std::vector<std::string>& header,
                                       std::initializer_list<std::string_view> names);

}  // namespace lathe::data

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::cli {

/// Numbers a user wrote, as a matrix of float32.
struct ValueList {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values = {};
};

/// Reads numbers separated by blanks, commas or new lines, or one JSON array of them (or of arrays
/// of equal length, which are rows). `nan` and `inf` are numbers, in quotes too, and `null` is NaN.
/// Each is read as a double and rounded to float32. Fails with the line and number of a bad one.
ValueList parse_values(std::string_view text, std::string_view place);

/// The same from a file, or from standard input for "-".
ValueList read_values(const std::string& path);

/// Gives the values another shape, written ROWSxCOLUMNS; fails when they do not fill it.
void reshape(ValueList& list, std::string_view shape);

}  // namespace lathe::cli

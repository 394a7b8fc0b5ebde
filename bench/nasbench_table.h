#pragma once

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lathe/core/error.h"

/// NAS-Bench-201: six edges of a cell with five operations each.
inline constexpr int kNasbenchEdges = 6, kNasbenchOperations = 5;

/// A column of the table by cell; the operation of the first edge counts most.
inline std::vector<double> read_nasbench(const std::string& file, const std::string& column) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line)) lathe::fail("{}: cannot be read", file);
  std::vector<std::string> names;
  for (std::istringstream header(line); std::getline(header, line, ',');) names.push_back(line);
  const auto found = std::find(names.begin(), names.end(), column);
  if (found == names.end()) throw lathe::unknown_name("objective", column, names);
  const auto wanted = static_cast<std::size_t>(found - names.begin());
  std::vector<double> table(15625, 0.0);
  while (std::getline(stream, line)) {
    std::istringstream row(line);
    std::size_t cell = 0;
    std::string field;
    for (std::size_t i = 0; std::getline(row, field, ','); ++i) {
      if (i < kNasbenchEdges)
        cell = cell * kNasbenchOperations + static_cast<std::size_t>(std::stoi(field));
      if (i == wanted) table.at(cell) = std::stod(field);
    }
  }
  return table;
}

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/experiment/figures.h"
#include "lathe/report/plot.h"

/// What tables and plots of all sweeps share.
namespace lathe::experiment {

/// "0.9120", or "-" for what was not measured.
std::string figure_cell(std::optional<double> value);

/// How much a figure changed, or "-" where one of them was not measured.
std::string difference_cell(const Figure& figure, std::optional<double> value,
                            std::optional<double> from);

/// The names of the last columns: how large a model is, how much smaller than the original, and how
/// fast.
inline const std::vector<std::string> kSizeHeaders{"size", "smaller", "tokens/s"};
std::vector<std::string> size_cells(std::int64_t bytes, std::int64_t original_bytes,
                                    std::optional<double> tokens_per_second);

/// Adds a point; that of an accuracy with its 95 % interval.
void add_point(report::Series& series, double x, double value, const Figure& figure,
               std::int64_t num_measured);

/// A level line at the x of all the curves.
report::Series level_line(std::string name, double value, const std::vector<report::Series>& under);

}  // namespace lathe::experiment

#pragma once

#include <filesystem>

#include "lathe/experiment/sweep.h"
#include "lathe/report/table.h"

namespace lathe::experiment {

/// A row for each format of a sweep: bits, accuracies, what they lost against float and won by
/// training, the size of its files and its speed; first the float model.
report::Table sweep_table(const SweepResult& result);

/// Writes table.md and sweep.svg, accuracies with their intervals against the variable, or against
/// the epochs where there are several; both say what was measured on.
void write_report(const SweepResult& result, const std::filesystem::path& directory);

}  // namespace lathe::experiment

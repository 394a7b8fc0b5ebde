#pragma once

#include <filesystem>

#include "lathe/experiment/sweep.h"
#include "lathe/report/table.h"

namespace lathe::experiment {

/// A row for each format of a sweep: bits, accuracies, and what they lost against float.
report::Table sweep_table(const SweepResult& result);

/// Writes table.md and sweep.svg; both say what was measured on.
void write_report(const SweepResult& result, const std::filesystem::path& directory);

}  // namespace lathe::experiment

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/study/study.h"

namespace lathe::cli {

/// What a line `report STEP VALUE...` says, or `{"report": STEP, "accuracy": VALUE, ...}`.
struct ReportLine {
  int step = 0;
  std::vector<double> values = {};
};
/// The report that a line of a trial's output is, or nothing. Of JSON, the fields that have the
/// names of `objectives` are the values.
std::optional<ReportLine> parse_report(std::string_view line,
                                       const std::vector<std::string>& objectives = {});

/// What a trial's last line says.
struct TrialResult {
  study::Outcome outcome = {};
  study::Attributes attributes = {};
  std::vector<double> constraints = {};
};

/// Reads one number for each objective, or a JSON object with `value` or `values` and perhaps
/// `state` (`complete`, `pruned`, `fail`), `reason`, `constraints` and `attributes`. An object that
/// has the fields that `objectives` names gives those, and its other numbers and texts as
/// attributes: what every command of ours prints with --json. Fails saying what was expected.
TrialResult parse_result(std::string_view line, std::size_t num_objectives,
                         const std::vector<std::string>& objectives = {});

}  // namespace lathe::cli

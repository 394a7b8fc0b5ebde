#pragma once

#include <string>
#include <string_view>

#include "lathe/study/trial_record.h"

namespace lathe::study {

/// `2026-03-01 09:30:00.000250`, in UTC, as Optuna's tables have it; its journal has `T` in
/// between.
std::string to_text(Time time, char separator = ' ');

/// Reads either form, with or without a fraction and an offset from UTC (none: UTC).
Time parse_time(std::string_view text);

}  // namespace lathe::study

#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/study/sampler.h"

namespace lathe::study {

/// Readers of single options: the value of `key`, or `otherwise` when it is not set. They fail on a
/// text of another kind or a number out of range, naming key, value and what was expected.
double option_number(const Options& options, std::string_view key, double otherwise,
                     double low = -std::numeric_limits<double>::infinity(),
                     double high = std::numeric_limits<double>::infinity());
std::int64_t option_whole(const Options& options, std::string_view key, std::int64_t otherwise,
                          std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                          std::int64_t high = std::numeric_limits<std::int64_t>::max());
/// `true`/`false`, `yes`/`no`, `on`/`off`, `1`/`0`.
bool option_switch(const Options& options, std::string_view key, bool otherwise);
/// One of `names`; the first is the default.
std::string option_name(const Options& options, std::string_view key,
                        const std::vector<std::string>& names);

}  // namespace lathe::study

#include "lathe/compress/range_rule.h"

#include <charconv>

#include "lathe/core/error.h"

namespace lathe::compress {

RangeRule parse_range_rule(std::string_view text) {
  RangeRule rule;
  if (text == "mse") return rule;
  if (text == "minmax") {
    rule.method = RangeRule::Method::Extremes;
    return rule;
  }
  constexpr std::string_view kPrefix = "percentile";
  if (text.substr(0, kPrefix.size()) != kPrefix)
    throw unknown_name("range", text, {"minmax", "percentile", "mse"});
  rule.method = RangeRule::Method::Percentile;
  text.remove_prefix(kPrefix.size());
  if (text.empty()) return rule;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + 1, end, rule.percentile);
  if (text.front() != '=' || parsed.ec != std::errc() || parsed.ptr != end ||
      !(rule.percentile > 0 && rule.percentile <= 1))
    fail("percentile{}: expected percentile=P with 0 < P <= 1", text);
  return rule;
}

std::vector<numerics::ScaleAndZero> choose_scales(const NumberFormat& format,
                                                  const numerics::CalibrationValues& values,
                                                  const RangeRule& rule) {
  switch (rule.method) {
    case RangeRule::Method::Extremes:
      return numerics::scales_by_range(format, values);
    case RangeRule::Method::Percentile:
      return numerics::scales_by_percentile(format, values, rule.percentile);
    case RangeRule::Method::LeastError:
      break;
  }
  // Two in a hundred of the range is as near as the error's flat minimum asks for.
  return numerics::scales_by_error(format, values, {.least_ratio = 0.1, .steps = 46});
}

}  // namespace lathe::compress

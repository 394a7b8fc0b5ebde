#include "lathe/cli/format_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lathe/numerics/code_layout.h"
#include "lathe/numerics/error_measures.h"
#include "lathe/report/table.h"

namespace lathe::cli {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no word for what is not finite.
Json to_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}
// Exactly the float, in as few digits as tell it from its neighbours.
std::string to_text(float value) {
  return fmt::format("{}", value);
}

template <typename Values, typename Convert>
Json rows_of(const Values& values, const ValueList& shape, Convert convert) {
  Json all = Json::array();
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    Json row = Json::array();
    for (std::int64_t c = 0; c < shape.columns; ++c)
      row.push_back(convert(values[static_cast<std::size_t>(r * shape.columns + c)]));
    if (shape.rows == 1) return row;
    all.push_back(std::move(row));
  }
  return all;
}

}  // namespace

void add_outcome(Json& line, const NumberFormat& format, const FormatOutcome& outcome) {
  const FormatFacts& facts = format.facts();
  const ValueList& list = outcome.input;
  line["rows"] = list.rows;
  line["columns"] = list.columns;
  line["codes"] = nullptr;
  if (const auto layout = numerics::code_layout(format); layout != numerics::CodeLayout::None) {
    line["codes"] = rows_of(outcome.rounded.patterns, list, [&](std::uint32_t pattern) {
      return numerics::code_number(pattern, facts.element_bits, layout);
    });
    line["patterns"] =
        rows_of(outcome.rounded.patterns, list, [](std::uint32_t pattern) { return pattern; });
  }
  line["values"] =
      rows_of(outcome.rounded.values, list, [](float value) { return to_json(value); });
  const auto flat = [](const std::vector<float>& values) {
    Json array = Json::array();
    for (const float value : values) array.push_back(to_json(value));
    return array;
  };
  if (!outcome.rounded.scales.empty()) line["scales"] = flat(outcome.rounded.scales);
  if (!outcome.rounded.scale_codes.empty()) line["scale_codes"] = outcome.rounded.scale_codes;
  if (!outcome.rounded.zeros.empty()) line["zeros"] = flat(outcome.rounded.zeros);
  const numerics::ErrorMeasures error =
      numerics::measure_error(list.values, outcome.rounded.values);
  line["sqnr_db"] = to_json(error.sqnr());
  line["mean_squared_error"] = error.mean_squared_error;
  line["largest_error"] = error.largest_error;
}

void print_outcome(const NumberFormat& format, const FormatOutcome& outcome) {
  const FormatFacts& facts = format.facts();
  if (!outcome.rounded.scales.empty()) {
    std::vector<std::string> scales;
    for (const float scale : outcome.rounded.scales) scales.push_back(to_text(scale));
    fmt::print("scales      {}\n", fmt::join(scales, " "));
  }
  if (!outcome.rounded.zeros.empty())
    fmt::print("zeros       {}\n", fmt::join(outcome.rounded.zeros, " "));
  const numerics::ErrorMeasures error =
      numerics::measure_error(outcome.input.values, outcome.rounded.values);
  fmt::print("error       {:.2f} dB SQNR, largest {:.6g}\n\n", error.sqnr(), error.largest_error);
  const auto layout = numerics::code_layout(format);
  report::Table table(layout == numerics::CodeLayout::None
                          ? std::vector<std::string>{"value", "becomes"}
                          : std::vector<std::string>{"value", "code", "bits", "becomes"});
  for (std::size_t i = 0; i < outcome.rounded.values.size(); ++i) {
    std::vector<std::string> cells = {to_text(outcome.input.values[i])};
    if (layout != numerics::CodeLayout::None) {
      const std::uint32_t pattern = outcome.rounded.patterns[i];
      cells.push_back(
          fmt::format("{}", numerics::code_number(pattern, facts.element_bits, layout)));
      cells.push_back(fmt::format("{:0{}b}", pattern, facts.element_bits));
    }
    cells.push_back(to_text(outcome.rounded.values[i]));
    table.row(std::move(cells));
  }
  fmt::print("{}", table.to_text());
}

std::string scale_text(const FormatFacts& facts) {
  if (facts.scale_source == ScaleSource::None) return "none";
  const std::string covers =
      facts.granularity == Granularity::Tensor ? "the tensor"
      : facts.granularity == Granularity::Row  ? "each row"
      : facts.block_rows > 1
          ? fmt::format("each {} x {} tile", facts.block_rows, facts.block_columns)
          : fmt::format("each {} values of a row", facts.block_columns);
  const std::string kind = facts.is_scale_power_of_two ? "a power of two, " : "";
  return fmt::format("{}{} for {}, {} bits", kind,
                     facts.scale_source == ScaleSource::Given ? "given" : "made by its own values",
                     covers, facts.scale_bits);
}

std::string draw_numbers(const std::vector<double>& numbers) {
  constexpr int kWidth = 79;
  const double low = numbers.front();
  const double high = numbers.back();
  std::string line(kWidth, ' ');
  for (const double number : numbers) {
    const double place = high == low ? 0 : (number - low) / (high - low);
    char& mark = line[static_cast<std::size_t>(std::lround(place * (kWidth - 1)))];
    mark = number == 0 || mark == '|' ? '|' : mark == ' ' ? '.' : ':';
  }
  const std::string left = fmt::format("{}", low);
  const std::string right = fmt::format("{}", high);
  const int gap = std::max(1, kWidth - static_cast<int>(left.size() + right.size()));
  return fmt::format("{}\n{}{}{}\n", line, left, std::string(static_cast<std::size_t>(gap), ' '),
                     right);
}

}  // namespace lathe::cli

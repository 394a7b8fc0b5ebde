#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/value_list.h"
#include "lathe/core/number_format.h"
#include "lathe/io/atomic_file.h"
#include "lathe/numerics/bit_stream.h"
#include "lathe/numerics/calibration_range.h"
#include "lathe/numerics/code_layout.h"
#include "lathe/numerics/codecs/float_bits.h"
#include "lathe/numerics/error_measures.h"
#include "lathe/numerics/number_line.h"
#include "lathe/report/plot.h"
#include "lathe/report/table.h"

namespace lathe::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string format;
  std::string values;
  std::string shape;
  std::string rounding = "nearest";
  std::optional<double> scale;
  std::optional<double> zero;
  bool draw = false;
  std::string out;
};

Rounding parse_rounding(std::string_view text) {
  if (text == "nearest") return Rounding::NearestEven;
  if (text == "floor") return Rounding::Floor;
  if (text == "stochastic") return Rounding::Stochastic;
  throw unknown_name("--rounding", text, {"nearest", "floor", "stochastic"});
}

// JSON has no word for what is not finite.
Json to_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}
// Exactly the float, in as few digits as tell it from its neighbours.
std::string to_text(float value) {
  return fmt::format("{}", value);
}

// What a format made of some values.
struct Outcome {
  ValueList input = {};
  std::vector<float> values = {};
  std::vector<std::uint32_t> patterns = {};  // none where the format has no codes
  std::vector<std::uint8_t> scale_codes = {};
  std::vector<float> scales = {}, zeros = {};
};

// Local scales as numbers: an exponent in a byte, or floats before a zero point.
void read_local_scales(const FormatFacts& facts, const std::vector<std::uint8_t>& bytes,
                       Outcome& outcome) {
  if (facts.scale_bits == 8) {
    outcome.scale_codes = bytes;
    for (const std::uint8_t code : bytes)
      outcome.scales.push_back(code == 255 ? NAN : numerics::power_of_two(code - 127));
    return;
  }
  const auto size = static_cast<std::size_t>(facts.scale_bits / 8);
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    std::size_t byte = 0;
    const auto word = [&](std::size_t count) {
      std::uint32_t result = 0;
      for (std::size_t i = 0; i < count; ++i, ++byte)
        result |= std::uint32_t{bytes[at + byte]} << (8 * i);
      return result;
    };
    while (byte + 4 <= size) outcome.scales.push_back(numerics::float_of(word(4)));
    if (byte < size) outcome.zeros.push_back(static_cast<float>(word(size - byte)));
  }
}

Outcome quantize(const NumberFormat& format, const Arguments& arguments, ValueList input,
                 const Settings& settings) {
  const FormatFacts& facts = format.facts();
  Outcome outcome;
  outcome.input = std::move(input);
  const ValueList& list = outcome.input;
  if (facts.scale_source == ScaleSource::Given) {
    const auto count = static_cast<std::size_t>(format.num_given_scales(list.rows, list.columns));
    std::vector<numerics::ScaleAndZero> chosen(count);
    if (arguments.scale)
      for (numerics::ScaleAndZero& each : chosen)
        each = {static_cast<float>(*arguments.scale),
                static_cast<float>(arguments.zero.value_or(0))};
    else
      chosen = numerics::scales_by_range(format, {list.values, list.rows, list.columns});
    for (const numerics::ScaleAndZero& each : chosen) {
      outcome.scales.push_back(each.scale);
      if (facts.has_zero_point) outcome.zeros.push_back(each.zero);
    }
  }
  outcome.values.resize(list.values.size());
  const QuantizeArgs args{.rows = list.rows,
                          .columns = list.columns,
                          .x = list.values.data(),
                          .y = outcome.values.data(),
                          .scales = outcome.scales.empty() ? nullptr : outcome.scales.data(),
                          .zeros = outcome.zeros.empty() ? nullptr : outcome.zeros.data(),
                          .rounding = parse_rounding(arguments.rounding),
                          .seed = settings.seed,
                          .isa = settings.isa};
  format.quantize(args);
  if (numerics::code_layout(format) == numerics::CodeLayout::None) return outcome;
  const EncodedMatrix encoded = format.encode(args);
  for (std::int64_t r = 0; r < list.rows; ++r) {
    numerics::BitReader reader(encoded.codes.data() + r * format.code_bytes(list.columns));
    for (std::int64_t c = 0; c < list.columns; ++c)
      outcome.patterns.push_back(reader.take(facts.element_bits));
  }
  if (facts.scale_source == ScaleSource::Local) read_local_scales(facts, encoded.scales, outcome);
  return outcome;
}

// Without a matrix in hand: one block where the format has blocks, else 1024 x 1024.
double typical_bits(const NumberFormat& format) {
  const FormatFacts& facts = format.facts();
  const bool is_block = facts.granularity == Granularity::Block && facts.block_columns > 0;
  return is_block ? format.bits_per_element(facts.block_rows, facts.block_columns)
                  : format.bits_per_element(1024, 1024);
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

// The numbers on a line of characters: "|" is 0, "." one number, ":" several in the same place.
std::string drawing(const std::vector<double>& numbers) {
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

void write_drawing(const std::string& path, const std::string& format,
                   const std::vector<double>& numbers) {
  if (!path.ends_with(".svg")) fail("--out {}: expected a name that ends in .svg", path);
  report::Series steps{.name = format, .x = {}, .y = {}};
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    steps.x.push_back(numbers[i]);
    steps.y.push_back(numbers[i] - numbers[i - 1]);
  }
  const report::Chart chart{.title = format,
                            .x = {.label = "number at scale 1"},
                            .y = {.label = "distance from the number before"}};
  io::write_atomically(path, report::scatter_chart(chart, {steps}));
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

void add_outcome(Json& line, const NumberFormat& format, const Outcome& outcome) {
  const FormatFacts& facts = format.facts();
  const ValueList& list = outcome.input;
  line["rows"] = list.rows;
  line["columns"] = list.columns;
  line["codes"] = nullptr;
  if (const auto layout = numerics::code_layout(format); layout != numerics::CodeLayout::None) {
    line["codes"] = rows_of(outcome.patterns, list, [&](std::uint32_t pattern) {
      return numerics::code_number(pattern, facts.element_bits, layout);
    });
    line["patterns"] =
        rows_of(outcome.patterns, list, [](std::uint32_t pattern) { return pattern; });
  }
  line["values"] = rows_of(outcome.values, list, [](float value) { return to_json(value); });
  const auto flat = [](const std::vector<float>& values) {
    Json array = Json::array();
    for (const float value : values) array.push_back(to_json(value));
    return array;
  };
  if (!outcome.scales.empty()) line["scales"] = flat(outcome.scales);
  if (!outcome.scale_codes.empty()) line["scale_codes"] = outcome.scale_codes;
  if (!outcome.zeros.empty()) line["zeros"] = flat(outcome.zeros);
  const numerics::ErrorMeasures error = numerics::measure_error(list.values, outcome.values);
  line["sqnr_db"] = to_json(error.sqnr());
  line["mean_squared_error"] = error.mean_squared_error;
  line["largest_error"] = error.largest_error;
}

void print_outcome(const NumberFormat& format, const Outcome& outcome) {
  const FormatFacts& facts = format.facts();
  if (!outcome.scales.empty()) {
    std::vector<std::string> scales;
    for (const float scale : outcome.scales) scales.push_back(to_text(scale));
    fmt::print("scales      {}\n", fmt::join(scales, " "));
  }
  if (!outcome.zeros.empty()) fmt::print("zeros       {}\n", fmt::join(outcome.zeros, " "));
  const numerics::ErrorMeasures error =
      numerics::measure_error(outcome.input.values, outcome.values);
  fmt::print("error       {:.2f} dB SQNR, largest {:.6g}\n\n", error.sqnr(), error.largest_error);
  const auto layout = numerics::code_layout(format);
  report::Table table(layout == numerics::CodeLayout::None
                          ? std::vector<std::string>{"value", "becomes"}
                          : std::vector<std::string>{"value", "code", "bits", "becomes"});
  for (std::size_t i = 0; i < outcome.values.size(); ++i) {
    std::vector<std::string> cells = {to_text(outcome.input.values[i])};
    if (layout != numerics::CodeLayout::None) {
      const std::uint32_t pattern = outcome.patterns[i];
      cells.push_back(
          fmt::format("{}", numerics::code_number(pattern, facts.element_bits, layout)));
      cells.push_back(fmt::format("{:0{}b}", pattern, facts.element_bits));
    }
    cells.push_back(to_text(outcome.values[i]));
    table.row(std::move(cells));
  }
  fmt::print("{}", table.to_text());
}

int list_families(const Settings& settings) {
  Json families = Json::array();
  report::Table table({"format", "what it is"});
  table.row({"float", "IEEE single precision: nothing is rounded"});
  for (const auto& [name, family] : FormatRegistry::instance().all()) {
    families.push_back({{"name", name},
                        {"syntax", family.syntax},
                        {"summary", family.summary},
                        {"examples", family.examples}});
    table.row({family.syntax, family.summary});
  }
  if (settings.json)
    fmt::print("{}\n", Json{{"families", families}}.dump());
  else
    fmt::print("{}", table.to_text());
  return 0;
}

int run(const Arguments& arguments, const Settings& settings) {
  if (arguments.format.empty()) return list_families(settings);
  const auto format = parse_format(arguments.format);
  if (format == nullptr) fail("format \"float\": nothing is rounded; give another format");
  const FormatFacts& facts = format->facts();
  parse_rounding(arguments.rounding);
  if (arguments.scale) {
    if (facts.scale_source != ScaleSource::Given)
      fail("--scale {}: {} makes its own scales or has none", *arguments.scale, facts.text);
    if (!(*arguments.scale > 0) || !std::isfinite(static_cast<float>(*arguments.scale)))
      fail("--scale {}: expected a positive number", *arguments.scale);
  }
  if (arguments.zero) {
    if (!facts.has_zero_point || !arguments.scale)
      fail("--zero {}: goes with --scale and a format that has a zero point", *arguments.zero);
    if (*arguments.zero != std::floor(*arguments.zero) || *arguments.zero < facts.minimum ||
        *arguments.zero > facts.maximum)
      fail("--zero {}: expected a whole number from {} to {}", *arguments.zero, facts.minimum,
           facts.maximum);
  }
  std::optional<Outcome> outcome;
  if (!arguments.values.empty()) {
    ValueList list = read_values(arguments.values);
    if (!arguments.shape.empty()) reshape(list, arguments.shape);
    outcome = quantize(*format, arguments, std::move(list), settings);
  } else if (!arguments.shape.empty()) {
    fail("--shape {}: goes with --values", arguments.shape);
  }
  const std::vector<double> numbers = numerics::representable_numbers(*format);
  if ((arguments.draw || !arguments.out.empty()) && numbers.empty())
    fail("{}: its numbers are too many to draw", facts.text);
  if (!arguments.out.empty()) write_drawing(arguments.out, facts.text, numbers);
  const double bits = outcome
                          ? format->bits_per_element(outcome->input.rows, outcome->input.columns)
                          : typical_bits(*format);

  if (settings.json) {
    Json line;
    line["format"] = facts.text;
    line["family"] = facts.family;
    line["bits"] = facts.element_bits;
    line["bits_per_element"] = bits;
    line["minimum"] = facts.minimum;
    line["maximum"] = facts.maximum;
    line["smallest_step"] = facts.smallest_step;
    line["scale"] = scale_text(facts);
    line["row_local"] = facts.is_row_local;
    if (arguments.draw) line["numbers"] = numbers;
    if (outcome) add_outcome(line, *format, *outcome);
    fmt::print("{}\n", line.dump());
    return 0;
  }
  fmt::print("format      {}\nfamily      {}: {}\n", facts.text, facts.family,
             FormatRegistry::instance().at(facts.family, "format family").summary);
  fmt::print("bits        {} an element, {:.6g} with its share of scales\n", facts.element_bits,
             bits);
  fmt::print("range       {} to {} at scale 1, smallest step {}\n", facts.minimum, facts.maximum,
             facts.smallest_step);
  fmt::print("scale       {}\n", scale_text(facts));
  if (!numbers.empty()) fmt::print("numbers     {}\n", numbers.size());
  if (arguments.draw) fmt::print("\n{}", drawing(numbers));
  if (outcome) print_outcome(*format, *outcome);
  return 0;
}

std::function<int(const Settings&)> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("format", arguments->format, "such as fixed:8,4; without it all are listed");
  app.add_option("--values", arguments->values,
                 "file of numbers to round, - for standard input: words or a JSON array");
  app.add_option("--shape", arguments->shape, "ROWSxCOLUMNS of the values [one row]");
  app.add_option("--rounding", arguments->rounding, "nearest, floor or stochastic [nearest]");
  app.add_option("--scale", arguments->scale, "for formats that are given one [from the range]");
  app.add_option("--zero", arguments->zero, "zero point that goes with --scale [0]");
  app.add_flag("--draw", arguments->draw, "draw the numbers on a line");
  app.add_option("--out", arguments->out, "picture of the numbers and their distances, an .svg");
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register registration{Command{
    .name = "format",
    .summary = "what a number format is; round numbers with it",
    .examples = "  lathe format                            # all formats\n"
                "  lathe format minifloat:e2m1 --draw\n"
                "  echo 0.3 -1.5 100 | lathe format fixed:8,4 --values -\n"
                "  lathe format mxfp:e4m3 --values x.json --shape 2x32 --json",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli

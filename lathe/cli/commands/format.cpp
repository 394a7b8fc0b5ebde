#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/format_text.h"
#include "lathe/io/atomic_file.h"
#include "lathe/numerics/number_line.h"
#include "lathe/report/plot.h"
#include "lathe/report/table.h"

namespace lathe::cli::format_command {
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

// Without a matrix in hand: one block where the format has blocks, else 1024 x 1024.
double typical_bits(const NumberFormat& format) {
  const FormatFacts& facts = format.facts();
  const bool is_block = facts.granularity == Granularity::Block && facts.block_columns > 0;
  return is_block ? format.bits_per_element(facts.block_rows, facts.block_columns)
                  : format.bits_per_element(1024, 1024);
}

void write_drawing(const std::string& path, const std::string& format,
                   const std::vector<double>& numbers) {
  if (!path.ends_with(".svg")) fail("--out {}: expected a name that ends in .svg", path);
  report::Series steps{.name = format, .x = {}, .y = {}};
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    steps.x.push_back((numbers[i] + numbers[i - 1]) / 2);
    steps.y.push_back(numbers[i] - numbers[i - 1]);
  }
  const bool has_sign = !numbers.empty() && numbers.front() < 0;
  const report::Chart chart{.title = format,
                            .x = {.label = "number at scale 1", .is_symmetric = has_sign},
                            .y = {.label = "distance between the two numbers around it"}};
  io::write_atomically(path, report::scatter_chart(chart, {steps}));
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
  std::optional<FormatOutcome> outcome;
  if (!arguments.values.empty()) {
    ValueList list = read_values(arguments.values);
    if (!arguments.shape.empty()) reshape(list, arguments.shape);
    numerics::RoundMatrixOptions options{
        .rounding = parse_rounding(arguments.rounding), .seed = settings.seed, .isa = settings.isa};
    if (arguments.scale)
      options.scale = {static_cast<float>(*arguments.scale),
                       static_cast<float>(arguments.zero.value_or(0))};
    outcome.emplace();
    outcome->rounded =
        numerics::round_matrix(*format, {list.values, list.rows, list.columns}, options);
    outcome->input = std::move(list);
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
  if (arguments.draw) fmt::print("\n{}", draw_numbers(numbers));
  if (outcome) print_outcome(*format, *outcome);
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  flags.add_option("format", arguments->format, "such as fixed:8,4; without it all are listed");
  flags.add_option("--values", arguments->values,
                   "file of numbers to round, - for standard input: words or a JSON array");
  flags.add_option("--shape", arguments->shape, "ROWSxCOLUMNS of the values [one row]");
  flags.add_option("--rounding", arguments->rounding, "nearest, floor or stochastic [nearest]");
  flags.add_option("--scale", arguments->scale, "for formats that are given one [from the range]");
  flags.add_option("--zero", arguments->zero, "zero point that goes with --scale [0]");
  flags.add_flag("--draw", arguments->draw, "draw the numbers on a line");
  flags.add_option("--out", arguments->out, "picture of the numbers and their distances, an .svg");
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
}  // namespace lathe::cli::format_command

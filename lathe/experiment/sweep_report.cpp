#include "lathe/experiment/sweep_report.h"

#include <algorithm>
#include <set>

#include "lathe/compress/size_target.h"
#include "lathe/io/atomic_file.h"
#include "lathe/report/plot.h"
#include "lathe/train/evaluation.h"

namespace lathe::experiment {
namespace {

bool has_many_epochs(const SweepResult& result) {
  std::set<std::int64_t> counts;
  for (const SweepPoint& point : result.points) counts.insert(point.epochs);
  return counts.size() > 1;
}

// Adds an accuracy with its 95 % interval.
void add(report::Series& series, double x, double accuracy, std::int64_t num_measured) {
  series.x.push_back(x);
  series.y.push_back(accuracy);
  const train::Interval interval = train::wilson_interval(
      std::llround(accuracy * static_cast<double>(num_measured)), num_measured);
  series.low.push_back(interval.low);
  series.high.push_back(interval.high);
}

// Accuracies against the variable: rounded, trained, and the float model's.
std::vector<report::Series> curves_by_value(const SweepResult& result) {
  report::Series rounded{.name = "rounded"}, trained{.name = "rounded and trained"},
      plain{.name = "float"};
  for (const SweepPoint& point : result.points) {
    add(rounded, point.value, point.rounded, result.num_measured);
    plain.x.push_back(point.value);
    plain.y.push_back(result.plain);
    if (point.trained) add(trained, point.value, *point.trained, result.num_measured);
  }
  std::vector<report::Series> curves{rounded};
  if (!trained.x.empty()) curves.push_back(trained);
  curves.push_back(plain);
  return curves;
}

// Accuracies against the epochs, a curve for each format; it starts with the model as rounded.
std::vector<report::Series> curves_by_epochs(const SweepResult& result) {
  std::vector<report::Series> curves;
  report::Series plain{.name = "float"};
  for (const SweepPoint& point : result.points) {
    if (curves.empty() || curves.back().name != point.format) {
      curves.push_back({.name = point.format});
      add(curves.back(), 0, point.rounded, result.num_measured);
    }
    if (point.trained)
      add(curves.back(), static_cast<double>(point.epochs), *point.trained, result.num_measured);
  }
  for (const double x : curves.front().x) {
    plain.x.push_back(x);
    plain.y.push_back(result.plain);
  }
  curves.push_back(plain);
  return curves;
}

}  // namespace

report::Table sweep_table(const SweepResult& result) {
  const bool shows_epochs = has_many_epochs(result);
  std::vector<std::string> headers{result.variable, "format", "bits"};
  if (shows_epochs) headers.emplace_back("epochs");
  for (const char* const name :
       {"PTQ", "PTQ - float", "QAT", "QAT - float", "QAT - PTQ", "size", "smaller", "tokens/s"})
    headers.emplace_back(name);
  report::Table table(std::move(headers));
  const auto points = [](double difference) { return fmt::format("{:+.2f}", 100 * difference); };
  const auto speed = [](std::optional<double> tokens) {
    return tokens ? fmt::format("{:.0f}", *tokens) : std::string("-");
  };
  const auto row_start = [&](std::string value, std::string format, std::string bits,
                             std::string epochs) {
    std::vector<std::string> row{std::move(value), std::move(format), std::move(bits)};
    if (shows_epochs) row.push_back(std::move(epochs));
    return row;
  };
  std::vector<std::string> plain = row_start("", "float", "32", "");
  plain.insert(plain.end(),
               {fmt::format("{:.4f}", result.plain), "", "", "", "",
                compress::bytes_text(result.plain_bytes), "1.0x", speed(result.plain_speed)});
  table.row(std::move(plain));
  for (const SweepPoint& point : result.points) {
    std::vector<std::string> row =
        row_start(fmt::format("{:g}", point.value), point.format, fmt::format("{}", point.bits),
                  fmt::format("{}", point.epochs));
    row.insert(row.end(),
               {fmt::format("{:.4f}", point.rounded), points(point.rounded - result.plain)});
    if (point.trained)
      row.insert(row.end(),
                 {fmt::format("{:.4f}", *point.trained), points(*point.trained - result.plain),
                  points(*point.trained - point.rounded)});
    else
      row.insert(row.end(), {"-", "-", "-"});
    row.insert(row.end(),
               {compress::bytes_text(point.bytes),
                point.bytes > 0 ? fmt::format("{:.1f}x", static_cast<double>(result.plain_bytes) /
                                                             static_cast<double>(point.bytes))
                                : std::string("-"),
                speed(point.tokens_per_second)});
    table.row(std::move(row));
  }
  return table;
}

void write_report(const SweepResult& result, const std::filesystem::path& directory) {
  std::string label = result.variable;
  std::replace(label.begin(), label.end(), '_', ' ');
  const bool is_by_epochs = has_many_epochs(result);
  if (is_by_epochs) label = "epochs";
  const std::string svg = report::line_chart(
      {.title = fmt::format("Accuracy by {}, with 95 % intervals", label),
       .x = {.label = is_by_epochs ? "epochs of training; 0: rounded alone" : label},
       .y = {.label = "accuracy, " + result.measured_on}},
      is_by_epochs ? curves_by_epochs(result) : curves_by_value(result));
  io::write_atomically(directory / "sweep.svg", svg);
  io::write_atomically(
      directory / "table.md",
      fmt::format("Accuracy of {}; float {:.4f}. Sizes are of all files, tokens/s "
                  "of the rounded model on this machine.\n\n{}",
                  result.measured_on, result.plain, sweep_table(result).to_markdown()));
}

}  // namespace lathe::experiment

#include "lathe/experiment/sweep_cells.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "lathe/compress/size_target.h"

namespace lathe::experiment {

std::string figure_cell(std::optional<double> value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

std::string difference_cell(const Figure& figure, std::optional<double> value,
                            std::optional<double> from) {
  return value && from ? difference_text(figure, *value - *from) : "-";
}

std::vector<std::string> size_cells(std::int64_t bytes, std::int64_t original_bytes,
                                    std::optional<double> tokens_per_second) {
  return {compress::bytes_text(bytes),
          bytes > 0 ? fmt::format("{:.1f}x",
                                  static_cast<double>(original_bytes) / static_cast<double>(bytes))
                    : "-",
          tokens_per_second ? fmt::format("{:.0f}", *tokens_per_second) : "-"};
}

void add_point(report::Series& series, double x, double value, const Figure& figure,
               std::int64_t num_measured) {
  series.x.push_back(x);
  series.y.push_back(value);
  if (figure.key != first_figure(LabelKind::Class).key) return;  // an interval is that of a share
  const train::Interval interval =
      train::wilson_interval(std::llround(value * static_cast<double>(num_measured)), num_measured);
  series.low.push_back(interval.low);
  series.high.push_back(interval.high);
}

report::Series level_line(std::string name, double value,
                          const std::vector<report::Series>& under) {
  std::set<double> places;
  for (const report::Series& series : under) places.insert(series.x.begin(), series.x.end());
  report::Series line{.name = std::move(name)};
  for (const double x : places) {
    line.x.push_back(x);
    line.y.push_back(value);
  }
  return line;
}

}  // namespace lathe::experiment
